//! Probing and accepting: the part that all moves share.

use super::anchor::Anchor;
use super::beliefs::{Beliefs, Outcome};
use super::line::{Follow, Line};
use super::observe::{Bad, Counts, Observations, Tally};
use super::order::Key;
use super::result::{LadderStep, Probes, ShrinkEvent, Slip};
use super::{Options, Strategy};
use crate::exec::{Freshness, Observation, ProbeError, Prober, Verdict};
use crate::problem::{Assignment, Case, Problem};
use std::collections::HashSet;
use std::time::Duration;

/// What is known of a case once it was probed often enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// Failed with the signature that is followed.
    Bad,
    /// Failed in another way only.
    Other,
    /// Passed often enough.
    Pass,
    /// Refused, skipped, or not passed often enough within the cap: says nothing.
    Nothing,
    /// No valid case.
    Invalid,
}

/// The state of one shrink.
pub struct Engine<'a> {
    pub problem: &'a Problem,
    prober: &'a mut dyn Prober,
    events: &'a mut dyn FnMut(ShrinkEvent<'_>),
    pub options: &'a Options,
    pub observations: Observations,
    pub beliefs: Beliefs,
    pub anchor: Anchor,
    start: Case,
    pub current: Assignment,
    key: Key,
    pub ladder: Vec<LadderStep>,
    /// What was followed before each step of the ladder.
    anchors: Vec<Anchor>,
    slips: Vec<Slip>,
    /// Passes that a case needs to count as passing.
    pub repeats: u32,
    /// What the search probes in: fresh processes only, once a failure turned out to need a warm one.
    freshness: Freshness,
    judged: HashSet<Assignment>,
    /// What a pass costs just now: a mean in which the last ones count most.
    pass: Option<Duration>,
    pub probes: Probes,
    /// Of the current case.
    pub verdict: Verdict,
}

/// The start of a shrink: a case, the failure to follow, and the verdict that shows it.
pub struct Start {
    pub case: Case,
    pub anchor: Anchor,
    pub verdict: Verdict,
    pub repeats: u32,
    pub observations: Observations,
    pub probes: Probes,
}

