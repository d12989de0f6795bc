//! Cases that fail only after others in the same process: running a list of cases and then the case.

use super::blame::{GapRule, settle_gap_after};
use super::job::{CaseResult, Job};
use super::pool::{LONG_LOOK, Pool};
use super::probe::{Freshness, Observation, ProbeError, Prober};
use super::signature::Family;
use super::verdict::Verdict;
use crate::problem::Case;
use std::time::Duration;

/// Why a case says nothing after a list of which another case ended the process.
pub const LOST: &str = "one of the cases that run before it ended the process";

/// A case that runs before another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Earlier {
    /// The case that fails, itself: it follows where that one changes.
    Same,
    Case(Case),
}

/// A list in which every launch of `case` itself follows it.
pub fn relative(before: &[Case], case: &Case) -> Vec<Earlier> {
    before.iter().map(|c| if c == case { Earlier::Same } else { Earlier::Case(c.clone()) }).collect()
}

/// The cases of a list.
pub fn resolved(list: &[Earlier], case: &Case) -> Vec<Case> {
    let of = |e: &Earlier| match e {
        Earlier::Same => case.clone(),
        Earlier::Case(c) => c.clone(),
    };
    list.iter().map(of).collect()
}

/// Runs a list in a fresh process, then the case, whose reads between rows are settled as alone; `None` where one of the
/// list ended the process. An empty list runs the case alone.
///
/// # Errors
/// Where no verdict can be had any more.
pub fn run(
    pool: &Pool,
    before: &[Case],
    case: &Case,
    seed: u64,
    rule: GapRule,
) -> Result<Option<CaseResult>, ProbeError> {
    let Some(mut result) = pool.run_after(before, &Job::single(0, case, seed))? else { return Ok(None) };
    result.verdict = settle_gap_after(pool, before, case, seed, &result, rule)?.verdict;
    Ok(Some(result))
}

/// Why a filed list cannot be run here: the first of its cases that a fresh process refuses or skips, in a sentence. Without
/// that case the last one would say nothing.
///
/// # Errors
/// Where no verdict can be had any more.
pub fn declined(pool: &Pool, before: &[Case], seed: u64) -> Result<Option<String>, ProbeError> {
    for case in before {
        let result = pool.run_after(&[], &Job::single(0, case, seed))?;
        if let Some(Verdict::Refused { detail } | Verdict::Skipped { detail, .. }) = result.map(|r| r.verdict) {
            let short = pool.problem().short(&case.params);
            return Ok(Some(format!("{short}, which has to run before it, does not run here: {detail}")));
        }
    }
    Ok(None)
}

/// Runs that a search for the smallest history may still spend.
#[derive(Debug)]
pub struct Budget {
    pub replays: u32,
    pub launches: u64,
}

impl Budget {
    /// Takes one replay of a list.
    ///
    /// # Errors
    /// [`ProbeError::Spent`], where nothing is left.
    pub fn take(&mut self, list: usize) -> Result<(), ProbeError> {
        let launches = list as u64 + 1;
        if self.replays == 0 || self.launches < launches {
            return Err(ProbeError::Spent);
        }
        self.replays -= 1;
        self.launches -= launches;
        Ok(())
    }
}

/// Which part of a history a prober is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vary {
    /// The case that fails.
    Last,
    /// The case of the list with this index: it fails if the last one does.
    Earlier(usize),
}

/// Probes a case together with what runs before it, each time in a fresh process.
#[derive(Debug)]
pub struct ListProber<'a> {
    pub pool: &'a Pool,
    pub seed: u64,
    pub rule: GapRule,
    pub list: Vec<Earlier>,
    pub case: Case,
    pub vary: Vary,
    pub budget: &'a mut Budget,
}

impl ListProber<'_> {
    /// The list and the case, with `varied` in its place.
    fn with(&self, varied: &Case) -> (Vec<Case>, Case) {
        match self.vary {
            Vary::Last => (resolved(&self.list, varied), varied.clone()),
            Vary::Earlier(index) => {
                let mut before = resolved(&self.list, &self.case);
                before[index] = varied.clone();
                (before, self.case.clone())
            }
        }
    }

    /// Whether a case needs no list: then it is another failure.
    fn fails_alone(&mut self, case: &Case) -> Result<bool, ProbeError> {
        self.budget.take(0)?;
        Ok(run(self.pool, &[], case, self.seed, self.rule)?.is_some_and(|r| r.verdict.is_bad()))
    }
}

/// What says nothing about a history.
fn nothing(why: &str) -> Observation {
    let verdict = Verdict::Skipped { detail: why.to_owned(), state: false };
    Observation { verdict, kernel: None, resolved: Default::default(), remapped: 0, took: Duration::ZERO }
}

impl Prober for ListProber<'_> {
    fn probe(&mut self, varied: &Case, _: Freshness) -> Result<Observation, ProbeError> {
        let (before, case) = self.with(varied);
        self.budget.take(before.len())?;
        let Some(r) = run(self.pool, &before, &case, self.seed, self.rule)? else { return Ok(nothing(LOST)) };
        if r.verdict.is_bad() && self.vary == Vary::Last && self.fails_alone(&case)? {
            return Ok(nothing("it fails alone, too"));
        }
        let CaseResult { verdict, kernel, resolved, remapped, took, .. } = r;
        Ok(Observation { verdict, kernel, resolved, remapped, took })
    }

    fn answers_late(&mut self, varied: &Case) -> Result<Option<Duration>, ProbeError> {
        let (before, case) = self.with(varied);
        self.budget.take(before.len())?;
        let job = Job { patience: LONG_LOOK, ..Job::single(0, &case, self.seed) };
        let result = self.pool.run_after(&before, &job)?;
        let late = result.filter(|r| !matches!(r.verdict, Verdict::Hang { .. }));
        if late.is_some() {
            self.pool.raise_limit();
        }
        Ok(late.map(|r| r.took))
    }

    /// Every probe costs a process, whatever it comes to.
    fn cost_ratio(&self, _: Family, _: Option<Duration>) -> f64 {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Builtin, Placement};

    #[test]
    fn launches_of_the_case_itself_follow_it() {
        let problem = Builtin::find("gemm").unwrap().problem();
        let case = |m| {
            let mut params = problem.plainest().unwrap();
            params[problem.param("m").unwrap()] = m;
            Case { params, knobs: Default::default(), placement: Placement::END }
        };
        let list = relative(&[case(1), case(2), case(1)], &case(1));
        assert_eq!(list, [Earlier::Same, Earlier::Case(case(2)), Earlier::Same]);
        assert_eq!(resolved(&list, &case(3)), [case(3), case(2), case(3)]);
    }

    #[test]
    fn a_budget_ends_with_its_replays_or_its_launches() {
        let mut budget = Budget { replays: 2, launches: 100 };
        assert_eq!([budget.take(1), budget.take(1), budget.take(1)], [Ok(()), Ok(()), Err(ProbeError::Spent)]);
        let mut budget = Budget { replays: 9, launches: 100 };
        assert_eq!([budget.take(60), budget.take(60), budget.take(30)], [Ok(()), Err(ProbeError::Spent), Ok(())]);
    }
}
