//! The all-gather models as targets: all ranks played one after another in one process.

mod footprint;
pub mod kernel;
#[cfg(test)]
mod tests;

use super::grid::Groups;
use super::index::Index;
use super::settings::Settings;
use super::{describe, groups_of, identity, seed_of};
use crate::problem::allgather::{IN, OUT, OWN};
use crate::problem::{Dtype, Instance, Knobs, Value};
use crate::target::{Bases, Caps, Description, Footprint, Launched, Target};
use kernel::{Heap, Shape, partitioned, persistent};
use std::collections::BTreeMap;
use std::num::Wrapping;

/// Knob: the rank that is played, or all.
const ONLY_RANK: &str = "only-rank";

/// An all-gather model with its settings.
#[derive(Debug)]
pub struct AllGatherModel {
    partitioned: bool,
    wide: bool,
    settings: Settings,
}

impl AllGatherModel {
    pub fn new(partitioned: bool, wide: bool, settings: Settings) -> AllGatherModel {
        AllGatherModel { partitioned, wide, settings }
    }

    fn shape(&self, instance: &Instance) -> Shape {
        let stride_out = instance.get("strideOut");
        let in_place = instance.word("inplace") == "true";
        let dtype = Dtype::from_name(&instance.word("dtype")).unwrap_or(Dtype::F32);
        Shape {
            ranks: instance.get("ranks"),
            rows: instance.get("M"),
            columns: instance.get("N"),
            stride_in: if in_place { stride_out } else { instance.get("strideIn") },
            stride_out,
            in_place,
            element_bytes: dtype.bytes() as i64,
            tile: [self.settings.tile.m, self.settings.tile.n],
        }
    }

    /// # Safety
    /// As for [`persistent`].
    unsafe fn play<T: Copy, I: Index>(&self, s: &Shape, heap: &Heap, rank: i64, groups: Groups) {
        // SAFETY: passed on from the caller.
        unsafe {
            if self.partitioned {
                partitioned::<T, I>(s, heap, rank, groups)
            } else {
                persistent::<T, I>(s, heap, rank, groups)
            }
        }
    }

    unsafe fn sized<T: Copy>(&self, s: &Shape, heap: &Heap, ranks: std::ops::Range<i64>, groups: Groups) {
        for rank in ranks {
            // SAFETY: passed on from the caller.
            unsafe {
                if self.wide {
                    self.play::<T, Wrapping<i64>>(s, heap, rank, groups)
                } else {
                    self.play::<T, Wrapping<i32>>(s, heap, rank, groups)
                }
            }
        }
    }
}

/// The one rank to play; `None` for all.
fn only_rank(knobs: &Knobs, ranks: i64) -> Result<Option<i64>, String> {
    match knobs.get(ONLY_RANK) {
        None => Ok(None),
        Some(Value::Text(t)) if t == "all" => Ok(None),
        Some(Value::Int(r)) if (0..ranks).contains(r) => Ok(Some(*r)),
        Some(v) => Err(format!("{ONLY_RANK}={v}: {ONLY_RANK} is all or a rank from 0 to {}", ranks - 1)),
    }
}

impl Target for AllGatherModel {
    fn describe(&self) -> Description {
        describe(&self.settings)
    }

    fn identity(&self) -> Vec<(String, String)> {
        identity(&self.settings)
    }

    fn knobs(&self, instance: &Instance) -> BTreeMap<String, Vec<Value>> {
        let ranks = (0..instance.get("ranks")).map(Value::Int);
        BTreeMap::from([(ONLY_RANK.to_owned(), std::iter::once(Value::from("all")).chain(ranks).collect())])
    }

    fn footprint(&self, instance: &Instance, caps: &Caps) -> Footprint {
        let s = self.shape(instance);
        match only_rank(&instance.case.knobs, s.ranks) {
            Ok(only) => footprint::footprint(&s, only, seed_of(instance), caps),
            Err(why) => Footprint::Refused(why),
        }
    }

    unsafe fn launch(&mut self, instance: &Instance, footprint: &Footprint, bases: &dyn Bases) -> Launched {
        let s = self.shape(instance);
        let kernel = Some(self.settings.kernel());
        let only = match only_rank(&instance.case.knobs, s.ranks) {
            Ok(only) => only,
            Err(why) => return Launched { kernel, refused: Some(why), ..Launched::default() },
        };
        let copies = 0..s.ranks as u32;
        let outputs: Vec<*mut u8> = copies.clone().map(|r| bases.base(OUT, r)).collect();
        // In place, a rank's input starts at its block of its output: a 64-bit address that the caller computes.
        let own = |r: u32| (i64::from(r) * s.rows * s.stride_out * s.element_bytes) as isize;
        let input = |r| if s.in_place { bases.base(OWN, r).wrapping_offset(own(r)) } else { bases.base(IN, r) };
        let heap = Heap { inputs: copies.map(input).collect(), outputs };
        if let Some(groups) = groups_of(footprint, s.grid().total()) {
            let ranks = only.map_or(0..s.ranks, |r| r..r + 1);
            // SAFETY: the caller's promise: what a right kernel touches in these groups is mapped.
            unsafe {
                match s.element_bytes {
                    2 => self.sized::<u16>(&s, &heap, ranks, groups),
                    4 => self.sized::<u32>(&s, &heap, ranks, groups),
                    _ => self.sized::<u64>(&s, &heap, ranks, groups),
                }
            }
        }
        let played = only.map_or(Value::from("all"), Value::Int);
        Launched { kernel, resolved: Knobs::from([(ONLY_RANK.to_owned(), played)]), ..Launched::default() }
    }
}
