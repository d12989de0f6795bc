//! Implementations under test.

pub mod cblas;
