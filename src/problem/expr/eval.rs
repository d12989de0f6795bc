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

#[cfg(test)]
mod tests {
    use super::super::testing::{holds, value};
    use super::*;

    const MIN: &str = "(-2)^127";
    const MAX: &str = "170141183460469231731687303715884105727";

    #[test]
    fn division_rounds_down_and_the_rest_has_the_sign_of_the_divisor() {
        for (text, expected) in [
            ("-7/2", -4),
            ("7/-2", -4),
            ("-7/-2", 3),
            ("7/2", 3),
            ("-6/2", -3),
            ("-7%3", 2),
            ("7%-3", -2),
            ("-7%-3", -1),
            ("7%3", 1),
            ("-6%3", 0),
            ("cdiv(7, 2)", 4),
            ("cdiv(-7, 2)", -3),
            ("cdiv(7, -2)", -3),
            ("cdiv(-7, -2)", 4),
            ("cdiv(6, 2)", 3),
            ("cdiv(0, 5)", 0),
            ("cdiv(1, 128)", 1),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn names_functions_and_choices_have_their_values() {
        assert_eq!(value("M * N + lda - lda"), Ok(-15));
        assert_eq!(value("min(M, N) + 10 * max(M, N)"), Ok(47));
        assert_eq!(value("sizeof(A) * 10 + sizeof( B )"), Ok(24));
        assert_eq!(value("rank"), Ok(7));
        assert_eq!(value("if(transA, 1, 2)"), Ok(1));
        assert_eq!(value("if(not transA, 1, 2)"), Ok(2));
        assert_eq!(holds("dtype == 'bf16'"), Ok(true));
        assert_eq!(holds("'f32' != dtype"), Ok(true));
        assert_eq!(holds("dtype != 'bf16'"), Ok(false));
        assert_eq!(holds("dtype == 'größe'"), Ok(false));
    }

    #[test]
    fn comparisons_compare() {
        for (text, expected) in [
            ("1 < 1", false),
            ("1 <= 1", true),
            ("1 > 1", false),
            ("1 >= 1", true),
            ("1 == 1", true),
            ("1 != 1", false),
            ("N < K", true),
            ("N > K", false),
        ] {
            assert_eq!(holds(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn every_operation_checks_for_overflow() {
        let at = |text: &str, column| {
            assert_eq!(value(text), Err(EvalError::Overflow { column }), "{text} at {column}");
        };
        at(&format!("{MAX} + 1"), 41);
        at(&format!("{MIN} - 1"), 10);
        at(&format!("{MIN} * -1"), 10);
        at(&format!("{MIN} / -1"), 10);
        at(&format!("-{MIN}"), 1);
        at(&format!("cdiv({MIN}, -1)"), 1);
        at("2^127", 2);
        at("2^170141183460469231731687303715884105727", 2);
        at("lda^3", 4);
        at("lda * lda * lda", 11);
        assert_eq!(value(&format!("{MIN} % -1")), Ok(0));
        assert_eq!(value(&format!("{MIN} / 1")), Ok(i128::MIN));
        assert_eq!(value(&format!("cdiv({MIN}, 1)")), Ok(i128::MIN));
        assert_eq!(value(&format!("{MIN} / {MAX}")), Ok(-2));
        assert_eq!(value(&format!("{MIN} % {MAX}")), Ok(i128::MAX - 1));
        assert_eq!(value(&format!("{MAX} % {MIN}")), Ok(-1));
    }

    #[test]
    fn huge_exponents_of_small_bases_are_exact() {
        assert_eq!(value("K^0"), Ok(1));
        assert_eq!(value("0^99999999999999"), Ok(0));
        assert_eq!(value("1^99999999999999"), Ok(1));
        assert_eq!(value("(-1)^99999999999999"), Ok(-1));
        assert_eq!(value("(-1)^99999999999998"), Ok(1));
        assert_eq!(value("lda^2"), Ok(i128::from(i64::MAX).pow(2)));
    }

    #[test]
    fn division_by_zero_says_where() {
        for text in ["1 / K", "1 % K"] {
            assert_eq!(value(text), Err(EvalError::DivisionByZero { column: 3 }));
        }
        let error = value("M + cdiv(1, K)").unwrap_err();
        assert_eq!(error.to_string(), "division by zero (column 5)");
        assert_eq!(error.caret("M + cdiv(1, K)"), "M + cdiv(1, K)\n    ^");
    }

    #[test]
    fn only_what_is_needed_is_evaluated() {
        assert_eq!(value("if(K == 0, 1, 1 / K)"), Ok(1));
        assert_eq!(value("if(K != 0, 1 / K, 2)"), Ok(2));
        assert_eq!(holds("K != 0 and 1 / K == 1"), Ok(false));
        assert_eq!(holds("K == 0 or 1 / K == 1"), Ok(true));
        assert_eq!(holds("M == 5 and K != 0 and 1 / K == 1"), Ok(false));
        assert!(holds("1 / K == 1 and K != 0").is_err());
        assert!(holds("1 / K == 1 or K == 0").is_err());
        assert!(value("min(1, 1 / K)").is_err());
    }
}
