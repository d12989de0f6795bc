//! Seed cases on disk: one readable TOML file each.
//!
//! ```toml
//! format = 1
//! problem = "allgather"
//! placement = "end"
//! note = """
//! Where the numbers come from.
//! """
//!
//! [params]
//! ranks = 8
//! M = 32768
//! N = 8192
//! dtype = "bf16"
//! ```
//!
//! `format`, `problem` and `[params]` are required. Parameters that are not named take their defaults (a leading dimension
//! nobody names is packed). `[knobs]` holds labels as `name = value`; `target` is the target on which the case failed. Files in
//! `corpus/` and those in `raw/` of an output folder are the same.

use super::file::FORMAT;
use super::read::{self, ReadError};
use crate::problem::{Assignment, Case, Knobs, Placement, Problem, Value};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// A seed case in outside form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seed {
    /// Name of the problem.
    pub problem: String,
    pub params: BTreeMap<String, Value>,
    pub knobs: Knobs,
    /// Where the file names one.
    pub placement: Option<Placement>,
    /// As `--target` takes it, where the file names one.
    pub target: Option<String>,
    /// Where the case comes from, for people.
    pub note: String,
}

impl Seed {
    /// A case in outside form. Parameters that are inactive and plain are left out.
    pub fn of(problem: &Problem, case: &Case, note: &str) -> Seed {
        let named = problem.params.iter().enumerate().filter(|(i, _)| problem.is_active(*i, &case.params.0));
        Seed {
            problem: problem.name.clone(),
            params: named.map(|(i, p)| (p.name.clone(), p.show(case.params[i]))).collect(),
            knobs: case.knobs.clone(),
            placement: Some(case.placement),
            target: None,
            note: note.to_owned(),
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// A sentence with the file name, where it cannot be read, is larger than 1 MiB, is no UTF-8, or does not parse.
    pub fn read(path: &Path) -> Result<Seed, ReadError> {
        let text = read::text(path)?;
        Seed::parse(&text).map_err(|what| ReadError::Content { path: path.to_owned(), what })
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// One sentence that says what is wrong and what would be right.
    pub fn parse(text: &str) -> Result<Seed, String> {
        if text.trim().is_empty() {
            return Err("is empty; a seed case needs format, problem and [params]".into());
        }
        let mut table = read::head(text)?;
        table.remove("format");
        let problem = text_of("problem", table.remove("problem"))?
            .filter(|p| !p.is_empty())
            .ok_or("names no problem; add a line such as problem = \"gemm\"")?;
        let placement = text_of("placement", table.remove("placement"))?.map(|word| word.parse()).transpose()?;
        let target = text_of("target", table.remove("target"))?;
        let note = text_of("note", table.remove("note"))?.unwrap_or_default();
        let params =
            labels("params", table.remove("params"))?.ok_or("has no [params]; add the table, even if empty")?;
        let knobs = labels("knobs", table.remove("knobs"))?.unwrap_or_default();
        if let Some(key) = table.keys().next() {
            return Err(format!(
                "has an unknown key '{key}'; a seed case has format, problem, target, placement, note, [params] and [knobs]"
            ));
        }
        Ok(Seed { problem, params, knobs, placement, target, note })
    }

    /// The text of the file.
    pub fn to_toml(&self) -> String {
        let mut out = format!("format = {FORMAT}\nproblem = {}\n", quoted(&self.problem));
        if let Some(target) = &self.target {
            let _ = writeln!(out, "target = {}", quoted(target));
        }
        if let Some(placement) = self.placement {
            let _ = writeln!(out, "placement = \"{placement}\"");
        }
        if !self.note.is_empty() {
            let _ = writeln!(out, "note = {}", toml::Value::String(self.note.clone()));
        }
        let mut table = |name: &str, labels: &BTreeMap<String, Value>| {
            let _ = writeln!(out, "\n[{name}]");
            for (key, value) in labels {
                let value = match value {
                    Value::Text(t) => quoted(t),
                    other => other.to_string(),
                };
                let _ = writeln!(out, "{} = {value}", quoted_key(key));
            }
        };
        table("params", &self.params);
        if !self.knobs.is_empty() {
            table("knobs", &self.knobs);
        }
        out
    }

    /// The case as written.
    ///
    /// # Errors
    /// One sentence where it is no case of the problem.
    pub fn case(&self, problem: &Problem) -> Result<Case, String> {
        if self.problem != problem.name {
            return Err(format!("is a case of {}, not of {}", self.problem, problem.name));
        }
        let params = problem.complete(&self.params).map_err(|e| e.to_string())?;
        Ok(Case { params, knobs: self.knobs.clone(), placement: self.placement.unwrap_or(Placement::END) })
    }

    /// The case over a narrowed form of its problem: what is pinned or out of range goes to the nearest value. `None`
    /// where nothing near is a case. `problem` is the one the seed was written for.
    ///
    /// # Errors
    /// Where the seed is no case of its own problem.
    pub fn transfer(&self, problem: &Problem, narrowed: &Problem) -> Result<Option<Case>, String> {
        let case = self.case(problem)?;
        let mut params: Assignment = case.params.clone();
        Ok(narrowed.repair(&mut params, |_| true).then(|| case.with_params(params)))
    }
}

fn text_of(key: &str, value: Option<toml::Value>) -> Result<Option<String>, String> {
    match value {
        None => Ok(None),
        Some(toml::Value::String(s)) => Ok(Some(s)),
        Some(other) => Err(format!("{key} = {} is no string; put it in quotes", shown(&other))),
    }
}

fn labels(table: &str, value: Option<toml::Value>) -> Result<Option<BTreeMap<String, Value>>, String> {
    let Some(value) = value else { return Ok(None) };
    let toml::Value::Table(entries) = value else {
        return Err(format!("{table} = {} is no table; write [{table}] and name = value lines", shown(&value)));
    };
    let mut out = BTreeMap::new();
    for (name, value) in entries {
        let value = match value {
            toml::Value::Integer(i) => Value::Int(i),
            toml::Value::Boolean(b) => Value::Bool(b),
            toml::Value::String(s) => Value::Text(s),
            other => {
                let shown = shown(&other);
                return Err(format!(
                    "{table}.{name} = {shown} is no integer, string, true or false; write one of these"
                ));
            }
        };
        out.insert(name, value);
    }
    Ok(Some(out))
}

/// A value as written, cut short.
fn shown(value: &toml::Value) -> String {
    let text = value.to_string().replace('\n', " ");
    match text.char_indices().nth(40) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn quoted_key(key: &str) -> String {
    let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if bare { key.to_owned() } else { basic(key) }
}

/// A one-line basic string.
fn basic(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
