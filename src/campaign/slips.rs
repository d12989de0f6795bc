//! Failures of another kind that a shrink met on its way.

use crate::exec::Signature;
use crate::exec::pool::Pool;
use crate::finding::Store;
use crate::finding::store::StoreError;
use crate::problem::Problem;
use crate::shrink::Shrunk;
use crate::target::TargetSpec;

/// Keeps those that fail again, in a fresh process.
///
/// # Errors
/// Where one cannot be written.
pub fn keep(
    pool: &Pool,
    store: &Store,
    problem: &Problem,
    target: &TargetSpec,
    shrunk: &Shrunk,
    seed: u64,
) -> Result<(), StoreError> {
    for slip in &shrunk.slips {
        let again = match pool.probe(&slip.case, seed, true) {
            Ok(result) => Signature::of(&result.verdict).is_some_and(|s| s.family == slip.signature.family),
            // Nobody can tell any more: better kept than lost.
            Err(_) => true,
        };
        if again {
            store.save_raw(problem, target, &slip.case, &slip.signature)?;
        }
    }
    Ok(())
}
