//! What can be called: parameters, constraints and operands as strided views.

pub mod allgather;
pub mod blas;
pub mod builder;
pub mod builtin;
pub mod case;
pub mod complex;
pub mod contents;
pub mod description;
pub mod dtype;
pub mod expr;
pub mod gemm;
pub mod instance;
pub mod narrow;
pub mod operand;
pub mod packed;
pub mod param;
pub mod view;

pub use builtin::{BUILTINS, Builtin};
pub use case::{Assignment, Case, Flush, Knobs, Placement};
pub use contents::Contents;
pub use description::{Constraint, Invalid, Problem};
pub use dtype::Dtype;
pub use instance::Instance;
pub use narrow::Narrow;
pub use operand::{Dim, ElementType, Gaps, Operand, Use};
pub use param::{Domain, Param, Role, Value};
pub use view::{Step, View};
