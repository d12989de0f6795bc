//! Text to tokens, one at a time.

use super::error::{ParseError, Problem, shortened};
use super::tree::{Arithmetic, Comparison};

/// One token; names and quoted values borrow from the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Integer(i128),
    Name(&'a str),
    /// The inside of a 'quoted' value.
    Text(&'a str),
    Infix(Infix),
    Not,
    Power,
    Open,
    Close,
    Comma,
    End,
}

/// An operator between two operands; `Subtract` is also the sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Infix {
    Or,
    And,
    Compare(Comparison),
    Arithmetic(Arithmetic),
}

/// A token and where it starts, in characters from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Located<'a> {
    pub(super) token: Token<'a>,
    pub(super) column: usize,
}

/// The rest of a text, with the column it starts at.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    rest: &'a str,
    column: usize,
}

/// Spellings other languages use, with ours; looked up after our own operators.
const FOREIGN: [(&str, &str); 5] = [("&&", "and"), ("||", "or"), ("&", "and"), ("|", "or"), ("!", "not")];

/// Every operator and mark; a spelling comes before its own prefixes.
const MARKS: [(&str, Token<'static>); 15] = {
    use Token::{Close, Comma, Infix as In, Open, Power};
    [
        ("==", In(Infix::Compare(Comparison::Equal))),
        ("!=", In(Infix::Compare(Comparison::NotEqual))),
        ("<=", In(Infix::Compare(Comparison::AtMost))),
        (">=", In(Infix::Compare(Comparison::AtLeast))),
        ("<", In(Infix::Compare(Comparison::Below))),
        (">", In(Infix::Compare(Comparison::Above))),
        ("+", In(Infix::Arithmetic(Arithmetic::Add))),
        ("-", In(Infix::Arithmetic(Arithmetic::Subtract))),
        ("*", In(Infix::Arithmetic(Arithmetic::Multiply))),
        ("/", In(Infix::Arithmetic(Arithmetic::Divide))),
        ("%", In(Infix::Arithmetic(Arithmetic::Remainder))),
        ("^", Power),
        ("(", Open),
        (")", Close),
        (",", Comma),
    ]
};

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text, column: 1 }
    }

    /// The next token; `End` for ever once the text is used up.
    pub(super) fn next(&mut self) -> Result<Located<'a>, ParseError> {
        let blank = self.rest.len() - self.rest.trim_start().len();
        self.take(blank);
        let column = self.column;
        let token = match self.rest.chars().next() {
            None => Token::End,
            Some(c) if c.is_ascii_digit() => self.integer()?,
            Some(c) if starts_name(c) => self.name(),
            Some('\'') => self.quoted()?,
            Some(c) => self.mark(c)?,
        };
        Ok(Located { token, column })
    }

    /// Consumes `bytes` bytes, which must end at a character boundary.
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        self.column += taken.chars().count();
        taken
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len());
        self.take(end)
    }

    fn error(&self, problem: Problem) -> ParseError {
        ParseError::new(problem, self.column)
    }

    fn integer(&mut self) -> Result<Token<'a>, ParseError> {
        let column = self.column;
        let digits = self.take_while(|c| c.is_ascii_digit() || c == '_');
        if self.rest.starts_with(|c| starts_name(c) || c == '.') {
            return Err(self.error(Problem::Number));
        }
        digits
            .chars()
            .filter_map(|c| c.to_digit(10))
            .try_fold(0_i128, |value, digit| value.checked_mul(10)?.checked_add(i128::from(digit)))
            .map(Token::Integer)
            .ok_or_else(|| ParseError::new(Problem::IntegerTooLarge, column))
    }

    fn name(&mut self) -> Token<'a> {
        match self.take_while(|c| starts_name(c) || c.is_ascii_digit()) {
            "or" => Token::Infix(Infix::Or),
            "and" => Token::Infix(Infix::And),
            "not" => Token::Not,
            name => Token::Name(name),
        }
    }

    fn quoted(&mut self) -> Result<Token<'a>, ParseError> {
        let length = self.rest[1..].find('\'').ok_or_else(|| self.error(Problem::UnclosedQuote))?;
        let quoted = self.take(length + 2);
        Ok(Token::Text(&quoted[1..=length]))
    }

    fn mark(&mut self, first: char) -> Result<Token<'a>, ParseError> {
        if self.rest.starts_with("**") {
            return Err(self.error(Problem::Foreign { found: "**", instead: "^" }));
        }
        for (spelling, token) in MARKS {
            if self.rest.starts_with(spelling) {
                self.take(spelling.len());
                return Ok(token);
            }
        }
        for (found, instead) in FOREIGN.into_iter().chain([("=", "==")]) {
            if self.rest.starts_with(found) {
                return Err(self.error(Problem::Foreign { found, instead }));
            }
        }
        Err(self.error(match first {
            '"' => Problem::DoubleQuote,
            other => Problem::Character(other),
        }))
    }
}

