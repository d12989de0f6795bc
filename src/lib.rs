//! Finds the shape at which a GEMM or a collective touches memory it does not own, and shrinks it to the boundary.
//!
//! `ARCHITECTURE.md` walks one case through these modules, file by file.

pub mod campaign;
pub mod cli;
pub mod device;
pub mod evidence;
pub mod exec;
pub mod finding;
pub mod hypothesis;
pub mod manifest;
pub mod problem;
pub mod regress;
pub mod report;
pub mod search;
pub mod shrink;
pub mod target;
pub mod worker;
