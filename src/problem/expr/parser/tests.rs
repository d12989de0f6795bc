//! Precedence, sorts, messages and nesting, with values computed by hand.

use super::super::testing::{ENV, Gemm, expr, holds, value};
use super::super::{Condition, Expr};
use super::*;

fn expr_error(text: &str) -> String {
    Expr::parse(text, &Gemm::new()).unwrap_err().to_string()
}

fn condition_error(text: &str) -> String {
    Condition::parse(text, &Gemm::new()).unwrap_err().to_string()
}

#[test]
fn operators_bind_as_documented() {
    for (text, expected) in [
        ("-2^2", -4),
        ("(-2)^2", 4),
        ("-M^2", -25),
        ("2 * M^2", 50),
        ("2 + 3 * 4", 14),
        ("(2 + 3) * 4", 20),
        ("10 - 3 - 2", 5),
        ("10 - (3 - 2)", 9),
        ("100 / 10 / 5", 2),
        ("100 / 10 * 5", 50),
        ("7 % 4 * 2", 6),
        ("2 * -3 + 1", -5),
        ("-7 / 2 * 2", -8),
        ("--3", 3),
        ("1 - -1", 2),
        ("1_000 - 1", 999),
    ] {
        assert_eq!(value(text), Ok(expected), "{text}");
    }
}

#[test]
fn conditions_bind_as_documented() {
    for (text, expected) in [
        ("not M == 5", false),
        ("not M == 4 and M == 5", true),
        ("not (M == 4 and M == 5)", true),
        ("not transA or transA", true),
        ("not not transA", true),
        ("transA or transA and not transA", true),
        ("(transA or transA) and not transA", false),
        ("M + 1 == 2 * 3", true),
        ("-3 == N and M > N", true),
    ] {
        assert_eq!(holds(text), Ok(expected), "{text}");
    }
}

#[test]
fn errors_say_what_and_where() {
    for (text, expected) in [
        ("", "expected a value, found the end (column 1)"),
        ("M +", "expected a value, found the end (column 4)"),
        ("(M", "expected an operator or `)`, found the end (column 3)"),
        ("M)", "expected an operator or the end, found `)` (column 2)"),
        ("2 M", "expected an operator or the end, found `M` (column 3)"),
        ("M + foo", "unknown parameter `foo` (column 5)"),
        ("sizeof(C)", "unknown operand `C` (column 8)"),
        ("sizeof(2)", "expected the name of an operand, found `2` (column 8)"),
        ("abs(M)", "unknown function `abs`, there are `min`, `max`, `cdiv`, `if` and `sizeof` (column 1)"),
        ("min(M)", "`min` takes 2 arguments (column 6)"),
        ("min()", "`min` takes 2 arguments (column 5)"),
        ("max(M, N, K)", "`max` takes 2 arguments (column 9)"),
        ("min(M N)", "expected an operator or `,`, found `N` (column 7)"),
        ("2^M", "the exponent of `^` must be a non-negative integer literal (column 3)"),
        ("2^-1", "the exponent of `^` must be a non-negative integer literal (column 3)"),
        ("2^3^2", "`^` does not chain, use parentheses (column 4)"),
    ] {
        assert_eq!(expr_error(text), expected, "{text}");
    }
    assert_eq!(condition_error("0 < M < 3"), "comparisons do not chain, join them with `and` (column 7)");
}

#[test]
fn sorts_are_checked() {
    for (text, expected) in [
        ("1 + transA", "expected an integer, but this is a condition (column 5)"),
        ("if(M, 1, 2)", "expected a condition, but this is an integer (column 4)"),
        ("if(transA, transA, 2)", "expected an integer, but this is a condition (column 12)"),
        ("dtype", "`dtype` is a choice, it can only be compared with a 'quoted' value (column 1)"),
        ("1 + 'f32'", "a quoted value can only be compared with a choice parameter (column 5)"),
        ("(M == 1)^2", "expected an integer, but this is a condition (column 1)"),
    ] {
        assert_eq!(expr_error(text), expected, "{text}");
    }
    for (text, expected) in [
        ("M", "expected a condition, but this is an integer (column 1)"),
        ("transA and M", "expected a condition, but this is an integer (column 12)"),
        ("not M", "expected a condition, but this is an integer (column 5)"),
        ("transA == transA", "a condition is not compared, join conditions with `and`, `or` and `not` (column 1)"),
        ("dtype == 'f64'", "`dtype` has no value 'f64', its values are 'f32', 'bf16', 'größe' (column 10)"),
        ("'f64' != dtype", "`dtype` has no value 'f64', its values are 'f32', 'bf16', 'größe' (column 1)"),
        ("dtype < 'f32'", "`dtype` is a choice, it compares only by `==` and `!=` (column 7)"),
        ("dtype == dtype", "`dtype` is a choice, it can only be compared with a 'quoted' value (column 1)"),
        ("M == 'f32'", "a quoted value can only be compared with a choice parameter (column 6)"),
    ] {
        assert_eq!(condition_error(text), expected, "{text}");
    }
}

