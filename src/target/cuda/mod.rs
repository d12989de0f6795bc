//! Targets on NVIDIA GPUs.

mod blas;
mod cublas;
mod cublaslt;
pub mod kernel;
mod selftest;
mod text;

pub use cublas::Cublas;
pub use cublaslt::CublasLt;
pub use kernel::Kernel;
pub use selftest::SelfTest;

use super::{Bases, TargetSpec};
use crate::device::cuda::Gpu;
use crate::problem::{Case, Instance, Problem};
use blas::Gemm;
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::Arc;

/// Families of targets that run on a GPU whatever their settings are.
pub const FAMILIES: [&str; 3] = [cublas::FAMILY, cublaslt::FAMILY, kernel::FAMILY];

/// Whether a spec names a target of the problem; opens no device and no library.
///
/// # Errors
/// One sentence, where it does not.
pub fn check(spec: &TargetSpec, problem: &Problem) -> Result<(), String> {
    match spec.family.as_str() {
        "selftest" => selftest::check(spec, problem),
        kernel::FAMILY => kernel::check(spec, problem),
        family if FAMILIES.contains(&family) => blas::check(spec, problem),
        other => Err(format!("target family '{other}' does not run on a GPU; leave out device=cuda")),
    }
}

/// Card and driver, for the environment of a finding.
fn card_facts(gpu: &Gpu) -> Vec<(String, String)> {
    let ((major, minor), driver) = (gpu.capability, gpu.driver_version);
    let mut facts: Vec<(String, String)> = [
        // What picks the code beside the shape.
        ("core", format!("sm_{major}{minor}")),
        ("gpu", gpu.name.clone()),
        ("driver", format!("CUDA {}.{}", driver / 1000, driver % 1000 / 10)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    let module = std::fs::read_to_string("/sys/module/nvidia/version").ok();
    facts.extend(module.map(|version| ("driver version".to_owned(), version.trim().to_owned())));
    facts
}

/// The first 16 digits of a file's SHA-256, or why there is none.
fn sha256_of(path: &Path) -> String {
    match std::fs::read(path) {
        Ok(bytes) => {
            let digits: String = Sha256::digest(bytes).iter().take(8).map(|b| format!("{b:02x}")).collect();
            format!("{}, sha256 {digits}", path.display())
        }
        Err(e) => format!("{}: {e}", path.display()),
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
