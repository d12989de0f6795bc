//! The file as serde sees it: plain fields in the order they are written. docs/findings.md explains each.
//!
//! These types belong to the format, not to the program: they change only together with the format number.

use crate::problem::Value;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::fmt;
use std::marker::PhantomData;

#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    pub format: i64,
    pub title: String,
    pub status: String,
    pub problem: String,
    pub target: String,
    /// For people: derived from the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub range: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub require: Vec<String>,
    pub profile: String,
    pub seed: Number,
    pub verdict: String,
    pub diagnosis: String,
    pub minimal: Case,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrong: Option<Wrong>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hang: Option<Hang>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crash: Option<Crash>,
    pub signature: Signature,
    pub confirmation: Confirmation,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub witness: Vec<Witness>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far: Option<Far>,
    #[serde(default, skip_serializing_if = "Choices::is_empty")]
    pub choices: Choices,
    #[serde(default, skip_serializing_if = "Pairs::is_empty")]
    pub irrelevant: Pairs<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<Ranks>,
    #[serde(default, skip_serializing_if = "Shrinking::is_empty")]
    pub shrinking: Shrinking,
    pub original: Case,
    pub environment: Environment,
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub placement: String,
    pub params: Pairs<Value>,
    #[serde(default, skip_serializing_if = "Pairs::is_empty")]
    pub knobs: Pairs<Value>,
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_bytes: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    pub channel: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hit: Option<Hit>,
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hit {
    pub operand: String,
    pub copy: u32,
    pub place: String,
    pub from_base_bytes: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_base_elements: Option<i64>,
    pub from_edge_bytes: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_edge_elements: Option<i64>,
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wrong {
    pub kind: String,
    pub operand: String,
    pub copy: u32,
    pub first: Vec<i64>,
    pub count: Number,
    pub compared: Number,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hit: Option<Hit>,
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hang {
    pub after_ms: Number,
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crash {
    pub how: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    pub family: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operand: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    pub runs: u32,
    pub failed: u32,
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confirmation {
    pub bad: Tally,
    pub good: Tally,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_rate: Option<(f64, f64)>,
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct History {
    pub found_after: u32,
    pub alone: Tally,
    pub before: Vec<Earlier>,
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Earlier {
    pub is_minimal: bool,
    pub placement: String,
    pub params: Pairs<Value>,
    #[serde(default, skip_serializing_if = "Pairs::is_empty")]
    pub knobs: Pairs<Value>,
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Witness {
    pub param: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_good: Option<Side>,
    pub first_bad: Side,
    pub certified: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Side {
    pub value: Value,
    pub runs: u32,
    pub failed: u32,
}

#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choices {
    pub tried: Vec<Choice>,
}

impl Choices {
    fn is_empty(&self) -> bool {
        self.tried.is_empty()
    }
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    pub param: String,
    pub value: Value,
    pub effect: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Far {
    pub changed: Pairs<Value>,
    pub runs: u32,
    pub failed: u32,
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ranks {
    pub failing: Vec<u32>,
    pub passing: Vec<u32>,
    pub not_run: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<u32>,
}

#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shrinking {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ladder: Vec<Step>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slips: Vec<String>,
}

impl Shrinking {
    fn is_empty(&self) -> bool {
        self.ladder.is_empty() && self.windows.is_empty() && self.slips.is_empty()
    }
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub by: String,
    pub case: String,
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Environment {
    pub shrinkfault: String,
    pub os: String,
    pub kernel: String,
    pub cpu: String,
    pub memory: String,
    pub page: String,
    pub libc: String,
    pub device: String,
    #[serde(default, skip_serializing_if = "Pairs::is_empty")]
    pub target: Pairs<String>,
}

/// A table that keeps the order of its lines.
#[derive(Debug, Clone, PartialEq)]
pub struct Pairs<V>(pub Vec<(String, V)>);

impl<V> Default for Pairs<V> {
    fn default() -> Pairs<V> {
        Pairs(vec![])
    }
}

impl<V> Pairs<V> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<V: Serialize> Serialize for Pairs<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Pairs<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Pairs<V>, D::Error> {
        struct Rows<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for Rows<V> {
            type Value = Pairs<V>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<V>, A::Error> {
                let mut rows = vec![];
                while let Some(row) = map.next_entry()? {
                    rows.push(row);
                }
                Ok(Pairs(rows))
            }
        }
        deserializer.deserialize_map(Rows(PhantomData))
    }
}

/// A number of 64 bits without a sign. TOML integers have 63; larger ones are written as a string of digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number(pub u64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match i64::try_from(self.0) {
            Ok(small) => serializer.serialize_i64(small),
            Err(_) => serializer.serialize_str(&self.0.to_string()),
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Number, D::Error> {
        struct Digits;
        impl Visitor<'_> for Digits {
            type Value = Number;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number from 0 to 18446744073709551615, as a string of digits if it is large")
            }
            fn visit_i64<E: Error>(self, i: i64) -> Result<Number, E> {
                u64::try_from(i).map(Number).map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(i), &self))
            }
            fn visit_u64<E: Error>(self, i: u64) -> Result<Number, E> {
                Ok(Number(i))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Number, E> {
                text.parse().map(Number).map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Digits)
    }
}
