//! Targets on NVIDIA GPUs.

mod blas;
pub mod cublas;
pub mod cublaslt;
pub mod kernel;
mod selftest;
mod text;

pub use cublas::Cublas;
pub use cublaslt::CublasLt;
pub use kernel::Kernel;
pub use selftest::SelfTest;
pub use text::call_text;

use super::TargetSpec;
use crate::device::cuda::Gpu;
use crate::problem::Problem;
use sha2::{Digest, Sha256};
use std::path::Path;

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
