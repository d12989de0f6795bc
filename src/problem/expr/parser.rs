//! Tokens to a checked tree: precedence, names and sorts in one pass.

#[cfg(test)]
mod tests;

use super::error::{ParseError, Problem, shortened};
use super::lexer::{Infix, Lexer, Located, Token};
use super::tree::{Arithmetic, Comparison, Integer, Step, Truth};
use super::{Scope, Symbol, eval};

/// How deep calls of [`Parser::expression`] nest: one for a pair of parentheses, an argument, a sign or `not`, one more
/// for each operator that these are on the right of. Bounds the stack of everything that walks a tree.
const MAX_DEPTH: usize = 200;

type Parsed<T> = Result<T, ParseError>;

/// Parses a whole text as an integer.
pub(super) fn integer(text: &str, scope: &dyn Scope) -> Parsed<Integer> {
    Ok(*Parser::whole(text, scope)?.integer()?)
}

/// Parses a whole text as a condition.
pub(super) fn truth(text: &str, scope: &dyn Scope) -> Parsed<Truth> {
    Ok(*Parser::whole(text, scope)?.truth()?)
}

/// How tightly an operator binds, loosest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Or,
    And,
    Comparison,
    Sum,
    Product,
    Operand,
}

impl Level {
    fn of(infix: Infix) -> Self {
        match infix {
            Infix::Or => Self::Or,
            Infix::And => Self::And,
            Infix::Compare(_) => Self::Comparison,
            Infix::Arithmetic(Arithmetic::Add | Arithmetic::Subtract) => Self::Sum,
            Infix::Arithmetic(_) => Self::Product,
        }
    }

    /// The level of what stands beside an operator of this one.
    fn tighter(self) -> Self {
        match self {
            Self::Or => Self::And,
            Self::And => Self::Comparison,
            Self::Comparison => Self::Sum,
            Self::Sum => Self::Product,
            Self::Product | Self::Operand => Self::Operand,
        }
    }
}

/// A parsed part whose sort its surroundings have still to accept; small, since every frame of the parser holds some.
struct Term<'a> {
    value: Value<'a>,
    /// Where it starts.
    column: usize,
}

enum Value<'a> {
    Integer(Box<Integer>),
    Truth(Box<Truth>),
    Choice(Box<Choice<'a>>),
    Text(&'a str),
}

impl From<Integer> for Value<'_> {
    fn from(integer: Integer) -> Self {
        Self::Integer(Box::new(integer))
    }
}

impl From<Truth> for Value<'_> {
    fn from(truth: Truth) -> Self {
        Self::Truth(Box::new(truth))
    }
}

/// A string choice, which is only something once a comparison gives it a value.
struct Choice<'a> {
    name: &'a str,
    index: usize,
    values: &'a [String],
}

impl Choice<'_> {
    fn index_of(&self, value: &str) -> Result<i64, Problem> {
        match self.values.iter().position(|known| known == value) {
            // A slice has at most `isize::MAX` elements.
            Some(position) => Ok(position as i64),
            None => Err(Problem::UnknownValue {
                name: shortened(self.name),
                value: shortened(value),
                known: quoted_list(self.values),
            }),
        }
    }
}

impl<'a> Term<'a> {
    fn error(&self, problem: Problem) -> ParseError {
        ParseError::new(problem, self.column)
    }

    fn integer(self) -> Parsed<Box<Integer>> {
        match self.value {
            Value::Integer(integer) => Ok(integer),
            Value::Truth(_) => Err(self.error(Problem::ConditionForInteger)),
            Value::Choice(ref choice) => Err(self.error(Problem::BareChoice(shortened(choice.name)))),
            Value::Text(_) => Err(self.error(Problem::BareText)),
        }
    }

    fn truth(self) -> Parsed<Box<Truth>> {
        match self.value {
            Value::Truth(truth) => Ok(truth),
            Value::Integer(_) => Err(self.error(Problem::IntegerForCondition)),
            Value::Choice(ref choice) => Err(self.error(Problem::BareChoice(shortened(choice.name)))),
            Value::Text(_) => Err(self.error(Problem::BareText)),
        }
    }

    /// One side of a comparison that has no choice and quoted value to pair.
    fn side(self) -> Parsed<Box<Integer>> {
        match self.value {
            Value::Truth(_) => Err(self.error(Problem::ComparedCondition)),
            _ => self.integer(),
        }
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    current: Located<'a>,
    scope: &'a dyn Scope,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn whole(text: &'a str, scope: &'a dyn Scope) -> Parsed<Term<'a>> {
        let mut lexer = Lexer::new(text);
        let current = lexer.next()?;
        let mut parser = Self { lexer, current, scope, depth: 0 };
        let term = parser.expression(Level::Or)?;
        match parser.current.token {
            Token::End => Ok(term),
            _ => Err(parser.expected("an operator or the end")),
        }
    }

    /// Consumes the current token and gives it.
    fn advance(&mut self) -> Parsed<Located<'a>> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.current, next))
    }

