//! Draws from proptest's generator.
//!
//! The few distributions that the search needs are written out here, so that a seed gives the same cases under every
//! version of the `rand` crate: only the raw stream of ChaCha is relied on.

use proptest::test_runner::TestRng;
use rand::Rng;

/// A source of draws.
#[derive(Debug)]
pub struct Draw<'a> {
    rng: &'a mut TestRng,
}

impl<'a> Draw<'a> {
    pub fn new(rng: &'a mut TestRng) -> Draw<'a> {
        Draw { rng }
    }

    /// Uniform in `0..n`, by multiplication; 0 for `n = 0`.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.rng.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Uniform in `low..=high`; `low` where the range is empty.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        let count = (i128::from(high) - i128::from(low) + 1).clamp(1, i128::from(u64::MAX)) as u64;
        (i128::from(low) + i128::from(self.below(count))) as i64
    }

    /// True in `part` of `whole` draws.
    pub fn chance(&mut self, part: u64, whole: u64) -> bool {
        self.below(whole) < part
    }

    /// One of a list; `None` for an empty one.
    pub fn pick<'t, T>(&mut self, list: &'t [T]) -> Option<&'t T> {
        list.get(self.below(list.len() as u64) as usize)
    }

    /// The value of one row of a table, by weight; the last one where all weights are 0.
    pub fn weighted<T: Copy>(&mut self, table: &[(u32, T)]) -> Option<T> {
        let total: u64 = table.iter().map(|(w, _)| u64::from(*w)).sum();
        let mut at = self.below(total);
        for (weight, value) in table {
            if at < u64::from(*weight) {
                return Some(*value);
            }
            at -= u64::from(*weight);
        }
        table.last().map(|(_, value)| *value)
    }

    /// In `low..=high`, every bit length of the distance from `low` equally likely.
    pub fn log(&mut self, low: i64, high: i64) -> i64 {
        let width = (i128::from(high) - i128::from(low)).clamp(0, i128::from(i64::MAX)) as u64;
        let bits = u64::BITS - width.leading_zeros();
        let chosen = self.below(u64::from(bits) + 1);
        if chosen == 0 {
            return low;
        }
        let (first, last) = (1u64 << (chosen - 1), (1u64 << (chosen - 1)).saturating_mul(2) - 1);
        low.saturating_add((first + self.below(last - first + 1)).min(width) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::RngAlgorithm;

    proptest! {
        #[test]
        fn draws_stay_within_their_ranges(seed: [u8; 32], low: i64, high: i64) {
            let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
            let mut draw = Draw::new(&mut rng);
            let (low, high) = (low.min(high), low.max(high));
            prop_assert!((low..=high).contains(&draw.between(low, high)));
            prop_assert!((low..=high).contains(&draw.log(low, high)));
            prop_assert_eq!(draw.between(high, low).max(high), high);
        }
    }

    #[test]
    fn weights_are_shares() {
        let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
        let mut draw = Draw::new(&mut rng);
        let heads = (0..10_000).filter(|_| draw.weighted(&[(3, true), (1, false)]) == Some(true)).count();
        assert!((7_300..7_700).contains(&heads), "{heads}");
    }
}
