//! Random trees against a second evaluator, and random text.

use proptest::prelude::*;

use super::testing::Gemm;
use super::{Condition, Env, EvalError, Expr, Side};

/// An expression as the tests write it down; of one sort only, conditions are 0 and 1.
#[derive(Debug, Clone)]
enum Tree {
    Literal(i128),
    Parameter(usize),
    Rank,
    ElementBytes(usize),
    Negate(Box<Tree>),
    Power(Box<Tree>, u8),
    Call(&'static str, Box<Tree>, Box<Tree>),
    If(Box<Tree>, Box<Tree>, Box<Tree>),
    Flag,
    Dtype(bool, usize),
    Not(Box<Tree>),
    Infix(&'static str, Box<Tree>, Box<Tree>),
}

const NAMES: [&str; 4] = ["M", "N", "K", "lda"];
const DTYPES: [&str; 3] = ["f32", "bf16", "größe"];

impl Tree {
    /// How tightly the outermost operator binds.
    fn level(&self) -> u8 {
        match self {
            Tree::Infix("or", ..) => 0,
            Tree::Infix("and", ..) => 1,
            Tree::Not(_) => 2,
            Tree::Infix("+" | "-", ..) => 4,
            Tree::Infix("*" | "/" | "%", ..) => 5,
            Tree::Infix(..) | Tree::Dtype(..) => 3,
            Tree::Negate(_) => 6,
            Tree::Power(..) => 7,
            _ => 8,
        }
    }

    /// As text, in parentheses where it binds looser than `least`, or everywhere.
    fn print(&self, least: u8, everywhere: bool) -> String {
        let below = |tree: &Tree, least| tree.print(least, everywhere);
        let text = match self {
            Tree::Literal(value) => value.to_string(),
            Tree::Parameter(index) => NAMES[*index].to_owned(),
            Tree::Rank => "rank".to_owned(),
            Tree::ElementBytes(operand) => format!("sizeof({})", ["A", "B"][*operand]),
            Tree::Negate(a) => format!("-{}", below(a, 6)),
            Tree::Power(a, exponent) => format!("{}^{exponent}", below(a, 8)),
            Tree::Call(name, a, b) => format!("{name}({}, {})", below(a, 0), below(b, 0)),
            Tree::If(c, a, b) => format!("if({}, {},{})", below(c, 0), below(a, 0), below(b, 0)),
            Tree::Flag => "transA".to_owned(),
            Tree::Dtype(true, value) => format!("dtype == '{}'", DTYPES[*value]),
            Tree::Dtype(false, value) => format!("'{}' != dtype", DTYPES[*value]),
            Tree::Not(a) => format!("not {}", below(a, 2)),
            Tree::Infix(operator, a, b) => {
                let level = self.level();
                let left = if level == 3 { 4 } else { level };
                format!("{} {operator} {}", below(a, left), below(b, level + 1))
            }
        };
        match everywhere || self.level() < least {
            true => format!("({text})"),
            false => text,
        }
    }

    /// The value by another way than the module's; `Err(true)` is a division by zero.
    fn value(&self, env: &Env<'_>) -> Result<i128, bool> {
        let fits = |value: Option<i128>| value.ok_or(false);
        Ok(match self {
            Tree::Literal(value) => *value,
            Tree::Parameter(index) => env.values[*index].into(),
            Tree::Rank => env.rank.into(),
            Tree::ElementBytes(operand) => (env.element_bytes)(*operand),
            Tree::Negate(a) => fits(0_i128.checked_sub(a.value(env)?))?,
            Tree::Power(a, exponent) => {
                let base = a.value(env)?;
                (0..*exponent).try_fold(1_i128, |so_far, _| fits(so_far.checked_mul(base)))?
            }
            Tree::Call(name, a, b) => {
                let (a, b) = (a.value(env)?, b.value(env)?);
                match *name {
                    "min" if a < b => a,
                    "min" => b,
                    "max" if a < b => b,
                    "max" => a,
                    // ceil(a / b) = -floor(-a / b), with the one a that has no negative apart.
                    _ if b == 0 => return Err(true),
                    _ if a == i128::MIN && b > 0 => a.div_euclid(b) + i128::from(a % b != 0),
                    _ if a == i128::MIN => fits(a.checked_div_euclid(b))?,
                    _ => -floor(-a, b).ok_or(false)?,
                }
            }
            Tree::If(c, a, b) if c.value(env)? == 1 => a.value(env)?,
            Tree::If(_, _, b) => b.value(env)?,
            Tree::Flag => i128::from(env.values[4] == 0),
            Tree::Dtype(equal, value) => i128::from((env.values[5] == i64::try_from(*value).unwrap()) == *equal),
            Tree::Not(a) => 1 - a.value(env)?,
            Tree::Infix("and", a, b) if a.value(env)? == 1 => b.value(env)?,
            Tree::Infix("and", ..) => 0,
            Tree::Infix("or", a, b) if a.value(env)? == 0 => b.value(env)?,
            Tree::Infix("or", ..) => 1,
            Tree::Infix(operator, a, b) => {
                let (a, b) = (a.value(env)?, b.value(env)?);
                match *operator {
                    "+" => fits(a.checked_add(b))?,
                    "-" => fits(a.checked_sub(b))?,
                    "*" => fits(a.checked_mul(b))?,
                    "/" | "%" if b == 0 => return Err(true),
                    "/" => fits(floor(a, b))?,
                    "%" if b > 0 => a.rem_euclid(b),
                    // a mod b = -((-a) mod (-b)); wrapping_rem_euclid takes MIN and -1 too.
                    "%" => match a.wrapping_rem_euclid(b) {
                        0 => 0,
                        rest => rest + b,
                    },
                    "==" => i128::from(a == b),
                    "!=" => i128::from(a != b),
                    "<" => i128::from(a < b),
                    "<=" => i128::from(a <= b),
                    ">" => i128::from(a > b),
                    _ => i128::from(a >= b),
                }
            }
        })
    }
}

/// The floor of a / b from the Euclidean quotient, whose rest is never negative.
fn floor(a: i128, b: i128) -> Option<i128> {
    let quotient = a.checked_div_euclid(b)?;
    Some(quotient - i128::from(b < 0 && a.wrapping_rem_euclid(b) != 0))
}

fn boxed(strategy: &BoxedStrategy<Tree>) -> impl Strategy<Value = Box<Tree>> + use<> {
    strategy.clone().prop_map(Box::new)
}

fn infix(operators: &'static [&'static str], operand: &BoxedStrategy<Tree>) -> BoxedStrategy<Tree> {
    (prop::sample::select(operators), boxed(operand), boxed(operand))
        .prop_map(|(operator, a, b)| Tree::Infix(operator, a, b))
        .boxed()
}

/// Integers and conditions of at most `depth` levels.
fn trees(depth: u32) -> (BoxedStrategy<Tree>, BoxedStrategy<Tree>) {
    let leaf = prop_oneof![
        4 => (0..10_i128).prop_map(Tree::Literal),
        1 => (0..=i128::MAX).prop_map(Tree::Literal),
        4 => (0..NAMES.len()).prop_map(Tree::Parameter),
        1 => Just(Tree::Rank),
        1 => (0..2_usize).prop_map(Tree::ElementBytes),
    ]
    .boxed();
    let flag = prop_oneof![
        Just(Tree::Flag),
        (any::<bool>(), 0..DTYPES.len()).prop_map(|(equal, value)| Tree::Dtype(equal, value)),
    ]
    .boxed();
    if depth == 0 {
        return (leaf, flag);
    }
    let (integer, truth) = trees(depth - 1);
    let integers = prop_oneof![
        1 => leaf,
        1 => boxed(&integer).prop_map(Tree::Negate),
        1 => (boxed(&integer), 0..5_u8).prop_map(|(a, exponent)| Tree::Power(a, exponent)),
        2 => (prop::sample::select(&["min", "max", "cdiv"][..]), boxed(&integer), boxed(&integer))
            .prop_map(|(name, a, b)| Tree::Call(name, a, b)),
        1 => (boxed(&truth), boxed(&integer), boxed(&integer))
            .prop_map(|(c, a, b)| Tree::If(c, a, b)),
        5 => infix(&["+", "-", "*", "/", "%"], &integer),
    ];
    let truths = prop_oneof![
        1 => flag,
        1 => boxed(&truth).prop_map(Tree::Not),
        3 => infix(&["and", "or"], &truth),
        3 => infix(&["==", "!=", "<", "<=", ">", ">="], &integer),
    ];
    (integers.boxed(), truths.boxed())
}

fn values() -> impl Strategy<Value = Vec<i64>> {
    let value = prop_oneof![4 => -5..=5_i64, 1 => any::<i64>(), 1 => Just(i64::MIN)];
    (prop::collection::vec(value, 4), 0..2_i64, 0..3_i64).prop_map(|(mut values, flag, dtype)| {
        values.extend([flag, dtype]);
        values
    })
}

fn kind<T>(result: Result<T, EvalError>) -> Result<T, bool> {
    result.map_err(|error| matches!(error, EvalError::DivisionByZero { .. }))
}

fn env(values: &[i64]) -> Env<'_> {
    Env { values, element_bytes: &|operand| [2, 8][operand], rank: 3 }
}

