//! What a shrink returns, and what it tells on the way.

use super::observe::Counts;
use super::rate::Rate;
use crate::exec::{Freshness, Observation, ProbeError, Signature, Verdict};
use crate::problem::Case;
use std::time::Duration;

/// One accepted step.
#[derive(Debug, Clone, PartialEq)]
pub struct LadderStep {
    /// Name of the move.
    pub by: &'static str,
    pub case: Case,
    /// Word of the verdict: `fault`, `wrong`, ...
    pub verdict: &'static str,
}

/// A case and how its runs in fresh processes went after shrinking had ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Side {
    pub case: Case,
    pub counts: Counts,
}

/// In which direction of a parameter the case gets good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Down,
    Up,
}

/// What is certain about one parameter that matters.
#[derive(Debug, Clone, PartialEq)]
pub enum WitnessStatus {
    /// Both sides were re-run in fresh processes, every run as stated; `steps` legal steps lie between them (1 unless
    /// nearer neighbours cannot run).
    Certified { direction: Direction, steps: u32 },
    /// One sentence why not.
    NotCertified(String),
}

/// The pair of cases around the line of one integer.
#[derive(Debug, Clone, PartialEq)]
pub struct Witness {
    /// Index of the parameter.
    pub param: usize,
    pub first_bad: Side,
    pub last_good: Option<Side>,
    pub status: WitnessStatus,
}

/// What another value of a choice does to the minimal case.
#[derive(Debug, Clone, PartialEq)]
pub enum ChoiceEffect {
    /// It passes: the choice matters.
    Passes,
    /// It fails in the same way.
    Same,
    /// It fails in another way.
    FailsOtherwise(Signature),
    /// No case, refused or skipped; why.
    NotRun(String),
}

/// One other value of a choice parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    pub param: usize,
    /// Stored value.
    pub value: i64,
    pub effect: ChoiceEffect,
}

/// Passing values above the boundary of a parameter: the failure ends again.
#[derive(Debug, Clone, PartialEq)]
pub struct Island {
    pub param: usize,
    /// A passing case above the boundary.
    pub case: Case,
    /// Least passing value found adjacent to a failing one below it.
    pub from: i64,
    /// Least failing value found above, where one is known.
    pub bad_again: Option<i64>,
}

/// A failure with another signature, met on the way: a finding of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Slip {
    pub case: Case,
    pub signature: Signature,
    pub verdict: Verdict,
}

/// Probes by what they cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Probes {
    pub passed: u64,
    /// Ended their process: faults, hangs, crashes.
    pub faulted: u64,
    /// Wrong results, refusals, skips.
    pub other: u64,
}

impl Probes {
    pub fn count(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Pass { .. } => self.passed += 1,
            v if v.ends_worker() => self.faulted += 1,
            _ => self.other += 1,
        }
    }

    pub fn add(&mut self, more: Probes) {
        self.passed += more.passed;
        self.faulted += more.faulted;
        self.other += more.other;
    }
}

/// The end of a shrink.
#[derive(Debug, Clone, PartialEq)]
pub struct Shrunk {
    pub minimal: Case,
    /// Of the last run of the minimal case with the signature, in a fresh process where it got that far.
    pub verdict: Verdict,
    /// What all accepted cases have in common, as far as any of them knew.
    pub signature: Signature,
    pub ladder: Vec<LadderStep>,
    /// One per active free integer that matters.
    pub witnesses: Vec<Witness>,
    pub choices: Vec<Choice>,
    /// Integers at their least value whose every tried larger value fails in the same way, raised alone or all together:
    /// index, and variants tried.
    pub irrelevant: Vec<(usize, u32)>,
    /// A case comfortably past the line, with the parameter that was raised.
    pub far: Option<(usize, Side)>,
    pub islands: Vec<Island>,
    pub slips: Vec<Slip>,
    /// Fresh runs of the minimal case.
    pub confirmed: Counts,
    /// Failure rate of the minimal case in fresh processes.
    pub rate: Rate,
    pub probes: Probes,
    pub took: Duration,
    /// Why it ended early: everything above is what was known by then, and witnesses may be missing.
    pub stopped: Option<ProbeError>,
}

/// Why there is nothing to return.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NotShrunk {
    #[error("the start case is no case of the problem: {0}")]
    Invalid(#[from] crate::problem::Invalid),
    #[error("the start case did not fail in {0} runs in fresh processes; replay what ran before it")]
    DoesNotFail(u32),
    #[error("the start case was not run ({0})")]
    NotRun(String),
    #[error("the start case fails with another signature ({0}) than the one asked for")]
    AnotherSignature(Signature),
    #[error(transparent)]
    Probe(#[from] ProbeError),
}

/// Told while shrinking.
#[derive(Debug)]
pub enum ShrinkEvent<'a> {
    /// A new phase begins.
    Phase(&'static str),
    /// The smallest case so far was slow, no hang: shrinking starts again, with a longer time limit.
    Slow {
        case: &'a Case,
        took: Duration,
    },
    Probed {
        case: &'a Case,
        freshness: Freshness,
        observation: &'a Observation,
    },
    /// A smaller case became the current one.
    Accepted(&'a LadderStep),
}
