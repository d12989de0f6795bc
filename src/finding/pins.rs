//! Pins as the user types them: `m=608`, `n=1..64`, and the two forms that limits of targets take.

use crate::problem::{Narrow, Param, Problem, Value};

/// Reads `NAME=VALUE`.
///
/// # Errors
/// A sentence that shows the form.
pub fn parse_set(text: &str) -> Result<Narrow, String> {
    let (param, value) = halves(text, "NAME=VALUE, for instance m=608")?;
    Ok(Narrow::Set { param, value: Value::from_word(&value) })
}

/// Reads `NAME=MIN..MAX`, both included.
///
/// # Errors
/// A sentence that shows the form.
pub fn parse_range(text: &str) -> Result<Narrow, String> {
    const FORM: &str = "NAME=MIN..MAX with two integers, for instance n=1..64";
    let (param, range) = halves(text, FORM)?;
    let (low, high) = range.split_once("..").ok_or_else(|| format!("'{text}' should read {FORM}"))?;
    match (Value::from_word(low.trim()), Value::from_word(high.trim())) {
        (Value::Int(min), Value::Int(max)) if min <= max => Ok(Narrow::Range { param, min, max }),
        (Value::Int(_), Value::Int(_)) => Err(format!("'{text}' is empty: put the smaller number first")),
        _ => Err(format!("'{text}' should read {FORM}")),
    }
}

/// Reads `NAME=VALUE|VALUE|...`.
///
/// # Errors
/// A sentence that shows the form.
pub fn parse_one_of(text: &str) -> Result<Narrow, String> {
    let (param, list) = halves(text, "NAME=VALUE|VALUE, for instance dtype=f16|bf16")?;
    Ok(Narrow::OneOf { param, values: list.split('|').map(|w| Value::from_word(w.trim())).collect() })
}

fn halves(text: &str, form: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, rest)) if !name.trim().is_empty() && !rest.trim().is_empty() => {
            Ok((name.trim().to_owned(), rest.trim().to_owned()))
        }
        _ => Err(format!("'{text}' should read {form}")),
    }
}

/// Texts of pins by kind, as the file lists them.
#[derive(Debug, Default)]
pub struct Texts {
    pub set: Vec<String>,
    pub range: Vec<String>,
    pub one_of: Vec<String>,
    pub require: Vec<String>,
}

impl Texts {
    pub fn of(pins: &[Narrow]) -> Texts {
        let mut texts = Texts::default();
        for pin in pins {
            match pin {
                Narrow::Set { .. } => texts.set.push(pin.to_string()),
                Narrow::Range { .. } => texts.range.push(pin.to_string()),
                Narrow::OneOf { param, values } => {
                    let values: Vec<String> = values.iter().map(Value::to_string).collect();
                    texts.one_of.push(format!("{param}={}", values.join("|")));
                }
                Narrow::Require { condition } => texts.require.push(condition.clone()),
            }
        }
        texts
    }

    /// # Errors
    /// A sentence about the first text that is no pin.
    pub fn pins(&self) -> Result<Vec<Narrow>, String> {
        let set = self.set.iter().map(|t| parse_set(t));
        let range = self.range.iter().map(|t| parse_range(t));
        let one_of = self.one_of.iter().map(|t| parse_one_of(t));
        let require = self.require.iter().map(|c| Ok(Narrow::Require { condition: c.clone() }));
        set.chain(range).chain(one_of).chain(require).collect()
    }
}

/// The same pins with their values as the problem writes them, in the order of the file: set, range, one of, require.
///
/// # Errors
/// A sentence, where a pin names what the problem does not have.
pub fn canonical(problem: &Problem, pins: &[Narrow]) -> Result<Vec<Narrow>, String> {
    problem.narrowed(pins)?;
    let mut out = pins.to_vec();
    for pin in &mut out {
        match pin {
            Narrow::Set { param, value } => rewrite(problem, param, value)?,
            Narrow::OneOf { param, values } => {
                for value in values {
                    rewrite(problem, param, value)?;
                }
            }
            Narrow::Range { .. } | Narrow::Require { .. } => {}
        }
    }
    out.sort_by_key(|pin| match pin {
        Narrow::Set { .. } => 0,
        Narrow::Range { .. } => 1,
        Narrow::OneOf { .. } => 2,
        Narrow::Require { .. } => 3,
    });
    Ok(out)
}

fn rewrite(problem: &Problem, param: &str, value: &mut Value) -> Result<(), String> {
    let p: &Param = match problem.param(param) {
        Some(i) => &problem.params[i],
        None => return Err(format!("{} has no parameter '{param}'", problem.name)),
    };
    *value = p.show(p.store(value)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Builtin;
    use proptest::prelude::*;

    #[test]
    fn pins_read_back_as_written() {
        let texts = Texts {
            set: vec!["m=608".into(), "alpha=1".into()],
            range: vec!["n=1..64".into()],
            one_of: vec!["dtype=f16|bf16".into()],
            require: vec!["lda == m".into()],
        };
        let problem = Builtin::find("gemm").unwrap().problem();
        let pins = canonical(&problem, &texts.pins().unwrap()).unwrap();
        assert_eq!(pins[1], Narrow::Set { param: "alpha".into(), value: Value::Text("1".into()) });
        let again = Texts::of(&pins);
        assert_eq!(
            (again.set, again.range, again.one_of, again.require),
            (texts.set, texts.range, texts.one_of, texts.require)
        );
    }

    #[test]
    fn a_pin_that_is_none_says_how_it_should_read() {
        assert_eq!(parse_set("m").unwrap_err(), "'m' should read NAME=VALUE, for instance m=608");
        assert_eq!(parse_range("m=4..2").unwrap_err(), "'m=4..2' is empty: put the smaller number first");
        assert!(parse_range("m=a..b").unwrap_err().contains("MIN..MAX"));
        assert!(parse_one_of("=x").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_a_pin_or_one_sentence(text in "\\PC{0,16}") {
            let _ = (parse_set(&text), parse_range(&text), parse_one_of(&text));
        }
    }
}
