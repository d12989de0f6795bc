//! The supervisor: processes, protocol, verdicts.

pub mod child;
pub mod intent;
mod poll;
pub mod spawn;
mod tail;
#[cfg(test)]
mod testing;
