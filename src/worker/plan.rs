//! From one line to what is mapped and run for it: a function of the line, the arena and the target alone.

use super::layout::Layout;
use super::oracle::{BrokenOracle, Oracle};
use super::pages::{self, MAX_RANGES, PageSet};
use crate::device::PageRange;
use crate::exec::protocol::{ArenaSpan, LayoutLine};
use crate::problem::{Instance, Problem};
use crate::target::{Caps, Footprint, IndexBox, Target};
use std::sync::Arc;

/// Pages mapped beside every range where the guard is disabled.
const BROKEN_GUARD_PAGES: u64 = 16;
/// Slots that span at most so many bytes are mapped whole where the gap oracle is disabled.
const BROKEN_GAP_BYTES: u64 = 64 << 20;

/// Pages above which a group holds cases of one magnitude, and so many ranges at most. In pages, because a device with large
/// ones compares their bytes faster than it maps them.
const SMALL_GROUP: u64 = 256;
const FEW_RANGES: usize = 16;
/// Every case compares all that its group maps: about as fast a page as mapping takes for a quarter of one.
const MAGNITUDE: u64 = 4;

/// What becomes of one case of a line.
pub enum Planned {
    /// It touches `footprint`; its pages are among those of the group.
    Run {
        footprint: Footprint,
        group: usize,
    },
    Refused(String),
    /// `state`: alone in its line it may fit.
    Skipped {
        why: String,
        state: bool,
    },
}

/// A line with every case placed.
pub struct Plan {
    pub instances: Vec<Instance>,
    /// `None` where the cases do not fit together.
    pub layout: Option<Layout>,
    pub cases: Vec<Planned>,
    /// Cases of one group are mapped together. A line is one group, unless its pages are above the caps together,
    /// or a small case would share those of a large one.
    pub groups: Vec<PageSet>,
}

/// The boxes of a footprint; `None` where it is whole.
pub fn boxes(footprint: &Footprint) -> Option<&[IndexBox]> {
    match footprint {
        Footprint::Part { boxes, .. } => Some(boxes),
        _ => None,
    }
}

impl Plan {
    /// Plans a line.
    ///
    /// # Errors
    /// A sentence, where the line breaks the protocol.
    pub fn of(
        line: &LayoutLine,
        problem: &Arc<Problem>,
        target: &dyn Target,
        arena: &ArenaSpan,
        broken: Option<BrokenOracle>,
    ) -> Result<Plan, String> {
        let mut instances = Vec::with_capacity(line.cases.len());
        for case in &line.cases {
            if let Some(offset) = case.also_map.iter().find(|o| **o >= arena.len) {
                return Err(format!("case {}: {offset:#x} in also_map lies outside the arena", case.id));
            }
            let id = case.id;
            instances.push(problem.instance(case.case(problem)?).map_err(|e| format!("case {id}: {e}"))?);
        }
        let refs: Vec<&Instance> = instances.iter().collect();
        let mut groups = Vec::new();
        let (layout, cases) = match Layout::plan(arena, &refs) {
            Ok(layout) => {
                let ask = |(index, instance): (usize, &&Instance)| {
                    let also: Vec<u64> = line.cases[index].also_map.iter().map(|o| arena.base + o).collect();
                    match touched(&layout, index, instance, target, &line.caps, &also) {
                        Ok((footprint, pages)) => {
                            let pages = weakened(pages, &layout, arena, broken);
                            let group = join(&mut groups, pages, &line.caps, arena.page_bytes);
                            Planned::Run { footprint, group }
                        }
                        Err(planned) => planned,
                    }
                };
                let cases = refs.iter().enumerate().map(ask).collect();
                (Some(layout), cases)
            }
            Err(e) => {
                let skipped = |_: &&Instance| Planned::Skipped { why: e.to_string(), state: refs.len() > 1 };
                (None, refs.iter().map(skipped).collect())
            }
        };
        Ok(Plan { instances, layout, cases, groups })
    }
}

/// What a case touches, and its pages; what becomes of it where it is not to run.
fn touched(
    layout: &Layout,
    index: usize,
    instance: &Instance,
    target: &dyn Target,
    caps: &Caps,
    also: &[u64],
) -> Result<(Footprint, PageSet), Planned> {
    let skipped = |why| Planned::Skipped { why, state: false };
    if let Some(why) = Oracle::unsupported(instance) {
        return Err(skipped(why));
    }
    let footprint = match target.footprint(instance, caps) {
        Footprint::Refused(why) => return Err(Planned::Refused(why)),
        Footprint::Skipped(why) => return Err(skipped(why)),
        footprint => footprint,
    };
    let pages = pages::of_case(layout, index, instance, boxes(&footprint), also, caps.memory).map_err(skipped)?;
    Ok((footprint, pages))
}

/// The group that a case's pages join: the last one, or a new one where that is full.
fn join(groups: &mut Vec<PageSet>, touched: PageSet, caps: &Caps, page_bytes: u64) -> usize {
    match groups.last_mut() {
        None => groups.push(touched),
        Some(last) => {
            let union = (!touched.minus(last).is_empty()).then(|| last.union(&touched));
            let whole = union.as_ref().unwrap_or(last);
            let least = last.bytes().min(touched.bytes());
            let large = whole.bytes() > (SMALL_GROUP * page_bytes).max(MAGNITUDE * least);
            let unlike = large && whole.len() <= FEW_RANGES;
            if unlike || whole.len() > MAX_RANGES || whole.bytes() > caps.memory {
                groups.push(touched);
            } else if let Some(union) = union {
                *last = union;
            }
        }
    }
    groups.len() - 1
}

/// What is mapped where an oracle is disabled to test the self-test.
fn weakened(touched: PageSet, layout: &Layout, arena: &ArenaSpan, broken: Option<BrokenOracle>) -> PageSet {
    match broken {
        Some(BrokenOracle::Guard) => {
            let by = BROKEN_GUARD_PAGES * layout.page_bytes();
            touched.widened(by, arena.base, arena.base + arena.len)
        }
        Some(BrokenOracle::Gap) => {
            let whole = layout.slots().iter().filter_map(|slot| {
                let inside = |r: &PageRange| slot.start <= r.start && r.start < slot.end();
                let first = touched.iter().find(inside)?.start;
                let end = touched.iter().filter(inside).last().map(|r| r.start + r.bytes)?;
                (end - first <= BROKEN_GAP_BYTES).then_some((first, end))
            });
            touched.union(&PageSet::of_bytes(whole.collect(), layout.page_bytes()))
        }
        _ => touched,
    }
}
