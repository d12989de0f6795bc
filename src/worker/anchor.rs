//! Where in its slot an operand lies: flush against one end, as near as the promised alignment allows.

use crate::problem::{Flush, Instance, Placement, View};
use std::ops::Range;

/// Lowest byte and byte after the highest, relative to the base pointer, of an operand and all that lies in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extremes {
    pub low: i64,
    pub high: i64,
    /// Alignment that the elements ask for, bytes: a power of two.
    natural: u64,
}

/// Place of a base pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor {
    /// Bytes from the start of the slot to the base pointer.
    pub base: u64,
    /// Bytes that the alignment leaves between the operand (with its padding) and the unmapped page.
    pub slack: u64,
}

/// The operand in whose memory an operand lies; itself where it has memory of its own.
pub fn host(instance: &Instance, operand: usize) -> usize {
    let mut at = operand;
    // A chain of aliases is no longer than the list of operands.
    for _ in 0..instance.problem.operands.len() {
        match instance.problem.operands[at].alias {
            Some(next) => at = next,
            None => break,
        }
    }
    at
}

/// Copies of a view that lie in one copy of its host: the one of the same number, or all where the host has one copy.
pub fn copies_in(instance: &Instance, view: &View, copy: u32) -> Range<u32> {
    let one = instance.view(host(instance, view.operand)).is_some_and(|h| h.copies() == 1);
    let copies = if one && copy == 0 { 0..view.copies() } else { copy..copy + 1 };
    copies.start.min(view.copies())..copies.end.min(view.copies())
}

impl Extremes {
    /// By operand, over all copies, so that every copy has the same place in its slot; `None` for aliases and where the
    /// case lacks the operand.
    pub fn of(instance: &Instance) -> Vec<Option<Extremes>> {
        let mut all = vec![None; instance.views.len()];
        for view in instance.views.iter().flatten() {
            Extremes::widen(&mut all[host(instance, view.operand)], view, 0..view.copies());
        }
        all
    }

    /// Of one copy of an operand with memory of its own.
    pub fn of_copy(instance: &Instance, operand: usize, copy: u32) -> Option<Extremes> {
        let mut extremes = None;
        for view in instance.views.iter().flatten().filter(|v| host(instance, v.operand) == operand) {
            Extremes::widen(&mut extremes, view, copies_in(instance, view, copy));
        }
        extremes
    }

    fn widen(to: &mut Option<Extremes>, view: &View, copies: Range<u32>) {
        let natural = 1 << view.element_bytes.trailing_zeros().min(12);
        for copy in copies {
            let low = view.lowest(copy) * view.element_bytes;
            let high = (view.highest(copy) + 1) * view.element_bytes;
            let e = to.get_or_insert(Extremes { low, high, natural });
            *e = Extremes { low: e.low.min(low), high: e.high.max(high), natural: e.natural.max(natural) };
        }
    }

    /// Bytes of a slot that holds the operand and its base pointer wherever the alignment puts them.
    pub fn room(&self, placement: Placement, page: u64) -> u64 {
        let outside = match placement.flush {
            Flush::End => self.above(page) + self.below(1),
            Flush::Start => self.below(page) + self.above(1),
        };
        let span = self.high.abs_diff(self.low);
        (outside + span + u64::from(placement.pad) + self.align(placement) - 1).next_multiple_of(page)
    }

    /// The place in a slot of at least [`room`](Self::room) bytes.
    pub fn anchor(&self, placement: Placement, page: u64, slot_bytes: u64) -> Anchor {
        let (pad, align) = (u64::from(placement.pad), self.align(placement));
        match placement.flush {
            Flush::End => {
                // room() includes every term, so nothing below falls under 0.
                let flush = (slot_bytes - self.above(page) - pad).wrapping_add_signed(-self.high);
                let slack = flush % align;
                Anchor { base: flush - slack, slack }
            }
            Flush::Start => {
                let flush = (self.below(page) + pad).wrapping_add_signed(-self.low);
                let base = flush.next_multiple_of(align);
                Anchor { base, slack: base - flush }
            }
        }
    }

    fn align(&self, placement: Placement) -> u64 {
        self.natural.max(u64::from(placement.align))
    }

    /// Bytes by which the base pointer lies past the highest element, in whole units.
    fn above(&self, unit: u64) -> u64 {
        u64::try_from(-self.high).unwrap_or(0).next_multiple_of(unit)
    }

    /// Bytes by which the base pointer lies before the lowest element, in whole units.
    fn below(&self, unit: u64) -> u64 {
        u64::try_from(self.low).unwrap_or(0).next_multiple_of(unit)
    }
}
