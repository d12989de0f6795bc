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
    /// Cases of one group are mapped together. A line is one group, unless its pages are above the caps together.
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
        let mut plan = Plan { layout: None, cases: vec![], groups: vec![], instances: vec![] };
        match Layout::plan(arena, &refs) {
            Ok(layout) => {
                for (index, instance) in refs.iter().enumerate() {
                    let also: Vec<u64> = line.cases[index].also_map.iter().map(|o| arena.base + o).collect();
                    let planned = plan.case(&layout, index, instance, target, &line.caps, &also, arena, broken);
                    plan.cases.push(planned);
                }
                plan.layout = Some(layout);
            }
            Err(e) => {
                let skipped = |_: &&Instance| Planned::Skipped { why: e.to_string(), state: refs.len() > 1 };
                plan.cases = refs.iter().map(skipped).collect();
            }
        }
        plan.instances = instances;
        Ok(plan)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one line, taken apart once")]
    fn case(
        &mut self,
        layout: &Layout,
        index: usize,
        instance: &Instance,
        target: &dyn Target,
        caps: &Caps,
        also: &[u64],
        arena: &ArenaSpan,
        broken: Option<BrokenOracle>,
    ) -> Planned {
        let skipped = |why| Planned::Skipped { why, state: false };
        if let Some(why) = Oracle::unsupported(instance) {
            return skipped(why);
        }
        let footprint = match target.footprint(instance, caps) {
            Footprint::Refused(why) => return Planned::Refused(why),
            Footprint::Skipped(why) => return skipped(why),
            footprint => footprint,
        };
        match pages::of_case(layout, index, instance, boxes(&footprint), also, caps.memory) {
            Err(why) => skipped(why),
            Ok(touched) => {
                let group = self.group(weakened(touched, layout, arena, broken), caps);
                Planned::Run { footprint, group }
            }
        }
    }

    /// The group that a case's pages join: the last one, or a new one where that is full.
    fn group(&mut self, touched: PageSet, caps: &Caps) -> usize {
        match self.groups.last_mut() {
            None => self.groups.push(touched),
            Some(last) => {
                if !touched.minus(last).is_empty() {
                    let union = last.union(&touched);
                    if union.len() > MAX_RANGES || union.bytes() > caps.memory {
                        self.groups.push(touched);
                    } else {
                        *last = union;
                    }
                }
            }
        }
        self.groups.len() - 1
    }
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
