//! From an instruction address to module, offset and symbol.
