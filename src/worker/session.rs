//! Answers lines: maps what a layout needs, then fills, launches and compares case after case.

use super::layout::Layout;
use super::oracle::{BrokenOracle, Damage, Oracle, Placed};
use super::pages::PageSet;
use super::plan::{Plan, Planned, boxes};
use crate::device::cpu::CpuArena;
use crate::device::{Arena, MemoryError, PageRange};
use crate::exec::protocol::{Answer, ArenaSpan, AskKnobs, KnobsAnswer, LayoutLine, WireCase};
use crate::problem::{Builtin, Case, Placement, Problem};
use crate::target::{Bases, Footprint, Launched, Target};
use std::ptr;
use std::sync::Arc;

/// A loaded target and the memory it runs in.
pub struct Session {
    builtin: Builtin,
    problem: Arc<Problem>,
    target: Box<dyn Target>,
    arena: CpuArena,
    /// What is mapped; every byte of it holds the canary between two cases.
    mapped: PageSet,
    oracle: Oracle,
    broken: Option<BrokenOracle>,
}

/// Hears what a session does. Answers leave at once, so that a death loses none.
pub trait Listener {
    /// The case is filled and launched next.
    fn launching(&mut self, id: u64);

    /// The target is entered, or left again.
    fn step(&mut self);

    /// # Errors
    /// A sentence, where nobody listens any more.
    fn answer(&mut self, answer: &Answer) -> Result<(), String>;
}

/// Base pointers of a case in a layout.
struct PlacedBases<'a> {
    layout: &'a Layout,
    index: usize,
}

impl Bases for PlacedBases<'_> {
    fn base(&self, operand: usize, copy: u32) -> *mut u8 {
        ptr::with_exposed_provenance_mut(self.layout.base(self.index, operand, copy) as usize)
    }
}

/// Why pages could not be had.
enum MapFailure {
    /// Answer "skipped".
    Full(String),
    /// The worker has to end.
    Fatal(String),
}

impl Session {
    pub fn new(builtin: Builtin, target: Box<dyn Target>, arena: CpuArena, broken: Option<BrokenOracle>) -> Session {
        let mapped = PageSet::default();
        Session { builtin, problem: builtin.problem(), target, arena, mapped, oracle: Oracle::new(broken), broken }
    }

    pub fn target(&self) -> &dyn Target {
        &*self.target
    }

    pub fn arena(&self) -> ArenaSpan {
        ArenaSpan { base: self.arena.base(), len: self.arena.len(), page_bytes: self.arena.page_bytes() }
    }

    /// The knobs of a case.
    ///
    /// # Errors
    /// A sentence, where the question is no case of the problem.
    pub fn knobs(&self, ask: &AskKnobs) -> Result<KnobsAnswer, String> {
        let wire = WireCase {
            id: ask.id,
            seed: 0,
            params: ask.params.clone(),
            knobs: Default::default(),
            place: Placement::END,
            also_map: vec![],
        };
        let case: Case = wire.case(&self.problem)?;
        let instance = self.problem.instance(case).map_err(|e| format!("question {}: {e}", ask.id))?;
        Ok(KnobsAnswer { id: ask.id, knobs: self.target.knobs(&instance) })
    }

    /// Runs the cases of a line in their order.
    ///
    /// # Errors
    /// A sentence, where the line breaks the protocol, memory is lost or nobody listens; the worker has to end.
    pub fn layout(&mut self, line: &LayoutLine, listener: &mut impl Listener) -> Result<(), String> {
        let plan = Plan::of(line, &self.problem, &*self.target, &self.arena(), self.broken)?;
        let mut remapped = 0;
        for id in &line.run {
            let index = line.cases.iter().position(|c| c.id == *id).ok_or_else(|| {
                format!("case {id} is to run, but it is not among the cases of layout {}", line.layout)
            })?;
            let mut answer = self.case(&plan, index, &line.cases[index], &mut remapped, listener)?;
            answer.remapped = std::mem::take(&mut remapped);
            listener.answer(&answer)?;
        }
        Ok(())
    }

