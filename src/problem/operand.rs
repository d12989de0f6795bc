//! Operands: what a problem reads and writes, as strided views with symbolic extents.

use super::dtype::Dtype;
use super::expr::{Condition, Expr};
use serde::{Deserialize, Serialize};

/// How an operand may be used by a correct run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Use {
    #[serde(rename = "r")]
    Read,
    #[serde(rename = "w")]
    Write,
    #[serde(rename = "rw")]
    ReadWrite,
}

impl Use {
    pub fn writes(self) -> bool {
        self != Use::Read
    }
}

/// Whether a correct run may read bytes inside the span that are no elements (the gap between two columns).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Gaps {
    None,
    Read,
}

/// Where an operand's element type comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum ElementType {
    Fixed(Dtype),
    /// A choice parameter whose values are type names: its index, and the type of each value.
    Param {
        param: usize,
        types: Vec<Dtype>,
    },
    /// Elements without an arithmetic meaning, of so many bytes.
    Bytes(u64),
}

/// One dimension of a view: `extent` elements, `stride` elements apart.
#[derive(Debug, Clone)]
pub struct Dim {
    pub extent: Expr,
    pub stride: Expr,
}

/// An operand: the elements `offset + sum(i_d * stride_d)`, `0 <= i_d < extent_d`, counted from the base pointer.
#[derive(Debug, Clone)]
pub struct Operand {
    pub name: String,
    pub element: ElementType,
    pub access: Use,
    /// Where true, `access` is narrowed to reading only (C of a GEMM whose result goes to D).
    pub read_only_when: Option<Condition>,
    pub dims: Vec<Dim>,
    /// Of the first element, in elements; may mention `rank`, the number of the copy.
    pub offset: Option<Expr>,
    pub gaps: Gaps,
    /// The operand exists only where this is true.
    pub when: Option<Condition>,
    /// Where true (or absent for operands that are read), the elements hold values before the run; else the sentinel.
    pub defined_when: Option<Condition>,
    /// Lies in the memory of that operand: same base pointer.
    pub alias: Option<usize>,
    /// Number of copies, one per rank; one where absent.
    pub ranks: Option<Expr>,
}
