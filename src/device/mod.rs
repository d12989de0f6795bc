//! Memory and launch substrates.

pub mod cpu;