proptest! {
    #[test]
    fn printed_integers_evaluate_as_their_tree(
        tree in trees(5).0, values in values(), everywhere: bool,
    ) {
        let parsed = Expr::parse(&tree.print(0, everywhere), &Gemm::new()).unwrap();
        prop_assert_eq!(kind(parsed.eval(&env(&values))), tree.value(&env(&values)));
    }

    #[test]
    fn printed_conditions_evaluate_as_their_tree(
        tree in trees(5).1, values in values(), everywhere: bool,
    ) {
        let parsed = Condition::parse(&tree.print(0, everywhere), &Gemm::new()).unwrap();
        let expected = tree.value(&env(&values)).map(|value| value == 1);
        prop_assert_eq!(kind(parsed.eval(&env(&values))), expected);
    }

    #[test]
    fn bounds_hold_wherever_the_condition_holds(
        tree in trees(3).1, values in values(), parameter in 0..NAMES.len(),
    ) {
        let parsed = Condition::parse(&tree.print(0, false), &Gemm::new()).unwrap();
        let env = env(&values);
        if parsed.eval(&env) == Ok(true) {
            let value = i128::from(values[parameter]);
            for bound in parsed.bounds_on(parameter) {
                let limit = bound.eval(&env).unwrap();
                let kept = match bound.side {
                    Side::Lower => limit <= value,
                    Side::Upper => value <= limit,
                };
                prop_assert!(kept, "{:?} {}", bound.side, limit);
            }
        }
    }

    #[test]
    fn any_bytes_parse_or_give_an_error_inside_the_text(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        survives(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn any_tokens_parse_or_give_an_error_inside_the_text(
        tokens in prop::collection::vec(prop::sample::select(SOUP), 0..60),
        separator in prop::sample::select(&["", " "][..]),
    ) {
        survives(&tokens.join(separator))?;
    }
}

const SOUP: &[&str] = &[
    "M",
    "lda",
    "transA",
    "dtype",
    "'f32'",
    "'",
    "rank",
    "sizeof(A)",
    "sizeof",
    "A",
    "if",
    "min",
    "cdiv(",
    "(",
    ")",
    ",",
    "+",
    "-",
    "*",
    "/",
    "%",
    "^",
    "^2",
    "==",
    "!=",
    "<",
    ">=",
    "=",
    "!",
    "and",
    "or",
    "not",
    "0",
    "1",
    "170141183460469231731687303715884105727",
    "9_9",
    "1.",
    "ß",
    "\n",
    "\u{0}",
    "(M",
    "M)",
    "if(transA,",
    "nope",
];

/// Parses `text` both ways, and evaluates or renders what comes of it.
fn survives(text: &str) -> Result<(), TestCaseError> {
    let values = [i64::MIN, -1, 0, 1, 0, 0];
    let errors = [
        Expr::parse(text, &Gemm::new()).map(|parsed| {
            let _ = parsed.eval(&env(&values));
        }),
        Condition::parse(text, &Gemm::new()).map(|parsed| {
            let _ = parsed.eval(&env(&values));
        }),
    ];
    for error in errors.into_iter().filter_map(Result::err) {
        prop_assert!((1..=text.chars().count() + 1).contains(&error.column()));
        prop_assert!(error.caret(text).ends_with('^'));
    }
    Ok(())
}
