//! A small scope that the tests of this module share.

use super::{Condition, Env, EvalError, Expr, Scope, Symbol};

/// Integers M N K lda (0 to 3), boolean transA (4, values true then false), string dtype (5), operands A and B, `rank`.
pub(super) struct Gemm {
    dtypes: Vec<String>,
}

impl Gemm {
    pub(super) fn new() -> Self {
        Self { dtypes: ["f32", "bf16", "größe"].map(String::from).to_vec() }
    }
}

impl Scope for Gemm {
    fn lookup(&self, name: &str) -> Option<Symbol<'_>> {
        let integer = |name| ["M", "N", "K", "lda"].iter().position(|&n| n == name);
        match name {
            "transA" => Some(Symbol::Condition { index: 4, true_index: 0 }),
            "dtype" => Some(Symbol::Choice { index: 5, values: &self.dtypes }),
            name => integer(name).map(Symbol::Integer),
        }
    }

    fn operand(&self, name: &str) -> Option<usize> {
        ["A", "B"].iter().position(|&n| n == name)
    }

    fn has_rank(&self) -> bool {
        true
    }
}

/// M 5, N -3, K 0, lda the largest, transA true, dtype bf16; 2 bytes for A, 4 for B; rank 7.
pub(super) const ENV: Env<'static> =
    Env { values: &[5, -3, 0, i64::MAX, 0, 1], element_bytes: &|operand| if operand == 0 { 2 } else { 4 }, rank: 7 };

pub(super) fn expr(text: &str) -> Expr {
    Expr::parse(text, &Gemm::new()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

pub(super) fn condition(text: &str) -> Condition {
    Condition::parse(text, &Gemm::new()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// The value of `text` in [`ENV`].
pub(super) fn value(text: &str) -> Result<i128, EvalError> {
    expr(text).eval(&ENV)
}

/// Whether `text` holds in [`ENV`].
pub(super) fn holds(text: &str) -> Result<bool, EvalError> {
    condition(text).eval(&ENV)
}
