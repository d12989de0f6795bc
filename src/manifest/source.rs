//! The TOML of a manifest with the place of every value, so that each error names file, line and key.

use super::ManifestError;
use std::path::Path;
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Longest time that a manifest may name, seconds.
const LONGEST: f64 = 1e6;

/// A file and its text.
#[derive(Debug)]
pub(super) struct Source<'t> {
    pub path: &'t Path,
    pub text: &'t str,
}

/// One value and where it stands.
#[derive(Debug)]
pub(super) struct Node<'t> {
    source: &'t Source<'t>,
    /// As people write it: `operands[0].dims`.
    pub key: String,
    /// The last part of the key.
    pub name: String,
    at: usize,
    value: &'t DeValue<'t>,
}

/// The entries of a table, none of them unknown.
#[derive(Debug)]
pub(super) struct Fields<'t> {
    source: &'t Source<'t>,
    prefix: String,
    at: usize,
    entries: Vec<Node<'t>>,
}

impl<'t> Source<'t> {
    /// An error at a byte of the text.
    pub fn error(&self, at: usize, what: impl std::fmt::Display) -> ManifestError {
        let line = self.text.as_bytes().iter().take(at).filter(|b| **b == b'\n').count() + 1;
        ManifestError::Content { path: self.path.to_owned(), line, what: what.to_string().replace('\n', " ") }
    }

    /// The whole text as a table.
    pub fn table(&self) -> Result<Spanned<DeTable<'t>>, ManifestError> {
        DeTable::parse(self.text).map_err(|e| {
            let at = e.span().map_or(0, |s| s.start);
            self.error(at, format!("this is not TOML ({}); see docs/manifest.md for the form", e.message()))
        })
    }

    /// The entries of the outermost table.
    pub fn fields(&'t self, table: &'t DeTable<'t>, known: &[&str]) -> Result<Fields<'t>, ManifestError> {
        fields(self, String::new(), 0, table, known)
    }
}

fn fields<'t>(
    source: &'t Source<'t>,
    prefix: String,
    at: usize,
    table: &'t DeTable<'t>,
    known: &[&str],
) -> Result<Fields<'t>, ManifestError> {
    let mut entries = vec![];
    for (name, value) in table {
        let key = if prefix.is_empty() { name.get_ref().to_string() } else { format!("{prefix}.{}", name.get_ref()) };
        if !known.is_empty() && !known.contains(&name.get_ref().as_ref()) {
            let what = format!("{key} is no key of a manifest; here it may have {}", known.join(", "));
            return Err(source.error(name.span().start, what));
        }
        let name = name.get_ref().to_string();
        entries.push(Node { source, key, name, at: value.span().start, value: value.get_ref() });
    }
    Ok(Fields { source, prefix, at, entries })
}

impl<'t> Fields<'t> {
    pub fn get(&self, name: &str) -> Option<&Node<'t>> {
        self.entries.iter().find(|n| n.name == name)
    }

    /// An entry that must be there; `example` shows how to write it.
    pub fn need(&self, name: &str, example: &str) -> Result<&Node<'t>, ManifestError> {
        let key = if self.prefix.is_empty() { name.to_owned() } else { format!("{}.{name}", self.prefix) };
        self.get(name).ok_or_else(|| self.source.error(self.at, format!("{key} is missing: write {example}")))
    }

    pub fn entries(&self) -> &[Node<'t>] {
        &self.entries
    }
}

impl<'t> Node<'t> {
    pub fn error(&self, what: impl std::fmt::Display) -> ManifestError {
        self.source.error(self.at, format!("{}: {what}", self.key))
    }

    fn wanted(&self, what: &str) -> ManifestError {
        self.error(format!("this is {}; write {what}", self.value.type_str()))
    }

    pub fn text(&self) -> Result<&'t str, ManifestError> {
        self.value.as_str().ok_or_else(|| self.wanted("a string in quotes"))
    }

    pub fn boolean(&self) -> Option<bool> {
        self.value.as_bool()
    }

    pub fn is_text(&self) -> bool {
        self.value.is_str()
    }

    pub fn integer(&self) -> Result<i64, ManifestError> {
        let number = self.value.as_integer().ok_or_else(|| self.wanted("an integer, without fraction or exponent"))?;
        let digits = number.as_str().replace('_', "");
        i64::from_str_radix(&digits, number.radix())
            .map_err(|_| self.error(format!("{digits} does not fit signed 64 bits; write an integer up to 2^63 - 1")))
    }

    /// A time in seconds.
    pub fn seconds(&self) -> Result<Duration, ManifestError> {
        let number = match (self.value.as_integer(), self.value.as_float()) {
            (Some(_), _) => self.integer()? as f64,
            (_, Some(f)) => f.as_str().replace('_', "").parse::<f64>().unwrap_or(f64::NAN),
            _ => return Err(self.wanted("a number of seconds, such as 10 or 0.5")),
        };
        if !(0.001..=LONGEST).contains(&number) {
            return Err(self.error("write a number of seconds from 0.001 to 1000000"));
        }
        Ok(Duration::from_secs_f64(number))
    }

    pub fn list(&self, example: &str) -> Result<Vec<Node<'t>>, ManifestError> {
        let items = self.value.as_array().ok_or_else(|| self.wanted(&format!("a list, such as {example}")))?;
        let node = |(i, v): (usize, &'t Spanned<DeValue<'t>>)| Node {
            source: self.source,
            key: format!("{}[{i}]", self.key),
            name: i.to_string(),
            at: v.span().start,
            value: v.get_ref(),
        };
        Ok(items.iter().enumerate().map(node).collect())
    }

    /// The entries of a table; an empty list of known keys takes any.
    pub fn fields(&self, known: &[&str]) -> Result<Fields<'t>, ManifestError> {
        let table = self.value.as_table().ok_or_else(|| self.wanted(&format!("a table, headed [{}]", self.key)))?;
        fields(self.source, self.key.clone(), self.at, table, known)
    }
}
