//! Running one case once, as the shrinker and the commands see it.

use super::signature::Family;
use super::verdict::Verdict;
use crate::problem::{Case, Knobs};
use std::time::Duration;

/// In which kind of process a probe runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Freshness {
    /// A worker that may have run other cases before.
    Warm,
    /// A worker that has run nothing.
    Fresh,
}

/// What one probe came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    pub verdict: Verdict,
    /// Kernel or model that ran, where the target said so.
    pub kernel: Option<String>,
    /// Knobs as resolved by the target.
    pub resolved: Knobs,
    /// Page ranges mapped or unmapped for it.
    pub remapped: u32,
    /// From sending the case to knowing the verdict.
    pub took: Duration,
}

/// Why no verdict can be had any more. The search that asked must end and keep what it has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    #[error("interrupted")]
    Interrupted,
    #[error("the time that --time allows is used up")]
    OutOfTime,
    /// The search for the smallest history has a bound, so that it ends.
    #[error("the replays that the search for a smaller history may take are used up")]
    Spent,
    #[error("{0}")]
    Setup(String),
    #[error("the device no longer passes its health check: {0}")]
    Unhealthy(String),
}

/// Runs cases one at a time.
pub trait Prober {
    /// Runs a case once.
    ///
    /// # Errors
    /// Where no verdict can be had any more.
    fn probe(&mut self, case: &Case, freshness: Freshness) -> Result<Observation, ProbeError>;

    /// Runs a case that hung once more, with a longer time limit. If it answers, how long it took; then every later probe
    /// has that limit.
    ///
    /// # Errors
    /// Where no verdict can be had any more.
    fn answers_late(&mut self, case: &Case) -> Result<Option<Duration>, ProbeError>;

    /// Cost of a probe that fails in a way of this family over the cost of one that passes, as measured so far; at least 1.
    /// `pass`: what a pass costs just now, where it is known better than from the whole run.
    fn cost_ratio(&self, family: Family, pass: Option<Duration>) -> f64;
}
