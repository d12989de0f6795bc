//! Our own kernels: CUDA C++ in this folder, compiled when they are first needed.

use super::gpu::{Gpu, Module};
use super::nvrtc;

/// A source file that is part of this program.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    pub name: &'static str,
    pub text: &'static str,
}

/// Fills and compares cases.
pub const ORACLE: Source = Source { name: "oracle.cu", text: include_str!("kernels/oracle.cu") };
/// Planted failures.
pub const SELFTEST: Source = Source { name: "selftest.cu", text: include_str!("kernels/selftest.cu") };

impl Source {
    /// Compiles for a GPU, or takes what was compiled before, and loads it.
    ///
    /// # Errors
    /// One sentence: no compiler, a source that it does not take, a module that the driver does not take.
    pub fn load(self, gpu: &Gpu) -> Result<Module, String> {
        let image = nvrtc::compile(self.name, self.text, &nvrtc::architecture(gpu.capability), &[])?;
        gpu.module(&image).map_err(|e| format!("{}: {e}", self.name))
    }
}
