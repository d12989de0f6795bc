//! The supervisor: processes, protocol, verdicts.

pub mod blame;
pub mod channel;
pub mod child;
pub mod death;
pub mod disk;
pub mod foreign;
pub mod health;
pub mod history;
mod inbox;
pub mod inherit;
pub mod intent;
pub mod interrupt;
pub mod job;
mod poll;
pub mod pool;
pub mod probe;
pub mod prober;
pub mod process;
pub mod protocol;
pub mod ranks;
pub mod sanitizer;
pub mod selftest;
pub mod signature;
pub mod spawn;
mod tail;
#[cfg(test)]
pub(crate) mod testing;
pub mod verdict;
pub mod worker;

pub use probe::{Freshness, Observation, ProbeError, Prober};
pub use signature::{Family, Signature};
pub use verdict::{Fault, Hit, Place, Sample, Verdict, Wrong, WrongKind};
