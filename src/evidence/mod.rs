//! What is known of a fault, and which channel said so.

pub mod symbol;