impl<'a> Engine<'a> {
    pub fn new(
        problem: &'a Problem,
        start: Start,
        prober: &'a mut dyn Prober,
        options: &'a Options,
        events: &'a mut dyn FnMut(ShrinkEvent<'_>),
    ) -> Engine<'a> {
        let params = start.case.params.clone();
        Engine {
            problem,
            prober,
            events,
            options,
            observations: start.observations,
            beliefs: beliefs(problem, options, &params),
            anchor: start.anchor,
            key: Key::of(problem, &params),
            current: params,
            start: start.case,
            ladder: vec![],
            anchors: vec![],
            slips: vec![],
            repeats: start.repeats,
            freshness: Freshness::Warm,
            judged: HashSet::new(),
            pass: None,
            probes: start.probes,
            verdict: start.verdict,
        }
    }

    pub fn phase(&mut self, name: &'static str) {
        (self.events)(ShrinkEvent::Phase(name));
    }

    pub fn key(&self) -> &Key {
        &self.key
    }

    /// A case with the knobs and the placement of this shrink.
    pub fn case(&self, params: &Assignment) -> Case {
        self.start.with_params(params.clone())
    }

    /// Cost of a failing probe over that of a verdict "pass", which takes several probes where the failure is flaky.
    pub fn cost_ratio(&self) -> f64 {
        match self.options.strategy {
            Strategy::HintFirst => {
                let ratio = self.prober.cost_ratio(self.anchor.signature.family, self.pass);
                (ratio / f64::from(self.repeats)).max(1.0)
            }
            Strategy::PlainBisection => 1.0,
        }
    }

    /// Runs a case once and counts it.
    pub fn probe(&mut self, params: &Assignment, freshness: Freshness) -> Result<Observation, ProbeError> {
        let case = self.case(params);
        let observation = self.prober.probe(&case, freshness)?;
        if observation.verdict.is_pass() {
            self.pass = Some(self.pass.map_or(observation.took, |mean| (mean * 3 + observation.took) / 4));
        }
        self.observations.add(params, freshness, &observation.verdict);
        self.probes.count(&observation.verdict);
        (self.events)(ShrinkEvent::Probed { case: &case, freshness, observation: &observation });
        Ok(observation)
    }

    /// The failures of a case that are the one followed.
    pub fn same<'t>(&self, params: &Assignment, tally: &'t Tally) -> Option<&'t Bad> {
        let follows = |b: &&Bad| self.anchor.holds(params, &b.signature) || self.anchor.leads_away(params, b);
        let bad = tally.bad.iter().filter(follows);
        bad.max_by_key(|b| (b.signature.is_located(), b.runs))
    }

    /// Probes a case until it is known what it is.
    pub fn classify(&mut self, params: &Assignment) -> Result<Seen, ProbeError> {
        if self.problem.check(params).is_err() {
            return Ok(Seen::Invalid);
        }
        loop {
            let tally = self.tally(params);
            let seen = if self.same(params, &tally).is_some() {
                Seen::Bad
            } else if tally.failures() > 0 {
                Seen::Other
            } else if tally.passes >= self.repeats {
                Seen::Pass
            } else if tally.not_run > 0 || tally.passes >= self.options.max_repeats {
                Seen::Nothing
            } else {
                self.probe(params, self.freshness)?;
                continue;
            };
            self.judge(params, seen, &tally);
            return Ok(seen);
        }
    }

    /// Takes a finished case into account once.
    fn judge(&mut self, params: &Assignment, seen: Seen, tally: &Tally) {
        if self.judged.contains(params) {
            return;
        }
        let outcome = match seen {
            Seen::Bad => Outcome::Bad,
            Seen::Pass => Outcome::Good,
            Seen::Other => Outcome::Elsewhere,
            Seen::Nothing | Seen::Invalid => return,
        };
        if seen == Seen::Other {
            self.slip(params, tally);
        }
        self.beliefs.observe(self.problem, params, outcome);
        self.judged.insert(params.clone());
    }

    /// Keeps the least case of every other signature that was met.
    fn slip(&mut self, params: &Assignment, tally: &Tally) {
        for bad in &tally.bad {
            let case = self.start.with_params(params.clone());
            match self.slips.iter_mut().find(|s| s.signature == bad.signature) {
                None => {
                    self.slips.push(Slip { case, signature: bad.signature.clone(), verdict: bad.verdict.clone() });
                }
                Some(s) if Key::of(self.problem, params) < Key::of(self.problem, &s.case.params) => {
                    (s.case, s.verdict) = (case, bad.verdict.clone());
                }
                Some(_) => {}
            }
        }
    }

    /// Failures that were met and turned out not to be the one followed.
    pub fn slips(&self) -> Vec<Slip> {
        let mine = |s: &Slip| s.signature.is_located() && s.signature.matches(&self.anchor.signature);
        self.slips.iter().filter(|s| !mine(s)).cloned().collect()
    }

    /// Whether a case is smaller than the current one.
    pub fn is_smaller(&self, params: &Assignment) -> bool {
        Key::of(self.problem, params) < self.key
    }

    /// Probes a case and makes it the current one if it is smaller and fails in the same way.
    pub fn step(&mut self, params: &Assignment, by: &'static str) -> Result<Seen, ProbeError> {
        let mut seen = self.classify(params)?;
        if seen == Seen::Other && self.is_smaller(params) && self.lies_beside_a_place(params)? {
            seen = Seen::Bad;
        }
        if seen == Seen::Bad && self.is_smaller(params) {
            self.accept(params, by);
        }
        Ok(seen)
    }

    /// Whether a failure without a place has one on its line: the current case fails without a place too, and the case
    /// that shows its place differs in one parameter; with that parameter, `params` shows the same place. Otherwise no
    /// other parameter of such a case could be lowered.
    fn lies_beside_a_place(&mut self, params: &Assignment) -> Result<bool, ProbeError> {
        let tally = self.tally(params);
        let silent = |b: &Bad| !b.signature.is_located() && b.signature.matches(&self.anchor.signature);
        let Some(sibling) = self.anchor.beside(&self.current, params).filter(|_| tally.bad.iter().any(silent)) else {
            return Ok(false);
        };
        if self.classify(&sibling)? != Seen::Bad {
            return Ok(false);
        }
        let tally = self.tally(&sibling);
        let located = self.same(&sibling, &tally).is_some_and(|b| b.signature.is_located());
        if located {
            self.anchor.return_to(&sibling);
        }
        Ok(located)
    }

    /// As [`step`](Self::step), for candidates that are worth a probe only if they are smaller; whether it was accepted.
    pub fn consider(&mut self, params: &Assignment, by: &'static str) -> Result<bool, ProbeError> {
        if !self.is_smaller(params) {
            return Ok(false);
        }
        Ok(self.step(params, by)? == Seen::Bad)
    }

    /// As [`consider`](Self::consider), for a case whose integer `param` was solved for. A result that is only wrong says
    /// nothing of where; if a neighbour along that parameter faults in the way followed, it is the way there.
    pub fn consider_solved(&mut self, params: &Assignment, param: usize, by: &'static str) -> Result<bool, ProbeError> {
        if self.consider(params, by)? {
            return Ok(true);
        }
        let tally = self.tally(params);
        if tally.bad.iter().all(|b| b.signature.is_located() || !b.signature.matches(&self.anchor.signature)) {
            return Ok(false);
        }
        let line = Line::new(self.problem, params, &[param], Follow::Held);
        for ahead in [1, 17] {
            let sibling = line.round_up(line.value().saturating_add(ahead)).and_then(|v| line.at(v));
            if let Some(sibling) = sibling
                && self.consider(&sibling, by)?
            {
                self.consider(params, by)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn accept(&mut self, params: &Assignment, by: &'static str) {
        let tally = self.tally(params);
        let Some(bad) = self.same(params, &tally).cloned() else { return };
        self.anchors.push(self.anchor.clone());
        let place = self.anchor.signature.place;
        self.anchor.follow(params, &bad);
        if place.is_some() && self.anchor.signature.place != place {
            // What was concluded from cases that failed nearby no longer holds.
            self.forget();
        }
        self.key = Key::of(self.problem, params);
        self.current = params.clone();
        let step = LadderStep { by, case: self.case(params), verdict: bad.verdict.word() };
        self.verdict = bad.verdict;
        (self.events)(ShrinkEvent::Accepted(&step));
        self.ladder.push(step);
    }

    /// What counts of a case: all runs, or only those in fresh processes once the search is confined to them.
    fn tally(&self, params: &Assignment) -> Tally {
        match self.freshness {
            Freshness::Warm => self.observations.all(params),
            Freshness::Fresh => self.observations.of(params, Freshness::Fresh),
        }
    }

    /// Counts of the runs in fresh processes.
    pub fn fresh_counts(&self, params: &Assignment) -> Counts {
        self.observations.of(params, Freshness::Fresh).counts(|s| self.anchor.holds(params, s))
    }

    /// Takes the last step back, because the case does not fail in a fresh process, and confines the search to those;
    /// false at the start.
    pub fn go_back(&mut self) -> bool {
        if self.ladder.pop().is_none() {
            return false;
        }
        if let Some(anchor) = self.anchors.pop() {
            self.anchor = anchor;
        }
        let before = self.ladder.last().map_or_else(|| self.start.params.clone(), |s| s.case.params.clone());
        self.freshness = Freshness::Fresh;
        self.forget();
        let tally = self.observations.all(&before);
        if let Some(bad) = self.same(&before, &tally).cloned() {
            self.verdict = bad.verdict;
        }
        self.key = Key::of(self.problem, &before);
        self.current = before;
        true
    }

    /// A case now has to pass so often to count as passing: what was concluded from fewer passes is forgotten.
    pub fn need_repeats(&mut self, repeats: u32) {
        self.repeats = repeats;
        self.forget();
    }

    /// Whether the current case, a hang, answers when given longer: it was only slow, and so may be what led here.
    pub fn was_slow(&mut self) -> Result<bool, ProbeError> {
        if !matches!(self.verdict, Verdict::Hang { .. }) {
            return Ok(false);
        }
        let case = self.case(&self.current);
        let late = self.prober.answers_late(&case)?;
        if let Some(took) = late {
            (self.events)(ShrinkEvent::Slow { case: &case, took });
        }
        Ok(late.is_some())
    }

    fn forget(&mut self) {
        self.beliefs = beliefs(self.problem, self.options, &self.start.params);
        self.judged.clear();
    }

    /// Value of a parameter in the start case.
    pub fn start_value(&self, param: usize) -> i64 {
        self.start.params[param]
    }

    /// Free integers that have a meaning in a case.
    pub fn integers(&self, values: &Assignment) -> Vec<usize> {
        (0..self.problem.params.len())
            .filter(|i| !self.problem.params[*i].is_choice() && super::line::is_free(self.problem, *i))
            .filter(|i| self.problem.is_active(*i, &values.0))
            .collect()
    }
}

fn beliefs(problem: &Problem, options: &Options, start: &Assignment) -> Beliefs {
    match options.strategy {
        Strategy::HintFirst => Beliefs::new(problem, start),
        Strategy::PlainBisection => Beliefs::default(),
    }
}
