//! What can be called: parameters, constraints and operands as strided views.

pub mod expr;
