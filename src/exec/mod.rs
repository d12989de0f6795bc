//! The supervisor: processes, protocol, verdicts.

pub mod channel;
pub mod child;
mod inbox;
pub mod inherit;
pub mod intent;
mod poll;
pub mod spawn;
mod tail;
#[cfg(test)]
mod testing;
