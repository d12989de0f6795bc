//! The value of a tree: exact, checked, lazy.

use thiserror::Error;

use super::error::caret;
use super::tree::{Arithmetic, Comparison, Integer, Truth};

/// What an expression is evaluated against.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    /// By parameter index: the value of an integer parameter, the index into its values of a choice.
    pub values: &'a [i64],
    /// Bytes of one element of the operand with this index.
    pub element_bytes: &'a dyn Fn(usize) -> i128,
    /// The value of `rank`, for scopes that have it.
    pub rank: i64,
}

/// Why an expression has no value; an assignment for which this happens is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum EvalError {
    /// An intermediate or final value does not fit a signed 128-bit integer.
    #[error("value does not fit 128 bits (column {column})")]
    Overflow {
        /// Of the operator or call in the text, in characters from 1.
        column: usize,
    },
    /// The right side of `/` or `%`, or the second argument of `cdiv`, is zero.
    #[error("division by zero (column {column})")]
    DivisionByZero {
        /// Of the operator or call in the text, in characters from 1.
        column: usize,
    },
}

impl EvalError {
    /// Where in the text, in characters, counted from 1.
    pub fn column(&self) -> usize {
        match self {
            Self::Overflow { column } | Self::DivisionByZero { column } => *column,
        }
    }

    /// `text` (or the part around the position, when it is long) with a caret under the position, in two lines.
    pub fn caret(&self, text: &str) -> String {
        caret(text, self.column())
    }
}

impl Integer {
    pub(super) fn eval(&self, env: &Env<'_>) -> Result<i128, EvalError> {
        match self {
            Self::Literal(value) => Ok(*value),
            Self::Parameter(index) => Ok(i128::from(env.values[*index])),
            Self::Rank => Ok(i128::from(env.rank)),
            Self::ElementBytes(operand) => Ok((env.element_bytes)(*operand)),
            Self::Negate { operand, column } => fits(operand.eval(env)?.checked_neg(), *column),
            Self::Power { base, exponent, column } => fits(power(base.eval(env)?, *exponent), *column),
            Self::Chain { first, steps } => {
                let mut value = first.eval(env)?;
                for step in steps {
                    value = apply(step.operator, value, step.operand.eval(env)?, step.column)?;
                }
                Ok(value)
            }
            Self::Min(operands) => Ok(operands[0].eval(env)?.min(operands[1].eval(env)?)),
            Self::Max(operands) => Ok(operands[0].eval(env)?.max(operands[1].eval(env)?)),
            Self::CeilingDivide { operands, column } => {
                ceiling_divide(operands[0].eval(env)?, operands[1].eval(env)?, *column)
            }
            Self::If(parts) => match parts.0.eval(env)? {
                true => parts.1.eval(env),
                false => parts.2.eval(env),
            },
        }
    }
}

impl Truth {
    pub(super) fn eval(&self, env: &Env<'_>) -> Result<bool, EvalError> {
        match self {
            Self::Choice { parameter, value, equal } => Ok((env.values[*parameter] == *value) == *equal),
            Self::Compare { comparison, sides, .. } => {
                let (left, right) = (sides[0].eval(env)?, sides[1].eval(env)?);
                Ok(match comparison {
                    Comparison::Equal => left == right,
                    Comparison::NotEqual => left != right,
                    Comparison::Below => left < right,
                    Comparison::AtMost => left <= right,
                    Comparison::Above => left > right,
                    Comparison::AtLeast => left >= right,
                })
            }
            Self::Not(operand) => Ok(!operand.eval(env)?),
            Self::All(operands) => {
                for operand in operands {
                    if !operand.eval(env)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Any(operands) => {
                for operand in operands {
                    if operand.eval(env)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }
}

/// `value`, where `None` stands for one that does not fit.
pub(super) fn fits(value: Option<i128>, column: usize) -> Result<i128, EvalError> {
    value.ok_or(EvalError::Overflow { column })
}

/// `base ^ exponent` for `exponent >= 0`, `None` when it does not fit; `0 ^ 0` is 1.
pub(super) fn power(base: i128, exponent: i128) -> Option<i128> {
    match (base, u32::try_from(exponent)) {
        (_, Ok(exponent)) => base.checked_pow(exponent),
        (0 | 1, Err(_)) => Some(base),
        (-1, Err(_)) => Some(if exponent % 2 == 0 { 1 } else { -1 }),
        (_, Err(_)) => None,
    }
}

fn apply(operator: Arithmetic, a: i128, b: i128, column: usize) -> Result<i128, EvalError> {
    match operator {
        Arithmetic::Add => fits(a.checked_add(b), column),
        Arithmetic::Subtract => fits(a.checked_sub(b), column),
        Arithmetic::Multiply => fits(a.checked_mul(b), column),
        Arithmetic::Divide => {
            let (quotient, rest) = divide(a, b, column)?;
            // With a rest, |b| >= 2 and the quotient is far from the ends.
            Ok(quotient - i128::from(rest != 0 && (rest < 0) != (b < 0)))
        }
        Arithmetic::Remainder => {
            if b == 0 {
                return Err(EvalError::DivisionByZero { column });
            }
            // Wraps for MIN % -1 only, to the exact 0.
            let rest = a.wrapping_rem(b);
            // The signs differ, so the sum is between them.
            Ok(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest })
        }
    }
}

fn ceiling_divide(a: i128, b: i128, column: usize) -> Result<i128, EvalError> {
    let (quotient, rest) = divide(a, b, column)?;
    // With a rest, |b| >= 2 and the quotient is far from the ends.
    Ok(quotient + i128::from(rest != 0 && (rest < 0) == (b < 0)))
}

/// The quotient rounded towards zero, and the rest with the sign of `a`.
fn divide(a: i128, b: i128, column: usize) -> Result<(i128, i128), EvalError> {
    if b == 0 {
        return Err(EvalError::DivisionByZero { column });
    }
    let quotient = fits(a.checked_div(b), column)?;
    Ok((quotient, a - quotient * b))
}
