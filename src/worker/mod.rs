//! The child: places cases in layouts, runs them on a target, compares what came out.

pub mod anchor;
pub mod layout;

pub use layout::{Layout, PlanError};
