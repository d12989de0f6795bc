//! Why a text is no expression, and where.

use thiserror::Error;

/// Characters of the text that a caret line shows on either side of the position.
const CARET_WINDOW: usize = 60;
/// Characters of a name or quoted value that a message repeats.
const SHOWN_NAME: usize = 40;

/// A text that does not parse, or that does not fit its scope; the message is one lower-case sentence.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{problem} (column {column})")]
pub struct ParseError {
    /// Boxed because every frame of the parser holds several of these results.
    problem: Box<Problem>,
    column: usize,
}

impl ParseError {
    pub(super) fn new(problem: Problem, column: usize) -> Self {
        Self { problem: Box::new(problem), column }
    }

    /// Where in the text, in characters, counted from 1; one past the last character for an early end.
    pub fn column(&self) -> usize {
        self.column
    }

    /// `text` (or the part around the position, when it is long) with a caret under the position, in two lines.
    pub fn caret(&self, text: &str) -> String {
        caret(text, self.column)
    }
}

/// The part of `text` around the 1-based character `column`, and below it a line with a caret.
pub(super) fn caret(text: &str, column: usize) -> String {
    let length = text.chars().count();
    let position = column.saturating_sub(1).min(length);
    let first = position.saturating_sub(CARET_WINDOW);
    let last = length.min(position + CARET_WINDOW);
    let before = if first > 0 { "..." } else { "" };
    let after = if last < length { "..." } else { "" };
    let shown: String =
        text.chars().skip(first).take(last - first).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let indent = before.len() + position - first;
    format!("{before}{shown}{after}\n{:indent$}^", "")
}

/// `name`, cut to a length that a message can carry.
pub(super) fn shortened(name: &str) -> String {
    match name.char_indices().nth(SHOWN_NAME) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_owned(),
    }
}

/// What is wrong, without the position.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum Problem {
    #[error("unexpected character {0:?}")]
    Character(char),
    #[error("unknown operator `{found}`, write `{instead}`")]
    Foreign { found: &'static str, instead: &'static str },
    #[error("a value is quoted with ' and not with \"")]
    DoubleQuote,
    #[error("the quoted value has no closing '")]
    UnclosedQuote,
    #[error("an integer is decimal digits and `_`, without fraction, exponent or suffix")]
    Number,
    #[error("the integer is above 2^127 - 1")]
    IntegerTooLarge,
    #[error("expected {wanted}, found {found}")]
    Expected { wanted: &'static str, found: String },
    #[error("nested too deeply")]
    TooDeep,
    #[error("unknown parameter `{0}`")]
    UnknownName(String),
    #[error("unknown operand `{0}`")]
    UnknownOperand(String),
    #[error("unknown function `{0}`, there are `min`, `max`, `cdiv`, `if` and `sizeof`")]
    UnknownFunction(String),
    #[error("`{name}` takes {count} arguments")]
    Arguments { name: &'static str, count: usize },
    #[error("the exponent of `^` must be a non-negative integer literal")]
    Exponent,
    #[error("`^` does not chain, use parentheses")]
    ChainedPower,
    #[error("comparisons do not chain, join them with `and`")]
    ChainedComparison,
    #[error("expected an integer, but this is a condition")]
    ConditionForInteger,
    #[error("expected a condition, but this is an integer")]
    IntegerForCondition,
    #[error("a condition is not compared, join conditions with `and`, `or` and `not`")]
    ComparedCondition,
    #[error("`{0}` is a choice, it can only be compared with a 'quoted' value")]
    BareChoice(String),
    #[error("`{0}` is a choice, it compares only by `==` and `!=`")]
    OrderedChoice(String),
    #[error("a quoted value can only be compared with a choice parameter")]
    BareText,
    #[error("`{name}` has no value '{value}', its values are {known}")]
    UnknownValue { name: String, value: String, known: String },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caret_stands_under_the_character() {
        assert_eq!(caret("a + ß + $", 9), "a + ß + $\n        ^");
        assert_eq!(caret("a +", 4), "a +\n   ^");
        assert_eq!(caret("a\n+\t$", 5), "a + $\n    ^");
        assert_eq!(caret("", 1), "\n^");
        assert_eq!(caret("a", usize::MAX), "a\n ^");
    }

    #[test]
    fn caret_shows_a_window_of_a_long_text() {
        let text = format!("{}${}", "a".repeat(1000), "b".repeat(1000));
        let shown = caret(&text, 1001);
        let (line, below) = shown.split_once('\n').unwrap();
        assert!(line.starts_with("...a") && line.ends_with("b..."));
        assert_eq!(line.find('$'), below.find('^'));
        assert!(line.len() < 130);
    }

    #[test]
    fn long_names_are_cut_at_a_character() {
        assert_eq!(shortened("lda"), "lda");
        assert_eq!(shortened(&"ß".repeat(50)), format!("{}...", "ß".repeat(40)));
    }
}