    fn error(&self, problem: Problem) -> ParseError {
        ParseError::new(problem, self.current.column)
    }

    fn expected(&self, wanted: &'static str) -> ParseError {
        self.error(Problem::Expected { wanted, found: self.current.token.describe() })
    }

    fn expect(&mut self, token: Token<'static>, wanted: &'static str) -> Parsed<()> {
        if self.current.token != token {
            return Err(self.expected(wanted));
        }
        self.advance()?;
        Ok(())
    }

    /// An operand and every operator after it that binds at least as tightly as `loosest`.
    fn expression(&mut self, loosest: Level) -> Parsed<Term<'a>> {
        if self.depth == MAX_DEPTH {
            return Err(self.error(Problem::TooDeep));
        }
        self.depth += 1;
        let mut term = self.operand()?;
        while let Token::Infix(infix) = self.current.token {
            let level = Level::of(infix);
            if level < loosest {
                break;
            }
            let column = term.column;
            let value = match infix {
                Infix::Or => Truth::Any(self.run(term, Level::Or)?).into(),
                Infix::And => Truth::All(self.run(term, Level::And)?).into(),
                Infix::Compare(comparison) => self.comparison(term, comparison)?,
                Infix::Arithmetic(_) => self.chain(term, level)?,
            };
            term = Term { value, column };
        }
        self.depth -= 1;
        Ok(term)
    }

    /// The rest of a run of `and` or of `or`.
    fn run(&mut self, first: Term<'a>, level: Level) -> Parsed<Box<[Truth]>> {
        let mut operands = vec![*first.truth()?];
        while let Token::Infix(infix) = self.current.token {
            if Level::of(infix) != level {
                break;
            }
            self.advance()?;
            operands.push(*self.expression(level.tighter())?.truth()?);
        }
        Ok(operands.into())
    }

    /// The rest of a run of `+ -` or of `* / %`.
    fn chain(&mut self, first: Term<'a>, level: Level) -> Parsed<Value<'a>> {
        let first = first.integer()?;
        let mut steps = Vec::new();
        while let Token::Infix(infix @ Infix::Arithmetic(operator)) = self.current.token {
            if Level::of(infix) != level {
                break;
            }
            let column = self.advance()?.column;
            let operand = *self.expression(level.tighter())?.integer()?;
            steps.push(Step { operator, operand, column });
        }
        Ok(Integer::Chain { first, steps: steps.into() }.into())
    }

    fn comparison(&mut self, left: Term<'a>, comparison: Comparison) -> Parsed<Value<'a>> {
        let column = self.advance()?.column;
        let right = self.expression(Level::Comparison.tighter())?;
        if let Token::Infix(Infix::Compare(_)) = self.current.token {
            return Err(self.error(Problem::ChainedComparison));
        }
        let (choice, text, text_column) = match (left.value, right.value) {
            (Value::Choice(choice), Value::Text(text)) => (choice, text, right.column),
            (Value::Text(text), Value::Choice(choice)) => (choice, text, left.column),
            (left_value, right_value) => {
                let side = |value, column| Term { value, column }.side();
                let sides = Box::new([*side(left_value, left.column)?, *side(right_value, right.column)?]);
                return Ok(Truth::Compare { comparison, sides, column }.into());
            }
        };
        let equal = match comparison {
            Comparison::Equal => true,
            Comparison::NotEqual => false,
            _ => {
                let problem = Problem::OrderedChoice(shortened(choice.name));
                return Err(ParseError::new(problem, column));
            }
        };
        let value = choice.index_of(text).map_err(|problem| ParseError::new(problem, text_column))?;
        Ok(Truth::Choice { parameter: choice.index, value, equal }.into())
    }

    /// A sign, `not`, or a primary with its exponent.
    fn operand(&mut self) -> Parsed<Term<'a>> {
        let column = self.current.column;
        let value = match self.current.token {
            Token::Infix(Infix::Arithmetic(Arithmetic::Subtract)) => {
                self.advance()?;
                let operand = self.expression(Level::Operand)?.integer()?;
                folded(Integer::Negate { operand, column }).into()
            }
            Token::Not => {
                self.advance()?;
                let operand = self.expression(Level::Comparison)?.truth()?;
                Truth::Not(operand).into()
            }
            _ => {
                let base = self.primary()?;
                return match self.current.token {
                    Token::Power => self.power(base),
                    _ => Ok(base),
                };
            }
        };
        Ok(Term { value, column })
    }

    fn power(&mut self, base: Term<'a>) -> Parsed<Term<'a>> {
        let start = base.column;
        let base = base.integer()?;
        let column = self.advance()?.column;
        let Token::Integer(exponent) = self.current.token else {
            return Err(self.error(Problem::Exponent));
        };
        self.advance()?;
        if self.current.token == Token::Power {
            return Err(self.error(Problem::ChainedPower));
        }
        let power = Integer::Power { base, exponent, column };
        Ok(Term { value: folded(power).into(), column: start })
    }

    fn primary(&mut self) -> Parsed<Term<'a>> {
        let column = self.current.column;
        let value = match self.current.token {
            Token::Integer(value) => {
                self.advance()?;
                Integer::Literal(value).into()
            }
            Token::Text(text) => {
                self.advance()?;
                Value::Text(text)
            }
            Token::Name(name) => {
                self.advance()?;
                match self.current.token {
                    Token::Open => self.call(name, column)?,
                    _ => self.resolved(name, column)?,
                }
            }
            Token::Open => {
                self.advance()?;
                let value = self.expression(Level::Or)?.value;
                self.expect(Token::Close, "an operator or `)`")?;
                value
            }
            _ => return Err(self.expected("a value")),
        };
        Ok(Term { value, column })
    }

    fn resolved(&self, name: &'a str, column: usize) -> Parsed<Value<'a>> {
        Ok(match self.scope.lookup(name) {
            Some(Symbol::Integer(index)) => Integer::Parameter(index).into(),
            Some(Symbol::Condition { index, true_index }) => {
                Truth::Choice { parameter: index, value: true_index, equal: true }.into()
            }
            Some(Symbol::Choice { index, values }) => Value::Choice(Box::new(Choice { name, index, values })),
            None if name == "rank" && self.scope.has_rank() => Integer::Rank.into(),
            None => {
                return Err(ParseError::new(Problem::UnknownName(shortened(name)), column));
            }
        })
    }

    /// A call whose name is consumed and whose `(` is current.
    fn call(&mut self, name: &str, column: usize) -> Parsed<Value<'a>> {
        match name {
            "min" => Ok(Integer::Min(self.two_arguments("min")?).into()),
            "max" => Ok(Integer::Max(self.two_arguments("max")?).into()),
            "cdiv" => Ok(Integer::CeilingDivide { operands: self.two_arguments("cdiv")?, column }.into()),
            "if" => {
                self.advance()?;
                let condition = self.argument("if", 3, false)?.truth()?;
                let then = self.argument("if", 3, false)?.integer()?;
                let otherwise = self.argument("if", 3, true)?.integer()?;
                Ok(Integer::If(Box::new((*condition, *then, *otherwise))).into())
            }
            "sizeof" => self.element_bytes(),
            _ => Err(ParseError::new(Problem::UnknownFunction(shortened(name)), column)),
        }
    }

    fn two_arguments(&mut self, name: &'static str) -> Parsed<Box<[Integer; 2]>> {
        self.advance()?;
        let first = self.argument(name, 2, false)?.integer()?;
        let second = self.argument(name, 2, true)?.integer()?;
        Ok(Box::new([*first, *second]))
    }

    /// One argument of `name`, which takes `count`, and the `,` or for the last one the `)` after it.
    fn argument(&mut self, name: &'static str, count: usize, last: bool) -> Parsed<Term<'a>> {
        if self.current.token == Token::Close {
            return Err(self.error(Problem::Arguments { name, count }));
        }
        let term = self.expression(Level::Or)?;
        match (self.current.token, last) {
            (Token::Comma, false) | (Token::Close, true) => self.advance()?,
            (Token::Comma, true) | (Token::Close, false) => {
                return Err(self.error(Problem::Arguments { name, count }));
            }
            (_, false) => return Err(self.expected("an operator or `,`")),
            (_, true) => return Err(self.expected("an operator or `)`")),
        };
        Ok(term)
    }

    fn element_bytes(&mut self) -> Parsed<Value<'a>> {
        self.advance()?;
        let Token::Name(name) = self.current.token else {
            return Err(self.expected("the name of an operand"));
        };
        let operand = self.scope.operand(name).ok_or_else(|| self.error(Problem::UnknownOperand(shortened(name))))?;
        self.advance()?;
        self.expect(Token::Close, "`)`")?;
        Ok(Integer::ElementBytes(operand).into())
    }
}

/// `-literal` and `literal ^ literal` as one literal, unless that overflows: the error belongs to evaluation.
fn folded(integer: Integer) -> Integer {
    let value = match &integer {
        Integer::Negate { operand, .. } => match **operand {
            Integer::Literal(value) => value.checked_neg(),
            _ => None,
        },
        Integer::Power { base, exponent, .. } => match **base {
            Integer::Literal(value) => eval::power(value, *exponent),
            _ => None,
        },
        _ => None,
    };
    value.map_or(integer, Integer::Literal)
}

fn quoted_list(values: &[String]) -> String {
    let quoted: Vec<String> = values.iter().map(|value| format!("'{value}'")).collect();
    quoted.join(", ")
}
