//! What is known of a fault, and which channel said so.

pub mod device_text;
mod elf;
mod maps;
pub mod symbol;
