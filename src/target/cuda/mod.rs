//! Targets on NVIDIA GPUs.

mod selftest;

pub use selftest::SelfTest;

use super::TargetSpec;
use crate::problem::Problem;

/// Families of targets that run on a GPU whatever their settings are.
pub const FAMILIES: [&str; 0] = [];

/// Whether a spec names a target of the problem; opens no device and no library.
///
/// # Errors
/// One sentence, where it does not.
pub fn check(spec: &TargetSpec, problem: &Problem) -> Result<(), String> {
    match spec.family.as_str() {
        "selftest" => selftest::check(spec, problem),
        other => Err(format!("target family '{other}' does not run on a GPU; leave out device=cuda")),
    }
}
