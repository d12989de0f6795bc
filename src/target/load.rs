//! From the name of a target to the target.

use super::cblas::{self, IntWidth};
use super::{Target, TargetSpec, cuda, selftest, sim};
use crate::device::Device;
use crate::device::cuda::Gpu;
use crate::problem::{Case, Problem};
use std::rc::Rc;

/// Where the cases of a target run.
pub fn device(spec: &TargetSpec) -> Device {
    let on_gpu = spec.settings.get(DEVICE_SETTING).is_some_and(|d| d == Device::Cuda.name());
    if on_gpu || cuda::FAMILIES.contains(&spec.family.as_str()) { Device::Cuda } else { Device::Cpu }
}

/// Setting of the self-test that says where it runs.
pub const DEVICE_SETTING: &str = "device";

/// Loads a target that runs on an NVIDIA GPU.
///
/// # Errors
/// One sentence, as [`load`].
pub fn load_cuda(spec: &TargetSpec, problem: &Problem, gpu: &Rc<Gpu>) -> Result<Box<dyn Target>, String> {
    match spec.family.as_str() {
        "selftest" => Ok(Box::new(cuda::SelfTest::load(spec, problem, gpu)?)),
        cuda::kernel::FAMILY => Ok(Box::new(cuda::Kernel::load(spec, problem, gpu)?)),
        cuda::cublas::FAMILY => Ok(Box::new(cuda::Cublas::load(spec, problem, gpu)?)),
        cuda::cublaslt::FAMILY => Ok(Box::new(cuda::CublasLt::load(spec, problem, gpu)?)),
        other => Err(format!("there is no target family '{other}'; see `shrinkfault targets` for the names")),
    }
}

/// Loads the target that a spec names. `int_width` (32 or 64) settles the width of a library's integers where the
/// library does not say.
///
/// # Errors
/// One sentence, where there is no such target or it does not have the problem.
pub fn load(spec: &TargetSpec, problem: &Problem, int_width: Option<u32>) -> Result<Box<dyn Target>, String> {
    let int_width = match int_width {
        None => None,
        Some(32) => Some(IntWidth::I32),
        Some(64) => Some(IntWidth::I64),
        Some(other) => return Err(format!("integers of a library have 32 or 64 bits, not {other}")),
    };
    match spec.family.as_str() {
        "cblas" => Ok(Box::new(cblas::Adapter::load(spec, problem, int_width)?)),
        _ if int_width.is_some() => Err(format!("'{spec}' has no integer width to name; leave out --int-width")),
        "selftest" => Ok(Box::new(selftest::SelfTest::load(spec, problem)?)),
        "sim" => sim::load(spec, problem),
        other => Err(format!("there is no target family '{other}'; see `shrinkfault targets` for the names")),
    }
}

/// Whether a spec names a target of the problem; opens no library.
///
/// # Errors
/// One sentence, as [`load`].
pub fn check(spec: &TargetSpec, problem: &Problem, int_width: Option<u32>) -> Result<(), String> {
    match spec.family.as_str() {
        _ if device(spec) == Device::Cuda => cuda::check(spec, problem),
        "cblas" => cblas::Adapter::check(spec, problem),
        _ => load(spec, problem, int_width).map(drop),
    }
}

/// The call that a target makes for a case, as a line of its own language; `None` where there is no such line.
pub fn call_text(spec: &TargetSpec, problem: &Problem, case: &Case) -> Option<String> {
    match spec.family.as_str() {
        "cblas" => cblas::call_text(problem, case),
        family if cuda::FAMILIES.contains(&family) => cuda::call_text(family, problem, case),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Builtin;

    #[test]
    fn what_cannot_be_loaded_is_a_sentence() {
        let gemm = Builtin::find("gemm").unwrap().problem();
        let allgather = Builtin::find("allgather").unwrap().problem();
        let refused = |spec: &str, problem, width| {
            let why = load(&spec.parse().unwrap(), problem, width).map(drop).unwrap_err();
            assert!(!why.is_empty() && !why.contains('\n'), "{why}");
            why
        };
        assert!(refused("nccl", &gemm, None).contains("no target family 'nccl'"));
        assert!(refused("cblas@/no/such/lib.so", &gemm, None).contains("/no/such/lib.so"));
        assert!(refused("cblas", &allgather, None).contains("allgather"));
        assert!(refused("selftest", &allgather, None).contains("allgather"));
        assert!(refused("selftest", &gemm, Some(64)).contains("--int-width"));
        assert!(refused("cblas", &gemm, Some(16)).contains("16"));
    }
}
