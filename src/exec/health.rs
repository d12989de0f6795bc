//! Is the device still the one that the hunt began on? A known case, which passed at the start, must pass again in a fresh
//! process before a bad verdict is blamed on another case.

use super::probe::ProbeError;
use super::verdict::Verdict;
use crate::problem::{Case, Placement, Problem};
use std::collections::BTreeMap;

/// Health probes that must fail in a row before the device counts as unhealthy.
const TRIES: u32 = 3;

/// A case that is known to pass.
#[derive(Debug, Clone, PartialEq)]
pub struct Health {
    case: Case,
    /// For people.
    short: String,
}

/// What the start of a hunt taught.
#[derive(Debug, Clone, PartialEq)]
pub enum Learned {
    Passes(Health),
    /// There is no health probe; one sentence why.
    Nothing(String),
}

impl Health {
    /// Runs the plainest case of a problem; it becomes the health probe if it passes.
    ///
    /// # Errors
    /// As `run`, which runs a case in a fresh process.
    pub fn learn(
        problem: &Problem,
        run: &mut dyn FnMut(&Case) -> Result<Verdict, ProbeError>,
    ) -> Result<Learned, ProbeError> {
        let none = |why: String| Ok(Learned::Nothing(format!("no health probe: {why}")));
        let Some(params) = problem.plainest() else { return none("the problem has no plainest case".to_owned()) };
        let short = problem.short(&params);
        let case = Case { params, knobs: BTreeMap::new(), placement: Placement::END };
        match run(&case)? {
            v if v.is_pass() => Ok(Learned::Passes(Health { case, short })),
            v if v.is_bad() => none(format!("the plainest case ({short}) fails itself ({})", v.word())),
            v => none(format!("the plainest case ({short}) is {}", v.word())),
        }
    }

    /// Runs the known case until it passes.
    ///
    /// # Errors
    /// [`ProbeError::Unhealthy`] where it does not pass three times in a row; else as `run`.
    pub fn check(&self, run: &mut dyn FnMut(&Case) -> Result<Verdict, ProbeError>) -> Result<(), ProbeError> {
        let mut words = vec![];
        while words.len() < TRIES as usize {
            let verdict = run(&self.case)?;
            if verdict.is_pass() {
                return Ok(());
            }
            words.push(verdict.word());
        }
        Err(ProbeError::Unhealthy(format!(
            "{}, which passed at the start, came to {} in fresh processes; reset the device, or see what changed, then run again",
            self.short,
            words.join(", ")
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Builtin;
    use std::cell::Cell;

    const PASS: Verdict = Verdict::Pass { sample: None };
    const HANG: Verdict = Verdict::Hang { after_ms: 5 };

    fn learned(verdict: Verdict) -> Learned {
        let problem = Builtin::find("gemm").unwrap().problem();
        Health::learn(&problem, &mut |_| Ok(verdict.clone())).unwrap()
    }

    /// How many runs a check takes, and what it comes to, where run `i` gives `verdicts[i]`.
    fn check(verdicts: &[Verdict]) -> (usize, Result<(), ProbeError>) {
        let Learned::Passes(health) = learned(PASS) else { panic!("a pass is learned") };
        let runs = Cell::new(0);
        let outcome = health.check(&mut |_| {
            runs.set(runs.get() + 1);
            Ok(verdicts[runs.get() - 1].clone())
        });
        (runs.get(), outcome)
    }

    #[test]
    fn only_three_failures_in_a_row_make_a_device_unhealthy() {
        assert_eq!(check(&[PASS]), (1, Ok(())));
        assert_eq!(check(&[HANG, HANG, PASS]), (3, Ok(())));
        let (runs, outcome) = check(&[HANG, Verdict::Crash { how: String::new(), code: None }, HANG]);
        assert_eq!(runs, 3);
        match outcome {
            Err(ProbeError::Unhealthy(why)) => assert!(why.contains("hang, crash, hang"), "{why}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_plainest_case_that_does_not_pass_is_no_health_probe() {
        let why = |v| match learned(v) {
            Learned::Nothing(why) => why,
            other => panic!("{other:?}"),
        };
        assert!(why(HANG).starts_with("no health probe: the plainest case (m=1 n=1 k=1) fails itself (hang)"));
        assert!(why(Verdict::Refused { detail: String::new() }).contains("is refused"));
    }

    #[test]
    fn an_error_of_the_probe_is_passed_on() {
        let Learned::Passes(health) = learned(PASS) else { panic!("a pass is learned") };
        assert_eq!(health.check(&mut |_| Err(ProbeError::Interrupted)), Err(ProbeError::Interrupted));
    }
}
