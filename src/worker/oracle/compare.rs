//! After a run: outputs, inputs, and everything that is neither.

use super::region::Region;
use super::{BrokenOracle, Oracle, Placed, ROW, scalar};
use crate::device::Access;
use crate::device::cpu::Canary;
use crate::exec::verdict::{Wrong, WrongKind};
use crate::problem::Contents;
use crate::problem::dtype::LARGEST_ELEMENT;
use crate::worker::anchor::host;
use crate::worker::pages::PageSet;

/// What a comparison found.
#[derive(Debug, Clone, PartialEq)]
pub struct Damage {
    pub wrong: Wrong,
    /// A write, where the damage says so.
    pub access: Option<Access>,
    /// What else was wrong.
    pub detail: Option<String>,
}

/// Wrong output elements: the first one and their number.
#[derive(Default)]
struct Outputs {
    first: Option<(WrongKind, usize, u32, Vec<i64>)>,
    wrong: u64,
    compared: u64,
}

/// Changed bytes that nobody was to write: the lowest address and their number.
#[derive(Default)]
struct Stray {
    lowest: Option<u64>,
    bytes: u64,
}

impl Stray {
    fn add(&mut self, address: u64, bytes: u64) {
        self.lowest = Some(self.lowest.map_or(address, |l| l.min(address)));
        self.bytes += bytes;
    }
}

impl Oracle {
    /// Compares everything with what a correct run leaves, and leaves every mapped byte at the canary.
    ///
    /// A stray write outranks wrong elements, because it says where; the elements are then named in the detail. "First"
    /// is in the order of the walk: larger strides outside, ascending indices.
    ///
    /// # Safety
    /// `placed` and `contents` are those of the last [`fill`](Oracle::fill), whose conditions still hold, and the run has
    /// ended.
    pub unsafe fn check(&mut self, placed: Placed<'_>, contents: &dyn Contents) -> Option<Damage> {
        let mut outputs = Outputs::default();
        let mut stray = Stray::default();
        // SAFETY: the regions are those of the fill.
        unsafe {
            self.compare_outputs(contents, &mut outputs);
            self.compare_inputs(placed, contents, outputs.wrong > 0, &mut stray);
            let restored = self.restore();
            self.compare_canary(placed, &restored, &mut stray);
        }
        let lost = outputs.first.map(|(kind, operand, copy, first)| {
            let operand = placed.instance.problem.operands[operand].name.clone();
            Wrong { kind, operand, copy, first, count: outputs.wrong, compared: outputs.compared, hit: None }
        });
        match (stray.lowest, lost) {
            (Some(lowest), lost) => Some(stray_damage(placed, lowest, stray.bytes, lost)),
            (None, Some(wrong)) => Some(Damage { wrong, access: None, detail: None }),
            (None, None) => None,
        }
    }

    /// Takes the values of the last fill back without comparing them: the target declined to run.
    ///
    /// # Safety
    /// As for [`check`](Self::check).
    pub unsafe fn clear(&mut self, placed: Placed<'_>) {
        // SAFETY: the regions are those of the fill.
        unsafe {
            let restored = self.restore();
            self.compare_canary(placed, &restored, &mut Stray::default());
        }
    }

    unsafe fn compare_outputs(&mut self, contents: &dyn Contents, found: &mut Outputs) {
        let lenient = self.broken == Some(BrokenOracle::Sentinel);
        for region in self.regions.iter().filter(|r| r.writes) {
            region.rows(ROW, |row, index| {
                let values = &mut self.values[..row.count];
                contents.expected_run(region.operand, region.copy, index, row.along, values);
                found.compared += row.count as u64;
                // SAFETY: the row lies in the footprint.
                if unsafe { scalar::all_equal(region.dtype, values, row) } {
                    return;
                }
                for (i, value) in values.iter().enumerate() {
                    // SAFETY: as above.
                    let bytes = unsafe { scalar::read(row.at(i), region.element_bytes as usize) };
                    if region.dtype.decode(&bytes) == *value {
                        continue;
                    }
                    let at = row.index(index, i);
                    // SAFETY: as above.
                    let untouched = unsafe { is_untouched(&self.canary, region, contents, &at, row.at(i)) };
                    if untouched && lenient {
                        continue;
                    }
                    let kind = if untouched { WrongKind::Unwritten } else { WrongKind::Value };
                    found.first.get_or_insert((kind, region.operand, region.copy, at));
                    found.wrong += 1;
                }
            });
        }
    }

