//! Replaying findings: do they still fail, where does the line lie now, and is the answer comparable at all?
//!
//! `observe` runs a finding's own cases in fresh processes, `outcome` concludes from the counts alone, `comparable` holds
//! the environment of the file against the one that answered, `boundary` looks for a line that moved, `replay` puts these
//! together for one finding. `list` finds the files, `update` rewrites one, `junit` writes a report for CI.

pub mod boundary;
pub mod comparable;
pub mod junit;
pub mod list;
pub mod observe;
pub mod outcome;
pub mod replay;
pub mod update;

pub use outcome::{Outcome, Word};
