//! What makes the result of a case new, and so the case worth mutating.

use crate::exec::{Place, Signature, Verdict};
use crate::problem::{Assignment, Case, Problem};
use std::collections::HashSet;

/// One result, as the campaign hands it back.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Number of the case in the campaign: outcomes are folded in its order.
    pub number: u64,
    pub case: Case,
    /// See [`Verdict::word`].
    pub verdict: &'static str,
    /// Kernel or model that ran.
    pub kernel: Option<String>,
    /// Where the damage lies.
    pub place: Option<Place>,
}

impl Outcome {
    pub fn new(number: u64, case: Case, verdict: &Verdict, kernel: Option<String>) -> Outcome {
        let place = Signature::of(verdict).and_then(|s| s.place);
        Outcome { number, case, verdict: verdict.word(), kernel, place }
    }

    /// Whether the case may be mutated at all: never one that was skipped or refused (nothing ran, and a full memory is
    /// no property of the case) or hung (each mutant would cost a deadline). What became of a bad case afterwards has no say:
    /// it depends on which findings are known.
    pub fn feeds_back(&self) -> bool {
        matches!(self.verdict, "pass" | "fault" | "wrong" | "crash")
    }
}

/// What two results must share to count as the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    pub kernel: Option<String>,
    pub verdict: &'static str,
    /// Per operand the bit length of its most extreme offset in elements; `None` where the operand does not exist.
    pub buckets: Vec<Option<u8>>,
    pub place: Option<Place>,
}

/// The key of a result; `None` for an assignment that is no case.
pub fn key(problem: &Problem, outcome: &Outcome) -> Option<Key> {
    Some(Key {
        kernel: outcome.kernel.clone(),
        verdict: outcome.verdict,
        buckets: buckets(problem, &outcome.case.params)?,
        place: outcome.place,
    })
}

/// The key of a case that was not run: magnitudes alone; `None` for an assignment that is no case.
pub fn unrun_key(problem: &Problem, case: &Case) -> Option<Key> {
    Some(Key { kernel: None, verdict: "not run", buckets: buckets(problem, &case.params)?, place: None })
}

fn buckets(problem: &Problem, values: &Assignment) -> Option<Vec<Option<u8>>> {
    let views = problem.views(values).ok()?;
    let bucket = |v: &crate::problem::View| {
        let last = v.copies() - 1;
        let extreme = [0, last].into_iter().map(|c| v.highest(c).unsigned_abs().max(v.lowest(c).unsigned_abs())).max();
        (u64::BITS - extreme.unwrap_or(0).leading_zeros()) as u8
    };
    Some(views.iter().map(|v| v.as_ref().map(bucket)).collect())
}

/// The keys seen so far.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    keys: HashSet<Key>,
}

impl Seen {
    /// Keys kept; past that nothing is new, so that memory stays bounded.
    pub const MOST: usize = 1 << 15;

    /// Whether the key is new; remembers it.
    pub fn insert(&mut self, key: Key) -> bool {
        self.keys.len() < Seen::MOST && self.keys.insert(key)
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Builtin, Placement};

    fn outcome(lda: i64, verdict: Verdict) -> (std::sync::Arc<Problem>, Outcome) {
        let problem = Builtin::find("gemm").unwrap().problem();
        let mut params = problem.plainest().unwrap();
        params[problem.param("k").unwrap()] = 2;
        params[problem.param("ldb").unwrap()] = 2;
        params[problem.param("lda").unwrap()] = lda;
        let case = Case { params, knobs: Default::default(), placement: Placement::END };
        (problem, Outcome::new(0, case, &verdict, None))
    }

    #[test]
    fn a_result_is_new_once_per_verdict_and_magnitude() {
        let mut seen = Seen::default();
        let mut is_new = |lda, verdict| {
            let (problem, outcome) = outcome(lda, verdict);
            seen.insert(key(&problem, &outcome).unwrap())
        };
        assert!(is_new(1000, Verdict::Pass { sample: None }));
        assert!(!is_new(1001, Verdict::Pass { sample: None }));
        assert!(is_new(2000, Verdict::Pass { sample: None }));
        assert!(is_new(1001, Verdict::Crash { how: "SIGABRT".into(), code: None }));
    }

    #[test]
    fn what_did_not_run_or_hangs_is_not_fed_back() {
        let refused = Verdict::Refused { detail: String::new() };
        let skipped = Verdict::Skipped { detail: String::new(), state: true };
        for verdict in [refused, skipped, Verdict::Hang { after_ms: 1 }] {
            assert!(!outcome(1, verdict).1.feeds_back());
        }
        assert!(outcome(1, Verdict::Pass { sample: None }).1.feeds_back());
    }
}
