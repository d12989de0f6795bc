//! The supervisor: processes, protocol, verdicts.

pub mod intent;
pub mod spawn;
