//! What is known of a fault, and which channel said so.

pub mod device_text;
mod elf;
pub mod gpu_fault;
pub mod kernel_log;
mod maps;
pub mod sanitizer;
pub mod symbol;

pub use gpu_fault::GpuFault;
