//! Parameters: what a case assigns.

use super::expr::{Condition, Env, Expr, Scope, Symbol};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A value as people write it: in files, on the command line and in messages.
///
/// Inside the program a parameter is an `i64` (see [`Assignment`](super::Assignment)); this type is the outside form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    Bool(bool),
    Int(i64),
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(b) => write!(f, "{b}"),
            Value::Int(i) => write!(f, "{i}"),
            Value::Text(t) => f.write_str(t),
        }
    }
}

impl From<i64> for Value {
    fn from(i: i64) -> Value {
        Value::Int(i)
    }
}

impl From<&str> for Value {
    fn from(t: &str) -> Value {
        Value::Text(t.to_owned())
    }
}

impl Value {
    /// Reads a value as written on a command line: `true`, `-3`, `2^31+1`, `bf16`.
    pub fn from_word(word: &str) -> Value {
        match word {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => integer(word).map_or_else(|| Value::Text(word.to_owned()), Value::Int),
        }
    }
}

/// An integer as people write it: `-3`, `1_000`, `2^31`, `8*4096-1`.
pub fn integer(word: &str) -> Option<i64> {
    if let Ok(i) = word.replace('_', "").parse::<i64>() {
        return Some(i);
    }
    let computed = word.starts_with(|c: char| c.is_ascii_digit()) && word.contains(['^', '*', '+', '-']);
    let expression = computed.then(|| Expr::parse(word, &Nothing).ok())??;
    let value = expression.eval(&Env { values: &[], element_bytes: &|_| 1, rank: 0 }).ok()?;
    i64::try_from(value).ok()
}

/// No names.
struct Nothing;

impl Scope for Nothing {
    fn lookup(&self, _name: &str) -> Option<Symbol<'_>> {
        None
    }

    fn operand(&self, _name: &str) -> Option<usize> {
        None
    }
}

impl Serialize for Value {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Bool(b) => s.serialize_bool(*b),
            Value::Int(i) => s.serialize_i64(*i),
            Value::Text(t) => s.serialize_str(t),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Value, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Value;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, an integer or a string")
            }
            fn visit_bool<E>(self, b: bool) -> Result<Value, E> {
                Ok(Value::Bool(b))
            }
            fn visit_i64<E>(self, i: i64) -> Result<Value, E> {
                Ok(Value::Int(i))
            }
            fn visit_u64<E: serde::de::Error>(self, i: u64) -> Result<Value, E> {
                i64::try_from(i).map(Value::Int).map_err(|_| E::custom("an integer that does not fit signed 64 bits"))
            }
            fn visit_str<E>(self, t: &str) -> Result<Value, E> {
                Ok(Value::Text(t.to_owned()))
            }
        }
        d.deserialize_any(Visitor)
    }
}

/// The values a parameter may take.
#[derive(Debug, Clone, PartialEq)]
pub enum Domain {
    /// `min, min + step, ...` up to `max`, all inclusive.
    Integer { min: i64, max: i64, step: i64 },
    /// One of a list; the first allowed one is the plainest.
    Choice {
        values: Vec<Value>,
        /// The values as text, in the same order.
        texts: Vec<String>,
        /// Which of them may be taken: limits and pins mask values, positions stay.
        allowed: Vec<bool>,
    },
}

impl Domain {
    pub fn choice(values: Vec<Value>) -> Domain {
        let texts = values.iter().map(Value::to_string).collect();
        let allowed = vec![true; values.len()];
        Domain::Choice { values, texts, allowed }
    }
}

/// What a parameter means to moves and generators; never to validity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// An extent: m, n, k, rows, columns.
    Size,
    /// A distance in elements: leading dimension, batch stride, row stride.
    Stride,
    /// A number of repetitions: batch count, elements per rank.
    Count,
    /// The number of ranks.
    Ranks,
    /// Elements between the base pointer and the first element.
    Offset,
    /// `end` or `start`: where a foreign program places its operands.
    Placement,
}

/// One named parameter of a problem.
#[derive(Debug, Clone)]
pub struct Param {
    pub name: String,
    pub doc: &'static str,
    pub domain: Domain,
    /// The least stored value of the domain as described, before limits and pins narrowed it.
    pub plain: i64,
    pub role: Role,
    /// The value when nobody names one; the minimum (or the first choice) where absent.
    pub default: Option<i64>,
    /// Where this condition is false the parameter has no meaning and is kept at its plainest value.
    pub active: Option<Condition>,
}

impl Param {
    pub fn is_choice(&self) -> bool {
        matches!(self.domain, Domain::Choice { .. })
    }