#[test]
fn rank_is_known_only_where_the_scope_has_it() {
    struct Bare;
    impl Scope for Bare {
        fn lookup(&self, _name: &str) -> Option<Symbol<'_>> {
            None
        }
        fn operand(&self, _name: &str) -> Option<usize> {
            None
        }
    }
    struct Own;
    impl Scope for Own {
        fn lookup(&self, name: &str) -> Option<Symbol<'_>> {
            (name == "rank").then_some(Symbol::Integer(0))
        }
        fn operand(&self, _name: &str) -> Option<usize> {
            None
        }
        fn has_rank(&self) -> bool {
            true
        }
    }
    assert!(Expr::parse("rank", &Bare).is_err());
    let own = Expr::parse("rank", &Own).unwrap();
    assert_eq!(own.eval(&ENV), Ok(5));
}

#[test]
fn function_names_can_be_parameters() {
    struct Min;
    impl Scope for Min {
        fn lookup(&self, name: &str) -> Option<Symbol<'_>> {
            (name == "min").then_some(Symbol::Integer(0))
        }
        fn operand(&self, _name: &str) -> Option<usize> {
            None
        }
    }
    let both = Expr::parse("min(min, 3) + min", &Min).unwrap();
    assert_eq!(both.eval(&ENV), Ok(8));
}

#[test]
fn params_are_sorted_and_single() {
    let params: Vec<usize> = expr("lda + if(transA and dtype == 'f32', M, lda) * sizeof(A)").params().collect();
    assert_eq!(params, [0, 3, 4, 5]);
}

#[test]
fn text_is_kept() {
    let parsed = expr(" M  + 1");
    assert_eq!((parsed.text(), parsed.to_string()), (" M  + 1", " M  + 1".to_owned()));
}

/// Repeats `open`, then `inside`, then `close` as often.
fn nest(open: &str, inside: &str, close: &str, times: usize) -> String {
    format!("{}{inside}{}", open.repeat(times), close.repeat(times))
}

#[test]
fn the_deepest_allowed_nesting_fits_a_small_stack() {
    let deepest = || {
        for (open, close) in [
            ("(", ")"),
            ("-", ""),
            ("1 + 2 * min(1, ", ")"),
            ("1 * (", ")^1 * 1 + 1"),
            ("if(transA and not transA or 1 == 1 + 1 * ", ", 1, 2)"),
            ("if(not transA or transA and 1 == 1 + 1 * (", "), 1, 2)"),
        ] {
            let parsed =
                (1..=MAX_DEPTH).rev().find_map(|n| Expr::parse(&nest(open, "M", close, n), &Gemm::new()).ok()).unwrap();
            let _ = (parsed.clone().eval(&ENV), parsed.params().count());
        }
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(deepest).unwrap().join().unwrap();
}

#[test]
fn deeper_nesting_is_refused() {
    assert_eq!(value(&nest("(", "M", ")", MAX_DEPTH - 1)), Ok(5));
    assert_eq!(expr_error(&nest("(", "M", ")", MAX_DEPTH)), "nested too deeply (column 201)");
    for open in ["(", "-", "not ", "min(", "if(", "1 + (", "K == 0 or ("] {
        let text = open.repeat(1 << 18);
        assert!(expr_error(&text).starts_with("nested too deeply"), "{open}");
    }
}

#[test]
fn long_texts_without_nesting_are_fine() {
    let terms = 1 << 18;
    let sum = format!("0{}", " + 1".repeat(terms));
    assert_eq!(value(&sum), Ok(1 << 18));
    let all = format!("transA{}", " and transA".repeat(terms));
    assert_eq!(holds(&all), Ok(true));
    assert!(expr_error(&"x".repeat(1 << 20)).len() < 100);
    assert!(expr_error(&"9".repeat(1 << 20)).starts_with("the integer is above"));
    assert!(expr_error(&"'".repeat(1 << 20)).len() < 100);
}
