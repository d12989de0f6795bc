//! What cuBLAS and cublasLt have in common: element types, statuses, the arguments of a product, and what a loaded file says
//! of itself.

mod gemm;
mod identity;
mod status;
mod symbols;
mod types;

#[cfg(test)]
pub use gemm::testing;
pub use gemm::{Gemm, Side};
pub use identity::{Identity, version_text};
pub use status::{Failure, SUCCESS, Status, ask, done};
pub(in crate::target::cuda) use symbols::functions;
pub use types::{Compute, DataType, Scalar, TYPES, Type};

use crate::problem::{Narrow, Problem, Value};
use crate::target::TargetSpec;

/// Whether a spec names a product of matrices and nothing that these libraries do not have.
///
/// # Errors
/// One sentence, where it does not.
pub fn check(spec: &TargetSpec, problem: &Problem) -> Result<(), String> {
    let family = &spec.family;
    if problem.name != "gemm" {
        return Err(format!("{family} has no {} here; it runs gemm", problem.name));
    }
    if !spec.model.is_empty() || !spec.settings.is_empty() {
        return Err(format!("'{spec}': {family} takes no model and no settings; name a library with --lib"));
    }
    Ok(())
}

/// The element types that a library is called for.
pub fn dtypes(types: impl Iterator<Item = &'static Type>) -> Narrow {
    Narrow::OneOf { param: "dtype".into(), values: types.map(|t| Value::from(t.dtype)).collect() }
}