    fn case(
        &mut self,
        plan: &Plan,
        index: usize,
        wire: &WireCase,
        remapped: &mut u32,
        listener: &mut impl Listener,
    ) -> Result<Answer, String> {
        let answer = |verdict: &str, detail: Option<String>| Answer {
            id: wire.id,
            verdict: verdict.to_owned(),
            sample: None,
            wrong: None,
            access: None,
            detail,
            state: false,
            kernel: None,
            resolved: Default::default(),
            remapped: 0,
        };
        let (footprint, group) = match (&plan.cases[index], &plan.layout) {
            (Planned::Run { footprint, group }, Some(_)) => (footprint, &plan.groups[*group]),
            (Planned::Refused(why), _) => return Ok(answer("refused", Some(why.clone()))),
            (Planned::Skipped { why, state }, _) => {
                return Ok(Answer { state: *state, ..answer("skipped", Some(why.clone())) });
            }
            (Planned::Run { .. }, None) => return Err("a case is to run without a layout".to_owned()),
        };
        match self.map(group) {
            Ok(changed) => *remapped += changed,
            Err(MapFailure::Full(why)) => return Ok(Answer { state: true, ..answer("skipped", Some(why)) }),
            Err(MapFailure::Fatal(why)) => return Err(why),
        }
        listener.launching(wire.id);
        let (launched, damage) = self.launch(plan, index, footprint, wire.seed, listener);
        let Launched { kernel, resolved, refused } = launched;
        let sample = match footprint {
            Footprint::Part { sample, .. } => Some(*sample),
            _ => None,
        };
        let plain = match (refused, damage) {
            (Some(why), _) => answer("refused", Some(why)),
            (None, None) => answer("pass", None),
            (None, Some(d)) => Answer { wrong: Some(d.wrong), access: d.access, ..answer("wrong", d.detail) },
        };
        Ok(Answer { sample, kernel, resolved, ..plain })
    }

    /// Fills, runs and compares one case whose pages are mapped.
    fn launch(
        &mut self,
        plan: &Plan,
        index: usize,
        footprint: &Footprint,
        seed: u64,
        listener: &mut impl Listener,
    ) -> (Launched, Option<Damage>) {
        let instance = &plan.instances[index];
        let Some(layout) = &plan.layout else { return Default::default() };
        let contents = (self.builtin.contents)(instance, seed);
        let placed = Placed { layout, index, instance, boxes: boxes(footprint), pages: &self.mapped };
        let bases = PlacedBases { layout, index };
        // SAFETY: `map` has mapped the pages of the group, among them every element of the footprint, and filled them with
        // the canary; between cases every check leaves it there. No Rust reference points into the arena.
        unsafe {
            self.oracle.fill(placed, &*contents);
            listener.step();
            let launched = self.target.launch(instance, footprint, &bases);
            listener.step();
            if launched.refused.is_some() {
                self.oracle.clear(placed);
                return (launched, None);
            }
            let damage = self.oracle.check(placed, &*contents);
            (launched, damage)
        }
    }

    /// Maps exactly these pages: what is mapped already stays. Gives the number of ranges that changed.
    fn map(&mut self, pages: &PageSet) -> Result<u32, MapFailure> {
        let (gone, new) = (self.mapped.minus(pages), pages.minus(&self.mapped));
        if gone.is_empty() && new.is_empty() {
            return Ok(0);
        }
        let list = |set: &PageSet| set.iter().collect::<Vec<PageRange>>();
        self.arena.unmap(&list(&gone)).map_err(|e| MapFailure::Fatal(e.to_string()))?;
        self.mapped = self.mapped.minus(&gone);
        self.arena.map(&list(&new)).map_err(|e| match e {
            MemoryError::OutOfMemory { .. } | MemoryError::TooManyMappings { .. } => MapFailure::Full(e.to_string()),
            _ => MapFailure::Fatal(e.to_string()),
        })?;
        // SAFETY: the pages were mapped in the line above.
        unsafe { self.oracle.cover(&new) };
        self.mapped = pages.clone();
        Ok((gone.len() + new.len()) as u32)
    }
}
