//! Integer and boolean expressions over the parameters of a problem.
//!
//! The language is the one of `PROTOCOL.md`: exact checked 128-bit integers, floor division, `%` with the divisor's
//! sign. From loosest to tightest: `or`, `and`, `not`, comparisons, `+ -`, `* / %`, the sign, `^`. A text is parsed once
//! against a [`Scope`], which turns names into indices and checks the two sorts; evaluation then neither allocates nor
//! looks up a name.
//!
//! ```
//! use shrinkfault::problem::expr::{Condition, Env, Scope, Symbol};
//!
//! struct Gemm;
//! impl Scope for Gemm {
//!     fn lookup(&self, name: &str) -> Option<Symbol<'_>> {
//!         match name {
//!             "M" => Some(Symbol::Integer(0)),
//!             "lda" => Some(Symbol::Integer(1)),
//!             _ => None,
//!         }
//!     }
//!     fn operand(&self, _name: &str) -> Option<usize> {
//!         None
//!     }
//! }
//!
//! let constraint = Condition::parse("lda >= max(M, 1)", &Gemm)?;
//! let env = Env { values: &[64, 63], element_bytes: &|_| 4, rank: 0 };
//! assert_eq!(constraint.eval(&env), Ok(false));
//! assert_eq!(constraint.bounds_on(1)[0].eval(&env), Ok(64));
//! # Ok::<(), shrinkfault::problem::expr::ParseError>(())
//! ```

mod bounds;
mod error;
mod eval;
mod lexer;
mod parser;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod testing;
mod tree;

use std::collections::BTreeSet;
use std::fmt;

pub use bounds::{Bound, Side};
pub use error::ParseError;
pub use eval::{Env, EvalError};

/// What names mean where an expression is written.
pub trait Scope {
    /// The parameter called `name`.
    fn lookup(&self, name: &str) -> Option<Symbol<'_>>;

    /// The index of the operand called `name`, for `sizeof`.
    fn operand(&self, name: &str) -> Option<usize>;

    /// Whether `rank`, unless a parameter has that name, is the rank that an expression is evaluated for.
    fn has_rank(&self) -> bool {
        false
    }
}

/// What a parameter is to an expression; every index is one into [`Env::values`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Symbol<'a> {
    /// An integer parameter.
    Integer(usize),
    /// A boolean choice, which is a condition by itself.
    Condition {
        /// Index of the parameter.
        index: usize,
        /// The index, in the choice's values, of `true`.
        true_index: i64,
    },
    /// A string choice.
    Choice {
        /// Index of the parameter.
        index: usize,
        /// The values in their order.
        values: &'a [String],
    },
}

/// An expression whose value is an integer.
#[derive(Debug, Clone)]
pub struct Expr {
    text: Box<str>,
    root: tree::Integer,
    parameters: Box<[usize]>,
}

impl Expr {
    /// Parses `text`, with names as `scope` has them.
    ///
    /// # Errors
    /// A text outside the grammar, an unknown name, a part of the wrong sort, or parentheses, calls and signs nested
    /// too deeply (200 plain parentheses are, some 30 of the most crowded nesting are).
    pub fn parse(text: &str, scope: &dyn Scope) -> Result<Self, ParseError> {
        let root = parser::integer(text, scope)?;
        Ok(Self { text: text.into(), parameters: distinct(|visit| root.each_parameter(visit)), root })
    }

    /// The exact value.
    ///
    /// # Errors
    /// A division by zero, or a value outside 128 bits, in a part that had to be evaluated.
    ///
    /// # Panics
    /// When `env.values` is shorter than the scope's indices ask for.
    pub fn eval(&self, env: &Env<'_>) -> Result<i128, EvalError> {
        self.root.eval(env)
    }

    /// The text it was parsed from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The parameters it mentions, ascending. What `sizeof` of an operand depends on is not among them.
    pub fn params(&self) -> impl Iterator<Item = usize> {
        self.parameters.iter().copied()
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// An expression that holds or does not.
#[derive(Debug, Clone)]
pub struct Condition {
    text: Box<str>,
    root: tree::Truth,
    parameters: Box<[usize]>,
}

impl Condition {
    /// Parses `text`, with names as `scope` has them.
    ///
    /// # Errors
    /// As for [`Expr::parse`].
    pub fn parse(text: &str, scope: &dyn Scope) -> Result<Self, ParseError> {
        let root = parser::truth(text, scope)?;
        Ok(Self { text: text.into(), parameters: distinct(|visit| root.each_parameter(visit)), root })
    }

    /// Whether it holds.
    ///
    /// # Errors
    /// As for [`Expr::eval`].
    ///
    /// # Panics
    /// As for [`Expr::eval`].
    pub fn eval(&self, env: &Env<'_>) -> Result<bool, EvalError> {
        self.root.eval(env)
    }

    /// The text it was parsed from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The parameters it mentions, ascending. What `sizeof` of an operand depends on is not among them.
    pub fn params(&self) -> impl Iterator<Item = usize> {
        self.parameters.iter().copied()
    }

    /// Bounds that the integer parameter `param` keeps wherever the condition holds, in text order.
    ///
    /// They come from comparisons of the bare parameter with an expression that does not mention it, alone or joined by
    /// `and`; a condition of another shape gives none. A bound after an `and` may fail to evaluate where what stands
    /// before the `and` does not hold.
    pub fn bounds_on(&self, param: usize) -> Vec<Bound<'_>> {
        let mut bounds = Vec::new();
        bounds::collect(&self.root, param, &mut bounds);
        bounds
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What `each` visits, ascending and once.
fn distinct(each: impl FnOnce(&mut dyn FnMut(usize))) -> Box<[usize]> {
    let mut indices = BTreeSet::new();
    each(&mut |index| {
        indices.insert(index);
    });
    indices.into_iter().collect()
}
