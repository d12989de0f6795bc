//! What a condition says about one parameter, read off its shape.

use super::eval::{Env, EvalError, fits};
use super::tree::{Comparison, Integer, Truth};

/// Which side of a parameter's values a bound closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The parameter is at least the bound.
    Lower,
    /// The parameter is at most the bound.
    Upper,
}

/// An inclusive bound on an integer parameter: an expression that does not mention it, plus an offset.
#[derive(Debug, Clone, Copy)]
pub struct Bound<'a> {
    /// Whether the parameter is at least or at most the bound.
    pub side: Side,
    /// Added to the expression: 1 below a `>`, -1 above a `<`, else 0.
    pub plus: i64,
    expression: &'a Integer,
    column: usize,
}

impl Bound<'_> {
    /// The inclusive bound. The value of the bounded parameter in `env` is not read.
    ///
    /// # Errors
    /// The expression's own, and [`EvalError::Overflow`] when adding the offset leaves 128 bits.
    pub fn eval(&self, env: &Env<'_>) -> Result<i128, EvalError> {
        let value = self.expression.eval(env)?;
        fits(value.checked_add(i128::from(self.plus)), self.column)
    }
}

/// Appends the bounds that `truth` puts on `parameter`, in text order.
pub(super) fn collect<'a>(truth: &'a Truth, parameter: usize, bounds: &mut Vec<Bound<'a>>) {
    match truth {
        Truth::All(operands) => {
            for operand in operands {
                collect(operand, parameter, bounds);
            }
        }
        Truth::Compare { comparison, sides, column } => {
            let (comparison, expression) = match &**sides {
                [Integer::Parameter(index), other] if *index == parameter => (*comparison, other),
                [other, Integer::Parameter(index)] if *index == parameter => (comparison.mirrored(), other),
                _ => return,
            };
            if expression.mentions(parameter) {
                return;
            }
            bounds.extend(inclusive(comparison).iter().map(|&(side, plus)| Bound {
                side,
                plus,
                expression,
                column: *column,
            }));
        }
        Truth::Choice { .. } | Truth::Not(_) | Truth::Any(_) => {}
    }
}

/// The bounds that `parameter comparison expression` means, each with its offset.
fn inclusive(comparison: Comparison) -> &'static [(Side, i64)] {
    match comparison {
        Comparison::Equal => &[(Side::Lower, 0), (Side::Upper, 0)],
        Comparison::NotEqual => &[],
        Comparison::Below => &[(Side::Upper, -1)],
        Comparison::AtMost => &[(Side::Upper, 0)],
        Comparison::Above => &[(Side::Lower, 1)],
        Comparison::AtLeast => &[(Side::Lower, 0)],
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ENV, condition};
    use super::*;

    const LDA: usize = 3;

    fn bounds(text: &str) -> Vec<(Side, i128)> {
        condition(text).bounds_on(LDA).iter().map(|bound| (bound.side, bound.eval(&ENV).unwrap())).collect()
    }

    #[test]
    fn a_comparison_bounds_its_bare_side() {
        use Side::{Lower, Upper};
        for (text, expected) in [
            ("lda >= M", vec![(Lower, 5)]),
            ("lda > M", vec![(Lower, 6)]),
            ("lda <= M", vec![(Upper, 5)]),
            ("lda < M", vec![(Upper, 4)]),
            ("lda == M", vec![(Lower, 5), (Upper, 5)]),
            ("M <= lda", vec![(Lower, 5)]),
            ("M < lda", vec![(Lower, 6)]),
            ("M >= lda", vec![(Upper, 5)]),
            ("M > (lda)", vec![(Upper, 4)]),
            ("lda >= if(transA, K, M)", vec![(Lower, 0)]),
        ] {
            assert_eq!(bounds(text), expected, "{text}");
        }
    }

    #[test]
    fn a_conjunction_gives_the_bounds_of_all_its_sides() {
        assert_eq!(bounds("lda >= M and (transA and 2 * M > lda) and K == 0"), [(Side::Lower, 5), (Side::Upper, 9)]);
    }

    #[test]
    fn other_shapes_give_no_bounds() {
        for text in [
            "lda != M",
            "lda + 1 >= M",
            "lda >= lda",
            "lda >= M * lda",
            "lda >= if(lda > 3, 1, 2)",
            "lda >= M or lda >= K",
            "not lda < M",
            "M >= K",
            "transA",
        ] {
            assert_eq!(bounds(text), [], "{text}");
        }
    }

    #[test]
    fn the_offset_is_checked() {
        let text = "lda > 170141183460469231731687303715884105727";
        let condition = condition(text);
        assert_eq!(condition.bounds_on(LDA)[0].eval(&ENV), Err(EvalError::Overflow { column: 5 }));
    }
}
