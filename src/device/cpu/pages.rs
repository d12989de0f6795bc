//! Which addresses of an arena are mapped.

use std::collections::BTreeMap;

/// A set of addresses, kept as disjoint intervals that do not touch.
#[derive(Debug, Default)]
pub(super) struct Pages {
    /// Start of each interval to its end (exclusive).
    intervals: BTreeMap<u64, u64>,
}

impl Pages {
    pub(super) fn insert(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let (mut new_start, mut new_end) = (start, end);
        // What overlaps or touches the new interval becomes part of it; later intervals start after `end`.
        while let Some((&old_start, &old_end)) = self.intervals.range(..=end).next_back() {
            if old_end < start {
                break;
            }
            self.intervals.remove(&old_start);
            new_start = new_start.min(old_start);
            new_end = new_end.max(old_end);
        }
        self.intervals.insert(new_start, new_end);
    }

    pub(super) fn remove(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        while let Some((&old_start, &old_end)) = self.intervals.range(..end).next_back() {
            if old_end <= start {
                break;
            }
            self.intervals.remove(&old_start);
            if old_end > end {
                self.intervals.insert(end, old_end);
            }
            if old_start < start {
                self.intervals.insert(old_start, start);
            }
        }
    }

    /// Whether any address of the interval, which is not empty, is in the set.
    pub(super) fn meets(&self, start: u64, end: u64) -> bool {
        self.intervals.range(..end).next_back().is_some_and(|(_, &old_end)| start < old_end)
    }

    /// Whether every address of the interval is in the set.
    pub(super) fn covers(&self, start: u64, end: u64) -> bool {
        self.intervals.range(..=start).next_back().is_some_and(|(_, &old_end)| end <= old_end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
           #[test]
           fn agrees_with_one_flag_a_page(steps in prop::collection::vec((any::<bool>(), 0_u64..40, 0_u64..40), 1..60)) {
               let mut pages = Pages::default();
               let mut flags = [false; 40];
               for (insert, one, other) in steps {
                   let (start, end) = (one.min(other), one.max(other));
                   if insert {
                       pages.insert(start, end);
                   } else {
                       pages.remove(start, end);
                   }
                   flags[start as usize..end as usize].fill(insert);
                   for from in 0..40 {
                       for to in from + 1..=40 {
                           let flags = &flags[from..to];
                           let (from, to) = (from as u64, to as u64);
    prop_assert_eq!(pages.covers(from, to), !flags.contains(&false));
    prop_assert_eq!(pages.meets(from, to), flags.contains(&true));
                       }
                   }
               }
           }
       }
}
