use super::super::beliefs::Agreement;
use super::super::engine::Engine;
use super::Move;
use super::tiny::{Plan, Solve, try_all};
use crate::exec::ProbeError;

/// Jumps to a case of hardly any work: all sizes at or near their least, one stride raised to where a hypothesis puts
/// the line. Most wraps need no more, and the jumps that miss are passes, which are cheap.
///
/// Before: `m=300 n=200 k=50 ldb=90000001 beta=1`. After: `m=1 n=2 k=1 ldb=2147483648`.
pub struct Collapse;

impl Move for Collapse {
    fn name(&self) -> &'static str {
        "collapse"
    }

    fn run(&self, e: &mut Engine) -> Result<bool, ProbeError> {
        let before = e.ladder.len();
        for (work, solve) in [(4, Solve::Strides), (2, Solve::Sizes)] {
            while try_all(e, Plan { work, agreement: Agreement::Full, solve }, self.name())? {}
        }
        Ok(e.ladder.len() > before)
    }
}

/// The same once nothing else helps: more combinations, and hypotheses with a few observations against them, so that the
/// least case is reached from nearly every start.
///
/// Before: `m=1 n=3 k=1 ldb=1073741824`. After: `m=1 n=2 k=1 ldb=2147483648`.
pub struct Polish;

impl Move for Polish {
    fn name(&self) -> &'static str {
        "polish"
    }

    fn run(&self, e: &mut Engine) -> Result<bool, ProbeError> {
        let before = e.ladder.len();
        for (work, solve) in [(8, Solve::Strides), (4, Solve::Sizes)] {
            while try_all(e, Plan { work, agreement: Agreement::Mostly, solve }, self.name())? {}
        }
        Ok(e.ladder.len() > before)
    }
}