    /// The values of a choice as text; empty for an integer.
    pub fn texts(&self) -> &[String] {
        match &self.domain {
            Domain::Integer { .. } => &[],
            Domain::Choice { texts, .. } => texts,
        }
    }

    /// The smallest stored value: the minimum, or the first allowed choice.
    pub fn least(&self) -> i64 {
        match &self.domain {
            Domain::Integer { min, .. } => *min,
            Domain::Choice { allowed, .. } => allowed.iter().position(|a| *a).unwrap_or(0) as i64,
        }
    }

    /// The largest stored value: the last step not above the maximum, or the last choice.
    pub fn most(&self) -> i64 {
        match &self.domain {
            Domain::Integer { max, step: 1, .. } => *max,
            Domain::Integer { min, max, step } => {
                let steps = (i128::from(*max) - i128::from(*min)) / i128::from(*step);
                i64::try_from(i128::from(*min) + steps * i128::from(*step)).unwrap_or(*max)
            }
            Domain::Choice { allowed, .. } => allowed.iter().rposition(|a| *a).unwrap_or(0) as i64,
        }
    }

    /// Every allowed value, for a choice; empty for an integer.
    pub fn choices(&self) -> Vec<i64> {
        match &self.domain {
            Domain::Integer { .. } => vec![],
            Domain::Choice { allowed, .. } => (0..allowed.len() as i64).filter(|i| allowed[*i as usize]).collect(),
        }
    }

    pub fn step(&self) -> i64 {
        match self.domain {
            Domain::Integer { step, .. } => step,
            Domain::Choice { .. } => 1,
        }
    }

    /// Whether `stored` is one of the values.
    pub fn allows(&self, stored: i64) -> bool {
        if let Domain::Choice { allowed, .. } = &self.domain {
            return usize::try_from(stored).ok().and_then(|i| allowed.get(i)).copied().unwrap_or(false);
        }
        stored >= self.least() && stored <= self.most() && self.past_step(stored) == 0
    }

    /// Distance of an integer from the last step at or below it; `v` is at least the minimum.
    fn past_step(&self, v: i64) -> i128 {
        match self.step() {
            1 => 0,
            step => (i128::from(v) - i128::from(self.least())) % i128::from(step),
        }
    }

    /// The largest allowed value not above `v`, if any.
    pub fn round_down(&self, v: i64) -> Option<i64> {
        if self.is_choice() {
            return self.choices().into_iter().rfind(|c| *c <= v);
        }
        let v = v.min(self.most());
        if v < self.least() {
            return None;
        }
        let over = self.past_step(v);
        Some((i128::from(v) - over) as i64)
    }

    /// The smallest allowed value not below `v`, if any.
    pub fn round_up(&self, v: i64) -> Option<i64> {
        if self.is_choice() {
            return self.choices().into_iter().find(|c| *c >= v);
        }
        let v = v.max(self.least());
        let over = self.past_step(v);
        let up = if over == 0 { i128::from(v) } else { i128::from(v) + i128::from(self.step()) - over };
        i64::try_from(up).ok().filter(|u| *u <= self.most())
    }

    /// The outside form of a stored value.
    pub fn show(&self, stored: i64) -> Value {
        match &self.domain {
            Domain::Integer { .. } => Value::Int(stored),
            Domain::Choice { values, .. } => {
                usize::try_from(stored).ok().and_then(|i| values.get(i)).cloned().unwrap_or(Value::Int(stored))
            }
        }
    }

    /// The stored form of an outside value, or a sentence that says what the parameter takes.
    pub fn store(&self, value: &Value) -> Result<i64, String> {
        match (&self.domain, value) {
            (Domain::Integer { min, max, step }, Value::Int(i)) => {
                if self.allows(*i) {
                    Ok(*i)
                } else if *step == 1 {
                    Err(format!("{} = {i} is outside {min}..={max}", self.name))
                } else {
                    Err(format!("{} = {i} is not one of {min}, {min} + {step}, ... up to {max}", self.name))
                }
            }
            (Domain::Integer { min, max, .. }, other) => {
                Err(format!("{} = {other} is not an integer in {min}..={max}", self.name))
            }
            (Domain::Choice { values, texts, .. }, v) => values
                .iter()
                .position(|have| have == v || have.to_string() == v.to_string())
                .map(|i| i as i64)
                .filter(|i| self.allows(*i))
                .ok_or_else(|| {
                    let list: Vec<&str> = self.choices().iter().map(|i| texts[*i as usize].as_str()).collect();
                    format!("{} = {v} is not one of {}", self.name, list.join(", "))
                }),
        }
    }
}
