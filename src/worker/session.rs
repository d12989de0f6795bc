//! Answers lines: maps what a layout needs, then fills, launches and compares case after case.

use super::ground::{Ground, Loss};
use super::layout::Layout;
use super::oracle::{BrokenOracle, Damage, Placed};
use super::pages::PageSet;
use super::plan::{Plan, Planned, boxes};
use crate::device::MemoryError;
use crate::evidence::GpuFault;
use crate::exec::protocol::{Answer, ArenaSpan, AskKnobs, CRASH, KnobsAnswer, LayoutLine, WireCase};
use crate::problem::{Builtin, Case, Placement, Problem};
use crate::target::{Bases, Footprint, Launched, Target};
use std::ptr;
use std::sync::Arc;

/// A loaded target and the memory it runs in.
pub struct Session {
    builtin: Builtin,
    problem: Arc<Problem>,
    target: Box<dyn Target>,
    ground: Box<dyn Ground>,
    /// What is mapped; every byte of it holds the canary between two cases.
    mapped: PageSet,
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

/// What came of running a case.
enum Ran {
    Ended(Launched, Option<Damage>),
    /// The device is lost.
    Fault(Launched, GpuFault),
}

/// Whether a session can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Usable,
    /// The device is of no more use to this process: it has to end.
    Lost,
}

/// Why pages could not be had.
enum MapFailure {
    /// Answer "skipped".
    Full(String),
    /// The worker has to end.
    Fatal(String),
}

impl Session {
    pub fn new(
        builtin: Builtin,
        target: Box<dyn Target>,
        ground: Box<dyn Ground>,
        broken: Option<BrokenOracle>,
    ) -> Session {
        Session { builtin, problem: builtin.problem(), target, ground, mapped: PageSet::default(), broken }
    }

    pub fn target(&self) -> &dyn Target {
        &*self.target
    }

    pub fn arena(&self) -> ArenaSpan {
        self.ground.arena()
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
            knobs: ask.knobs.clone(),
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
    pub fn layout(&mut self, line: &LayoutLine, listener: &mut impl Listener) -> Result<State, String> {
        let plan = Plan::of(line, &self.problem, &*self.target, &self.arena(), self.broken)?;
        let mut remapped = 0;
        for id in &line.run {
            let index = line.cases.iter().position(|c| c.id == *id).ok_or_else(|| {
                format!("case {id} is to run, but it is not among the cases of layout {}", line.layout)
            })?;
            let mut answer = self.case(&plan, index, &line.cases[index], &mut remapped, listener)?;
            answer.remapped = std::mem::take(&mut remapped);
            listener.answer(&answer)?;
            if answer.fault.is_some() || answer.verdict == CRASH {
                return Ok(State::Lost);
            }
        }
        Ok(State::Usable)
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
            fault: None,
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
        let (launched, damage) = match self.launch(plan, index, footprint, wire.seed, listener)? {
            Ran::Ended(launched, damage) => (launched, damage),
            Ran::Fault(Launched { kernel, resolved, .. }, fault) => {
                return Ok(Answer { fault: Some(fault), kernel, resolved, ..answer("fault", None) });
            }
        };
        let Launched { kernel, resolved, refused, failed } = launched;
        let sample = match footprint {
            Footprint::Part { sample, .. } => Some(*sample),
            _ => None,
        };
        let plain = match (failed, refused, damage) {
            (Some(how), ..) => answer(CRASH, Some(how)),
            (None, Some(why), _) => answer("refused", Some(why)),
            (None, None, None) => answer("pass", None),
            (None, None, Some(d)) => Answer { wrong: Some(d.wrong), access: d.access, ..answer("wrong", d.detail) },
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
    ) -> Result<Ran, String> {
        let instance = &plan.instances[index];
        let Some(layout) = &plan.layout else { return Err("a case is to run without a layout".to_owned()) };
        let contents = (self.builtin.contents)(instance, seed);
        let placed = Placed { layout, index, instance, boxes: boxes(footprint), pages: &self.mapped };
        let bases = PlacedBases { layout, index };
        // SAFETY: `map` has mapped the pages of the group, among them every element of the footprint, and filled them with
        // the canary; between cases every check leaves it there. No Rust reference points into the arena.
        unsafe {
            self.ground.fill(placed, &*contents)?;
            listener.step();
            let launched = self.target.launch(instance, footprint, &bases);
            let settled = self.ground.settle();
            listener.step();
            match settled {
                Ok(()) => {}
                Err(Loss::Fault(fault)) => return Ok(Ran::Fault(launched, fault)),
                Err(Loss::Broken(why)) => return Err(why),
            }
            if launched.failed.is_some() {
                return Ok(Ran::Ended(launched, None));
            }
            if launched.refused.is_some() {
                self.ground.clear(placed)?;
                return Ok(Ran::Ended(launched, None));
            }
            match self.ground.check(placed, &*contents) {
                Ok(damage) => Ok(Ran::Ended(launched, damage)),
                Err(Loss::Fault(fault)) => Ok(Ran::Fault(launched, fault)),
                Err(Loss::Broken(why)) => Err(why),
            }
        }
    }

    /// Maps exactly these pages: what is mapped already stays. Gives the number of ranges that changed.
    fn map(&mut self, pages: &PageSet) -> Result<u32, MapFailure> {
        let (gone, new) = (self.mapped.minus(pages), pages.minus(&self.mapped));
        if gone.is_empty() && new.is_empty() {
            return Ok(0);
        }
        self.ground.unmap(&gone).map_err(|e| MapFailure::Fatal(e.to_string()))?;
        self.mapped = self.mapped.minus(&gone);
        self.ground.map(&new).map_err(|e| match e {
            MemoryError::OutOfMemory { .. } | MemoryError::TooManyMappings { .. } | MemoryError::CardFull { .. } => {
                MapFailure::Full(e.to_string())
            }
            _ => MapFailure::Fatal(e.to_string()),
        })?;
        self.mapped = pages.clone();
        Ok((gone.len() + new.len()) as u32)
    }
}
