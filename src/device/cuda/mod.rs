//! NVIDIA GPUs through the CUDA driver, loaded at run time: nothing is needed to build, and a machine without a driver says
//! so in one line.

mod arena;
mod driver;
mod gpu;
pub mod kernels;
pub mod libraries;
pub mod nvrtc;
mod physical;

pub use arena::CudaArena;
pub use driver::{CudaError, count};
pub use gpu::{Buffer, Function, Gpu, HostBuffer, Launch, Module};
