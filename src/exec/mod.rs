//! The supervisor: processes, protocol, verdicts.

pub mod channel;
pub mod child;
mod inbox;
mod inherit;
pub mod intent;
pub mod interrupt;
mod poll;
pub mod probe;
pub mod protocol;
pub mod signature;
pub mod spawn;
mod tail;
#[cfg(test)]
mod testing;
pub mod verdict;

pub use probe::{Freshness, Observation, ProbeError, Prober};
pub use signature::{Family, Signature};
pub use verdict::{Fault, Hit, Place, Sample, Verdict, Wrong, WrongKind};
