//! The supervisor: processes, protocol, verdicts.

pub mod intent;
pub mod probe;
pub mod protocol;
pub mod signature;
pub mod spawn;
pub mod verdict;

pub use probe::{Freshness, Observation, ProbeError, Prober};
pub use signature::{Family, Signature};
pub use verdict::{Fault, Hit, Place, Sample, Verdict, Wrong, WrongKind};
