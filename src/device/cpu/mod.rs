//! Host memory: a large reservation, sparse mappings, and the handler that reads a fault.

mod alt_stack;
mod arena;
mod fault;
mod machine;
mod pages;
mod pattern;
mod system;
#[cfg(test)]
mod test_child;

pub use alt_stack::install_alt_stack_for_this_thread;
pub use arena::{CpuArena, Entries};
pub use fault::{Fault, FaultRecord, InstallError, arm, install};
pub use pattern::Canary;
