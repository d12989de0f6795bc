//! How far a hunt has come. All of it follows from the seed, the answers and the effects that the journal holds.

use super::Found;
use super::digest::Digests;
use crate::exec::pool::Pool;
use crate::finding::store::{Answer, Effect, Spent};
use crate::problem::Problem;
use crate::report::event::Tally;
use crate::search::{Coverage, Origin, Planned};
use std::collections::{BTreeMap, BTreeSet};

/// How far a hunt has come.
#[derive(Debug)]
pub struct State {
    pub(super) tally: Tally,
    /// With the cases that ran and are not taken yet: what progress shows.
    pub(super) ran: Tally,
    pub(super) coverage: Coverage,
    pub(super) digests: Digests,
    pub(super) counts: Counts,
    /// The first round that is not complete.
    pub(super) round: u64,
    /// What is known of it from a run that was cut short.
    pub(super) begun: Begun,
    /// What the last complete round came upon.
    pub(super) found: Option<Found>,
    /// What earlier runs of this hunt used.
    pub(super) before: Spent,
}

/// A round that was cut short: what of it is settled.
#[derive(Debug, Default)]
pub struct Begun {
    /// Cases that the journal says failed.
    pub bad: BTreeSet<u64>,
    pub settled: BTreeSet<u64>,
    /// A finding that may have been written, of which case, and what had become of that case.
    pub filing: Option<(u64, String, Vec<Effect>)>,
    pub found: Option<Found>,
}

/// One case of a round.
#[derive(Debug)]
pub struct Numbered {
    pub id: u64,
    pub planned: Planned,
    pub origin: Origin,
}

impl State {
    /// Of a hunt that has not begun.
    pub fn new(pool: &Pool) -> State {
        State {
            tally: Tally::default(),
            ran: Tally::default(),
            coverage: Coverage::new(pool.problem(), pool.hello().arena.page_bytes as i64),
            digests: Digests::default(),
            counts: Counts::default(),
            round: 0,
            begun: Begun::default(),
            found: None,
            before: Spent::default(),
        }
    }

    /// Takes the answer of the next case.
    pub(super) fn record(&mut self, problem: &Problem, numbered: &Numbered, answer: &Answer) {
        self.tally.count(&answer.verdict, answer.sampled);
        self.digests.add(problem, numbered.id, &numbered.planned.case, answer);
        self.coverage.record(problem, &numbered.planned, numbered.origin, &answer.verdict);
    }
}

/// What became of bad cases.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub known: BTreeMap<String, u64>,
    /// Of these, what the store does not hold yet.
    pub unsaved: BTreeMap<String, u64>,
    /// Every case below this number is settled.
    pub settled: u64,
    pub gap_notes: u64,
    pub slow: u64,
    pub not_shrunk: u64,
    /// Signatures of which a case was saved without being looked into.
    pub raw: BTreeSet<String>,
    pub unreproduced: u64,
    pub findings: Vec<String>,
    /// Shrinks so far, by signature as text.
    shrinks: BTreeMap<String, u32>,
    /// Effects of the case under work, for the journal.
    pub fresh: Vec<Effect>,
}

impl Counts {
    /// Something became of the case under work.
    pub fn add(&mut self, effect: Effect) {
        self.apply(&effect);
        self.fresh.push(effect);
    }

    pub fn apply(&mut self, effect: &Effect) {
        match effect {
            Effect::New(name) => self.findings.push(name.clone()),
            Effect::Known(name) => *self.known.entry(name.clone()).or_default() += 1,
            Effect::Shrunk(signature) => *self.shrinks.entry(signature.clone()).or_default() += 1,
            Effect::Raw(signature) => {
                self.raw.insert(signature.clone());
            }
            Effect::NotShrunk => self.not_shrunk += 1,
            Effect::GapNote => self.gap_notes += 1,
            Effect::Slow => self.slow += 1,
            Effect::Unreproduced => self.unreproduced += 1,
        }
    }

    /// The case is settled, and the journal holds these effects. `counted`: the store holds those of known findings.
    pub fn settle(&mut self, id: u64, effects: &[Effect], counted: bool) {
        self.settled = id.saturating_add(1);
        for effect in effects {
            if let Effect::Known(name) = effect
                && !counted
            {
                *self.unsaved.entry(name.clone()).or_default() += 1;
            }
        }
    }

    /// Whether a signature was shrunk often enough.
    pub fn capped(&self, signature: &str, cap: u32) -> bool {
        self.shrinks.get(signature).is_some_and(|n| *n >= cap)
    }
}

/// The finding that effects say a case belongs to, if any.
pub(super) fn found(effects: &[Effect]) -> Option<Found> {
    effects.iter().find_map(|e| match e {
        Effect::New(_) => Some(Found::New),
        Effect::Known(_) => Some(Found::Known),
        _ => None,
    })
}