impl Token<'_> {
    /// The token as a message names it.
    pub(super) fn describe(&self) -> String {
        match self {
            Token::Integer(value) => format!("`{value}`"),
            Token::Name(name) => format!("`{}`", shortened(name)),
            Token::Text(text) => format!("'{}'", shortened(text)),
            Token::Infix(Infix::Or) => "`or`".to_owned(),
            Token::Infix(Infix::And) => "`and`".to_owned(),
            Token::Not => "`not`".to_owned(),
            Token::End => "the end".to_owned(),
            mark => MARKS
                .iter()
                .find(|(_, token)| token == mark)
                .map_or_else(String::new, |(spelling, _)| format!("`{spelling}`")),
        }
    }
}

fn starts_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Result<Vec<Located<'_>>, ParseError> {
        let mut lexer = Lexer::new(text);
        let mut found = Vec::new();
        loop {
            let next = lexer.next()?;
            if next.token == Token::End {
                return Ok(found);
            }
            found.push(next);
        }
    }

    fn message(text: &str) -> String {
        tokens(text).unwrap_err().to_string()
    }

    #[test]
    fn columns_count_characters() {
        let columns: Vec<usize> = tokens("'ßß' ==\n x1").unwrap().iter().map(|located| located.column).collect();
        assert_eq!(columns, [1, 6, 10]);
    }

    #[test]
    fn integers_allow_underscores_and_reach_the_largest() {
        assert_eq!(tokens("1_000").unwrap()[0].token, Token::Integer(1000));
        let largest = i128::MAX.to_string();
        assert_eq!(tokens(&largest).unwrap()[0].token, Token::Integer(i128::MAX));
        assert_eq!(message("1 + 170141183460469231731687303715884105728"), "the integer is above 2^127 - 1 (column 5)");
    }

    #[test]
    fn keywords_are_whole_words() {
        assert_eq!(tokens("android").unwrap()[0].token, Token::Name("android"));
        assert_eq!(tokens("not").unwrap()[0].token, Token::Not);
    }

    #[test]
    fn other_spellings_are_told_ours() {
        assert_eq!(message("a && b"), "unknown operator `&&`, write `and` (column 3)");
        assert_eq!(message("a = b"), "unknown operator `=`, write `==` (column 3)");
        assert_eq!(message("a ** 2"), "unknown operator `**`, write `^` (column 3)");
        assert_eq!(message("!a"), "unknown operator `!`, write `not` (column 1)");
        assert_eq!(message("d == \"x\""), "a value is quoted with ' and not with \" (column 6)");
        assert_eq!(message("d == 'x"), "the quoted value has no closing ' (column 6)");
        assert_eq!(message("a ÷ b"), "unexpected character '÷' (column 3)");
        assert!(message("0x10").starts_with("an integer is decimal"));
        assert!(message("1.5").starts_with("an integer is decimal"));
    }

    #[test]
    fn every_mark_describes_itself() {
        for (spelling, token) in MARKS {
            assert_eq!(token.describe(), format!("`{spelling}`"));
        }
    }
}
