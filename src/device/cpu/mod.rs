//! Host memory: a large reservation, sparse mappings, and the handler that reads a fault.

mod pattern;

pub use pattern::Canary;
