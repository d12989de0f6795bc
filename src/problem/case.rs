//! Cases: one assignment of a problem's parameters, with the knobs and the placement it runs under.

use super::param::Value;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Parameter values by index: an integer's value, or the position of a choice in its list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Assignment(pub Vec<i64>);

impl std::ops::Index<usize> for Assignment {
    type Output = i64;
    fn index(&self, i: usize) -> &i64 {
        &self.0[i]
    }
}

impl std::ops::IndexMut<usize> for Assignment {
    fn index_mut(&mut self, i: usize) -> &mut i64 {
        &mut self.0[i]
    }
}

/// Labels that pick a code path: name to value.
pub type Knobs = BTreeMap<String, Value>;

/// Which end of its mapped pages an operand is pushed against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Flush {
    /// The last element ends where the next page is unmapped (less the slack that alignment leaves).
    End,
    /// The first element starts where the page before it is unmapped.
    Start,
}

/// Where every operand of a case lies in its mapped pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Placement {
    pub flush: Flush,
    /// Bytes of mapped padding between the operand and the unmapped page.
    #[serde(default)]
    pub pad: u32,
    /// Alignment of the base pointer in bytes; 0 promises the element size only.
    #[serde(default)]
    pub align: u32,
}

impl Placement {
    /// Flush to the end, aligned to the element: nothing past the last byte is mapped.
    pub const END: Placement = Placement { flush: Flush::End, pad: 0, align: 0 };
    /// Flush to the start, aligned to the element.
    pub const START: Placement = Placement { flush: Flush::Start, pad: 0, align: 0 };
}

impl std::fmt::Display for Placement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.flush {
            Flush::End => "end",
            Flush::Start => "start",
        })?;
        if self.pad > 0 {
            write!(f, "+{}", self.pad)?;
        }
        if self.align > 0 {
            write!(f, "/{}", self.align)?;
        }
        Ok(())
    }
}

impl std::str::FromStr for Placement {
    type Err = String;

    /// Reads `end`, `start`, `end+64` (64 bytes of padding), `end/256` (base aligned to 256 bytes), `end+64/256`.
    fn from_str(text: &str) -> Result<Placement, String> {
        let bad = || format!("'{text}' is no placement: write end, start, end+PAD, end/ALIGN or end+PAD/ALIGN (bytes)");
        let (rest, align) = match text.split_once('/') {
            Some((rest, a)) => (rest, a.parse::<u32>().map_err(|_| bad())?),
            None => (text, 0),
        };
        let (word, pad) = match rest.split_once('+') {
            Some((word, p)) => (word, p.parse::<u32>().map_err(|_| bad())?),
            None => (rest, 0),
        };
        let flush = match word {
            "end" => Flush::End,
            "start" => Flush::Start,
            _ => return Err(bad()),
        };
        if align != 0 && (!align.is_power_of_two() || align > 4096) {
            return Err(format!("'{text}': an alignment is a power of two up to 4096 bytes"));
        }
        if pad > 1 << 20 {
            return Err(format!("'{text}': padding is at most 1048576 bytes"));
        }
        Ok(Placement { flush, pad, align })
    }
}

/// What a probe runs: one assignment, its knobs and its placement.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Case {
    pub params: Assignment,
    pub knobs: Knobs,
    pub placement: Placement,
}

impl Case {
    pub fn with_params(&self, params: Assignment) -> Case {
        Case { params, knobs: self.knobs.clone(), placement: self.placement }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_placement_reads_back_as_written(start in any::<bool>(), pad in 0u32..5000, align in 0u32..13) {
            let p = Placement {
                flush: if start { Flush::Start } else { Flush::End },
                pad,
                align: if align == 0 { 0 } else { 1 << (align - 1) },
            };
            prop_assert_eq!(p.to_string().parse::<Placement>(), Ok(p));
        }

        #[test]
        fn any_text_is_a_placement_or_one_sentence(text in "\\PC{0,12}") {
            let _ = text.parse::<Placement>();
        }
    }
}
