//! Targets on NVIDIA GPUs.

mod blas;
mod cublas;
mod cublaslt;
mod selftest;
mod text;

pub use cublas::Cublas;
pub use cublaslt::CublasLt;
pub use selftest::SelfTest;

use super::{Bases, TargetSpec};
use crate::problem::{Case, Instance, Problem};
use blas::Gemm;
use std::sync::Arc;

/// Families of targets that run on a GPU whatever their settings are.
pub const FAMILIES: [&str; 2] = [cublas::FAMILY, cublaslt::FAMILY];

/// Whether a spec names a target of the problem; opens no device and no library.
///
/// # Errors
/// One sentence, where it does not.
pub fn check(spec: &TargetSpec, problem: &Problem) -> Result<(), String> {
    match spec.family.as_str() {
        "selftest" => selftest::check(spec, problem),
        family if FAMILIES.contains(&family) => blas::check(spec, problem),
        other => Err(format!("target family '{other}' does not run on a GPU; leave out device=cuda")),
    }
}

/// The call of a case as a line of C; `None` where the family has no such call.
pub fn call_text(family: &str, problem: &Problem, case: &Case) -> Option<String> {
    let instance: Instance = Arc::new(problem.clone()).instance(case.clone()).ok()?;
    let gemm = Gemm::new(&instance, &Nowhere).ok()?;
    match family {
        cublas::FAMILY => cublas::call_text(&instance, &gemm),
        cublaslt::FAMILY => Some(cublaslt::call_text(&instance, &gemm)),
        _ => None,
    }
}

/// Bases of a case that is only told.
struct Nowhere;

impl Bases for Nowhere {
    fn base(&self, _operand: usize, _copy: u32) -> *mut u8 {
        std::ptr::null_mut()
    }
}
