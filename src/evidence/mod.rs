//! What is known of a fault, and which channel said so.

mod elf;
mod maps;
pub mod symbol;
