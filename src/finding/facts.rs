//! What is known of a failure once it is shrunk: the input of a [`Finding`](super::Finding).

use super::environment::Environment;
use crate::exec::history::{Earlier, resolved};
use crate::exec::{Signature, Verdict};
use crate::problem::{Assignment, Case, Narrow, Problem};
use crate::target::TargetSpec;
use std::sync::Arc;

/// Runs, and how many of them went badly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub runs: u32,
    pub failed: u32,
}

/// Whether both sides of a pair were re-run and stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Certified {
    /// They did; so many legal steps lie between them (1 unless nearer neighbours cannot run).
    Yes { steps: u32 },
    /// Why not.
    No(String),
}

/// Two cases that differ from the minimal case in one parameter only: the last good and the first bad value of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    /// Index of the parameter.
    pub param: usize,
    /// Stored value and runs of the last good case, where there is one.
    pub good: Option<(i64, Tally)>,
    /// Stored value and runs of the first bad case.
    pub bad: (i64, Tally),
    pub certified: Certified,
}

/// What another value of a choice does to the minimal case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// It passes: the choice matters.
    Passes,
    /// It fails in the same way.
    Same,
    /// It fails in another way, in short.
    Differs(String),
    /// Why it says nothing.
    NotRun(String),
}

/// The minimal case with another value of one choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub param: usize,
    /// Stored value.
    pub value: i64,
    pub effect: Effect,
}

/// A case comfortably past the line: it stays bad when the line moves a little.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Far {
    pub params: Assignment,
    pub tally: Tally,
}

/// Which ranks fail in the minimal case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ranks {
    pub failing: Vec<u32>,
    pub passing: Vec<u32>,
    pub not_run: Vec<u32>,
    /// Rank whose copy of the operand was hit.
    pub copy: Option<u32>,
}

/// How often both sides of the line were run, in fresh processes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Confirmation {
    /// The minimal case.
    pub bad: Tally,
    /// Its good neighbours, all together.
    pub good: Tally,
    /// 95% interval of the failure rate, where the failure does not come every time.
    pub rate: Option<(f64, f64)>,
}

/// What has to run before the minimal case, in the same process, for it to fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// In order; at least one.
    pub before: Vec<Earlier>,
    /// Cases that the process had run when the failure was seen first.
    pub found_after: u32,
    /// The minimal case without them, in fresh processes: it never failed.
    pub alone: Tally,
}

/// A step that the shrinker took: which move, and the case it led to, in short form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub by: String,
    pub case: String,
}

/// Everything that a finding states, in the program's own types.
#[derive(Debug, Clone)]
pub struct Facts {
    /// May be narrowed by limits and pins; the finding keeps the problem as it describes itself.
    pub problem: Arc<Problem>,
    /// The library may be given by its path; the finding keeps the file name and moves the path to the environment.
    pub target: TargetSpec,
    /// What the user pinned.
    pub pins: Vec<Narrow>,
    /// `strided` or `packed`.
    pub profile: String,
    /// Seed of the run, and of the operand contents.
    pub seed: u64,
    /// Of the minimal case; a bad one.
    pub verdict: Verdict,
    pub signature: Signature,
    pub minimal: Case,
    /// As it was found.
    pub original: Case,
    /// Where the minimal case fails only after others in the same process.
    pub history: Option<History>,
    pub witnesses: Vec<Witness>,
    pub far: Option<Far>,
    pub choices: Vec<Choice>,
    /// Integers that make no difference, and how many other values of each were tried.
    pub irrelevant: Vec<(usize, u32)>,
    /// Clean islands and other surprises along the line, a sentence each.
    pub windows: Vec<String>,
    pub ranks: Option<Ranks>,
    pub confirmation: Confirmation,
    /// Other failures met on the way: names of their findings, or short cases.
    pub slips: Vec<String>,
    pub ladder: Vec<Step>,
    pub environment: Environment,
}

impl Facts {
    /// The problem under the pins and the profile: what a change of one parameter drags along is decided by those.
    ///
    /// # Errors
    /// A sentence, where the pins do not fit the problem.
    pub fn narrowed(&self) -> Result<Problem, String> {
        let narrowed = self.problem.narrowed(&self.pins)?;
        if self.profile == "packed" { narrowed.narrowed(&narrowed.packed()) } else { Ok(narrowed) }
    }

    /// What has to run before a case of this finding, in the same process.
    pub fn before(&self, case: &Case) -> Vec<Case> {
        self.history.as_ref().map_or_else(Vec::new, |h| resolved(&h.before, case))
    }

    /// What happened in the minimal case, one sentence without a full stop.
    pub fn title(&self) -> String {
        super::title::sentence(self)
    }
}
