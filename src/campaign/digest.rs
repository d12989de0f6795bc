//! Sums over the case list and the verdict list of a run: equal sums, equal lists.

use crate::finding::store::Answer;
use crate::problem::{Case, Problem};
use sha2::{Digest, Sha256};

/// SHA-256 over cases and over verdicts, in case order.
#[derive(Debug, Clone, Default)]
pub struct Digests {
    cases: Sha256,
    verdicts: Sha256,
}

impl Digests {
    /// Takes the next case. A verdict counts with its signature; addresses differ from run to run.
    pub fn add(&mut self, problem: &Problem, id: u64, case: &Case, answer: &Answer) {
        self.cases.update(format!("{id} {} {:?} {:?} {}\n", problem.name, case.params.0, case.knobs, case.placement));
        let signature = answer.signature.as_ref().map_or_else(String::new, ToString::to_string);
        self.verdicts.update(format!("{id} {} {signature}\n", answer.verdict));
    }

    /// The first digits of both sums up to here.
    pub fn short(&self) -> (String, String) {
        let (mut cases, mut verdicts) = self.finish();
        cases.truncate(16);
        verdicts.truncate(16);
        (cases, verdicts)
    }

    /// Both sums in hexadecimal: cases, verdicts.
    pub fn finish(&self) -> (String, String) {
        let hex = |sum: &Sha256| sum.clone().finalize().iter().map(|b| format!("{b:02x}")).collect();
        (hex(&self.cases), hex(&self.verdicts))
    }
}
