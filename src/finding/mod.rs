//! Findings: what is worth keeping, in one readable file each, and the folders they live in.

pub mod case_file;
pub mod catalog;
mod check;
pub mod commands;
mod decode;
mod encode;
pub mod environment;
pub mod facts;
pub mod file;
pub mod known;
pub mod law;
pub mod name;
pub mod pins;
mod print;
pub mod read;
pub mod seed;
pub mod shapes;
pub mod store;
mod stored;
#[cfg(test)]
mod testing;
mod title;
mod words;

pub use case_file::CaseInput;
pub use catalog::Catalog;
pub use check::filed;
pub use environment::Environment;
pub use facts::{Certified, Choice, Confirmation, Effect, Facts, Far, History, Ranks, Step, Tally, Witness};
pub use file::{Finding, Status};
pub use known::Known;
pub use read::ReadError;
pub use seed::Seed;
pub use store::Store;
