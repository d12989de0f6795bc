//! What was observed: counts per case and freshness, never a boolean.

use crate::exec::{Freshness, Signature, Verdict};
use crate::problem::Assignment;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// How the runs of one case went, in numbers for reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub runs: u32,
    /// Bad with the signature that is followed.
    pub bad: u32,
    /// Bad in another way.
    pub other: u32,
    pub passes: u32,
    /// Passes among these that did not run the extreme offsets.
    pub weak: u32,
    /// Refused or skipped.
    pub not_run: u32,
}

/// One way in which a case went badly, and how often.
#[derive(Debug, Clone, PartialEq)]
pub struct Bad {
    pub signature: Signature,
    /// The first verdict with this signature.
    pub verdict: Verdict,
    pub runs: u32,
}

/// Everything observed of one case.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    pub bad: Vec<Bad>,
    pub passes: u32,
    pub weak: u32,
    /// Refused or skipped, and why the last time.
    pub not_run: u32,
    pub why_not: Option<String>,
}

impl Tally {
    fn add(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Pass { .. } => {
                self.passes += 1;
                self.weak += u32::from(!verdict.is_witness_pass());
            }
            Verdict::Refused { detail } | Verdict::Skipped { detail, .. } => {
                self.not_run += 1;
                self.why_not = Some(format!("{}: {detail}", verdict.word()));
            }
            bad => {
                let Some(signature) = Signature::of(bad) else { return };
                self.add_bad(Bad { signature, verdict: bad.clone(), runs: 1 });
            }
        }
    }

    fn add_bad(&mut self, bad: Bad) {
        match self.bad.iter_mut().find(|b| b.signature == bad.signature) {
            Some(b) => b.runs += bad.runs,
            None => self.bad.push(bad),
        }
    }

    fn merge(&mut self, other: &Tally) {
        other.bad.iter().for_each(|b| self.add_bad(b.clone()));
        self.passes += other.passes;
        self.weak += other.weak;
        self.not_run += other.not_run;
        self.why_not = self.why_not.take().or_else(|| other.why_not.clone());
    }

    /// Runs that went badly, in whichever way.
    pub fn failures(&self) -> u32 {
        self.bad.iter().map(|b| b.runs).sum()
    }

    /// The counts, where `same` says which signatures are the one followed.
    pub fn counts(&self, same: impl Fn(&Signature) -> bool) -> Counts {
        let bad = self.bad.iter().filter(|b| same(&b.signature)).map(|b| b.runs).sum();
        let other = self.failures() - bad;
        Counts {
            runs: bad + other + self.passes + self.not_run,
            bad,
            other,
            passes: self.passes,
            weak: self.weak,
            not_run: self.not_run,
        }
    }
}

/// All observations of one finding, in memory. Knobs and placement are the same for all of them.
#[derive(Debug, Clone, Default)]
pub struct Observations {
    tallies: HashMap<Assignment, [Tally; 2]>,
}

fn slot(freshness: Freshness) -> usize {
    match freshness {
        Freshness::Warm => 0,
        Freshness::Fresh => 1,
    }
}

impl Observations {
    pub fn add(&mut self, case: &Assignment, freshness: Freshness, verdict: &Verdict) {
        self.tallies.entry(case.clone()).or_default()[slot(freshness)].add(verdict);
    }

    pub fn of(&self, case: &Assignment, freshness: Freshness) -> Tally {
        self.tallies.get(case).map(|t| t[slot(freshness)].clone()).unwrap_or_default()
    }

    /// Warm and fresh runs together.
    pub fn all(&self, case: &Assignment) -> Tally {
        let mut tally = self.of(case, Freshness::Warm);
        tally.merge(&self.of(case, Freshness::Fresh));
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warm_and_fresh_runs_are_counted_apart_and_can_be_added() {
        let case = Assignment(vec![1, 2]);
        let mut seen = Observations::default();
        let hang = Verdict::Hang { after_ms: 1 };
        for (freshness, verdict) in [
            (Freshness::Warm, Verdict::Pass { sample: None }),
            (Freshness::Fresh, hang.clone()),
            (Freshness::Fresh, hang.clone()),
            (Freshness::Fresh, Verdict::Crash { how: "SIGABRT".into(), code: None }),
            (Freshness::Warm, Verdict::Refused { detail: "no kernel".into() }),
        ] {
            seen.add(&case, freshness, &verdict);
        }
        let followed = Signature::of(&hang).unwrap();
        let fresh = seen.of(&case, Freshness::Fresh).counts(|s| s.matches(&followed));
        assert_eq!((fresh.runs, fresh.bad, fresh.other, fresh.passes), (3, 2, 1, 0));
        let all = seen.all(&case).counts(|s| s.matches(&followed));
        assert_eq!(all, Counts { runs: 5, bad: 2, other: 1, passes: 1, weak: 0, not_run: 1 });
        assert_eq!(seen.all(&case).why_not.as_deref(), Some("refused: no kernel"));
    }
}
