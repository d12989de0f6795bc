use super::super::engine::Engine;
use super::super::line::{follows, is_free};
use super::Move;
use crate::exec::ProbeError;

/// Derives all strides again, as small as the sizes allow: most over-runs do not need any of them.
///
/// Before: `m=100 n=50 k=3 lda=4097 ldb=77 ldc=300`. After: `m=100 n=50 k=3 lda=100 ldb=3 ldc=100`.
pub struct Pack;

impl Move for Pack {
    fn name(&self) -> &'static str {
        "pack strides"
    }

    fn run(&self, e: &mut Engine) -> Result<bool, ProbeError> {
        let stride = |i: usize| follows(e.problem, i) && is_free(e.problem, i);
        let mut packed = e.current.clone();
        for (i, p) in e.problem.params.iter().enumerate().filter(|(i, _)| stride(*i)) {
            packed[i] = p.least();
        }
        Ok(e.problem.repair(&mut packed, stride) && e.consider(&packed, self.name())?)
    }
}
