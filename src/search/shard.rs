//! Shards: parts of one whole, for machines side by side.

use std::fmt;
use std::str::FromStr;

/// One of `of` parts, counted from 1. Of anything that is numbered from 0 it has every `of`-th: each number lies in exactly
/// one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    pub part: u32,
    pub of: u32,
}

impl Shard {
    /// The only part.
    pub const WHOLE: Shard = Shard { part: 1, of: 1 };

    /// The items of this part.
    pub fn take<T>(self, items: Vec<T>) -> Vec<T> {
        let (skip, step) = (self.part as usize - 1, self.of as usize);
        items.into_iter().skip(skip).step_by(step).collect()
    }

    /// Number, in the whole, of item `own` of this part.
    pub fn number(self, own: u64) -> u64 {
        own.saturating_mul(u64::from(self.of)).saturating_add(u64::from(self.part) - 1)
    }

    /// How many of the numbers below `all` this part has.
    pub fn share(self, all: u64) -> u64 {
        all.saturating_add(u64::from(self.of - self.part)) / u64::from(self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let parsed = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
        match parsed {
            Some((part, of)) if 1 <= part && part <= of => Ok(Shard { part, of }),
            _ => Err("write K/N with 1 <= K <= N, such as 2/8".to_owned()),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.part, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_shard_that_is_none_says_how_it_should_read() {
        assert_eq!("2/8".parse(), Ok(Shard { part: 2, of: 8 }));
        for text in ["0/3", "4/3", "1", "a/b", "1/", "-1/2", ""] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_parts_of_a_list_make_the_list(items in 0usize..100, of in 1u32..20) {
            let list: Vec<usize> = (0..items).collect();
            let mut all: Vec<usize> = (1..=of).flat_map(|part| Shard { part, of }.take(list.clone())).collect();
            all.sort_unstable();
            prop_assert_eq!(all, list);
        }

        #[test]
        fn the_numbers_below_a_bound_are_shared_without_rest(all in 0u64..500, of in 1u32..20) {
            let numbers = |part| {
                let shard = Shard { part, of };
                (0..shard.share(all)).map(move |own| shard.number(own))
            };
            let mut shared: Vec<u64> = (1..=of).flat_map(numbers).collect();
            shared.sort_unstable();
            prop_assert_eq!(shared, (0..all).collect::<Vec<_>>());
        }
    }
}
