//! What memory holds before a case, and what it must hold after it.
//!
//! At rest every mapped byte holds the canary, which is NaN in every floating-point type. Before a case the defined
//! elements get their values; outputs that are not defined keep the canary, which is their sentinel. After it every
//! output element is compared with its expected value and every defined input with what was written. Then all elements
//! go back to the canary, and every mapped byte is compared: what differs is a stray write.

mod break_switch;
mod compare;
mod region;
mod scalar;

pub use break_switch::{BREAK_VARIABLE, BrokenOracle, DEADLINE};
pub use compare::{Damage, stray_damage, writes};
pub use region::Region;

use super::layout::Layout;
use super::pages::PageSet;
use crate::device::cpu::Canary;
use crate::problem::contents::MAX_DIMS;
use crate::problem::{Contents, Instance};
use crate::target::IndexBox;
use region::Row;

/// Elements whose values are computed at once.
const ROW: usize = 1024;
/// Pieces of memory that are worth telling from the rest: comparing a page takes as long as finding one.
const FEW_PIECES: usize = 64;
/// Seed of the canary: any constant, so that pages that stay mapped need no second filling.
const CANARY_SEED: u64 = 0x5eed_ca9a_4f00_d001;

/// Fills and compares the memory of one case after another.
pub struct Oracle {
    canary: Canary,
    broken: Option<BrokenOracle>,
    regions: Vec<Region>,
    values: Vec<f64>,
}

/// One case at its place.
#[derive(Clone, Copy)]
pub struct Placed<'a> {
    pub layout: &'a Layout,
    /// Its index in the layout.
    pub index: usize,
    pub instance: &'a Instance,
    /// The elements that the run touches; all of them where absent.
    pub boxes: Option<&'a [IndexBox]>,
    /// All that is mapped.
    pub pages: &'a PageSet,
}

impl Oracle {
    pub fn new(broken: Option<BrokenOracle>) -> Oracle {
        Oracle { canary: Canary::new(CANARY_SEED), broken, regions: vec![], values: vec![0.0; ROW] }
    }

    /// Why the contents of a case cannot be written or compared here.
    pub fn unsupported(instance: &Instance) -> Option<String> {
        instance.views.iter().flatten().find_map(|view| {
            let operand = &instance.problem.operands[view.operand].name;
            match view.dtype {
                _ if view.dims.len() > MAX_DIMS => {
                    Some(format!("operand {operand} has more than the {MAX_DIMS} dimensions that can be walked"))
                }
                Some(_) => None,
                None => Some(format!("operand {operand}: its elements have no type, so no value to compare")),
            }
        })
    }

    /// Covers newly mapped pages with the canary.
    ///
    /// # Safety
    /// The pages are mapped for writing, and no Rust reference points to them.
    pub unsafe fn cover(&self, pages: &PageSet) {
        for range in pages.iter() {
            // SAFETY: passed on.
            unsafe { self.canary.fill(range.start, range.bytes as usize) };
        }
    }

    /// Writes the defined elements of a case.
    ///
    /// # Safety
    /// Every element of the footprint lies in mapped pages, to which no Rust reference points. Every byte of them holds
    /// the canary.
    pub unsafe fn fill(&mut self, placed: Placed<'_>, contents: &dyn Contents) {
        self.regions.clear();
        regions(placed, &mut self.regions);
        for region in self.regions.iter().filter(|r| r.defined) {
            region.rows(ROW, |row, index| {
                let values = &mut self.values[..row.count];
                contents.input_run(region.operand, region.copy, index, row.along, values);
                // SAFETY: the row lies in the footprint.
                unsafe { scalar::write(region.dtype, values, row) };
            });
        }
    }

    /// Puts the canary back over every element of the case filled last. Gives the bytes where these lie in few pieces:
    /// they need no comparison any more.
    ///
    /// # Safety
    /// As for [`fill`](Self::fill), and its pages are still mapped.
    unsafe fn restore(&self) -> PageSet {
        let mut pieces = vec![];
        for region in self.regions.iter().filter(|r| r.defined || r.writes) {
            region.bytes(|start, bytes| {
                // SAFETY: passed on.
                unsafe { self.canary.fill(start, bytes) };
                if pieces.len() <= FEW_PIECES {
                    pieces.push((start, start + bytes as u64));
                }
            });
        }
        if pieces.len() <= FEW_PIECES { PageSet::of_bytes(pieces, 1) } else { PageSet::default() }
    }
}

/// The rectangles of elements that a case touches: a whole copy of an operand each, or one box of it.
pub fn regions(placed: Placed<'_>, out: &mut Vec<Region>) {
    for view in placed.instance.views.iter().flatten() {
        for copy in 0..view.copies() {
            let base = placed.layout.base(placed.index, view.operand, copy);
            match placed.boxes {
                None => out.extend(Region::new(view, copy, base, None)),
                Some(boxes) => out.extend(
                    boxes
                        .iter()
                        .filter(|b| (b.operand, b.copy) == (view.operand, copy))
                        .filter_map(|b| Region::new(view, copy, base, Some(&b.ranges))),
                ),
            }
        }
    }
}

/// Writes values of a region's type one beside the other.
///
/// # Safety
/// There is room for them at `address`, to which no Rust reference points.
pub unsafe fn write_values(region: &Region, values: &[f64], address: u64) {
    let row = Row { address, count: values.len(), stride: region.element_bytes, along: &[] };
    // SAFETY: passed on.
    unsafe { scalar::write(region.dtype, values, row) };
}