    /// Inputs that lie in an output are part of it; they are compared only where the outputs are right, because wrong
    /// outputs change them too.
    unsafe fn compare_inputs(&mut self, placed: Placed<'_>, contents: &dyn Contents, wrong: bool, stray: &mut Stray) {
        let inputs = self.regions.iter().filter(|r| r.defined && !r.writes);
        for region in inputs.filter(|r| !(wrong && r.alias && writes(placed, r.operand))) {
            region.rows(ROW, |row, index| {
                let values = &mut self.values[..row.count];
                contents.input_run(region.operand, region.copy, index, row.along, values);
                // SAFETY: the row lies in the footprint.
                if unsafe { scalar::all_same(region.dtype, values, row) } {
                    return;
                }
                let mut before = [0; LARGEST_ELEMENT];
                for (i, value) in values.iter().enumerate() {
                    region.dtype.encode(*value, &mut before);
                    // SAFETY: as above.
                    let now = unsafe { scalar::read(row.at(i), region.element_bytes as usize) };
                    let bytes = (0..region.element_bytes as usize).filter(|&b| before[b] != now[b]);
                    bytes.for_each(|b| stray.add(row.at(i) + b as u64, 1));
                }
            });
        }
    }

    /// Compares every mapped byte but those restored just now, once all elements are restored, and repairs what differs.
    unsafe fn compare_canary(&self, placed: Placed<'_>, restored: &PageSet, stray: &mut Stray) {
        if self.broken == Some(BrokenOracle::Canary) {
            return;
        }
        for range in placed.pages.minus(restored).iter() {
            let (start, bytes) = (range.start, range.bytes as usize);
            // SAFETY: the pages are mapped.
            unsafe {
                if let Some(first) = self.canary.first_difference(start, bytes) {
                    stray.add(first, self.canary.count_differences(start, bytes) as u64);
                    self.canary.fill(start, bytes);
                }
            }
        }
    }
}

/// Whether an element still holds what it held before the run.
///
/// # Safety
/// The element lies in the footprint.
unsafe fn is_untouched(canary: &Canary, region: &Region, contents: &dyn Contents, index: &[i64], address: u64) -> bool {
    let count = region.element_bytes as usize;
    if !region.defined {
        // SAFETY: passed on.
        return unsafe { canary.first_difference(address, count) }.is_none();
    }
    let mut before = [0; LARGEST_ELEMENT];
    region.dtype.encode(contents.input(region.operand, region.copy, index), &mut before);
    // SAFETY: passed on.
    before[..count] == unsafe { scalar::read(address, count) }[..count]
}

/// Whether the run writes an operand, or the one that it lies in.
pub fn writes(placed: Placed<'_>, operand: usize) -> bool {
    placed.instance.view(host(placed.instance, operand)).is_some_and(|v| v.access.writes())
}

/// Changed bytes that nobody was to write, from the lowest address on; `lost`: wrong elements beside them.
pub fn stray_damage(placed: Placed<'_>, lowest: u64, bytes: u64, lost: Option<Wrong>) -> Damage {
    let hit = placed.layout.locate(placed.index, placed.instance, lowest);
    let wrong = Wrong {
        kind: WrongKind::Stray,
        operand: hit.as_ref().map_or_else(String::new, |h| h.operand.clone()),
        copy: hit.as_ref().map_or(0, |h| h.copy),
        first: vec![],
        count: bytes,
        compared: placed.pages.bytes(),
        hit,
    };
    let detail =
        lost.map(|l| format!("{} elements of {} are wrong too, the first at {:?}", l.count, l.operand, l.first));
    Damage { wrong, access: Some(Access::Write), detail }
}
