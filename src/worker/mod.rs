//! The child: places cases in layouts, runs them on a target, compares what came out.
//!
//! `layout` and `anchor` decide where operands lie, `pages` what is mapped for them, `oracle` what they hold,
//! `ground` does it on one device; `session`
//! answers one line after another, `entry` starts the process.

pub mod anchor;
pub mod entry;
pub mod ground;
pub mod layout;
pub mod oracle;
pub mod pages;
pub mod plan;
pub mod session;
#[cfg(test)]
mod tests;

pub use entry::{WorkerOptions, main};
pub use layout::{Layout, PlanError};
