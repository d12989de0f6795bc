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
//! `format` and `problem` are required. Parameters that are not named take their defaults (a leading dimension nobody
//! names is packed). `[knobs]` holds labels as `name = value`. This version reads and writes format 1 only.

use crate::problem::{Assignment, Case, Knobs, Placement, Problem, Value};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The format that this version reads and writes.
pub const FORMAT: i64 = 1;
/// Largest file that is read, bytes.
pub const LARGEST_FILE: u64 = 1 << 20;

/// A seed case in outside form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seed {
    /// Name of the problem.
    pub problem: String,
    pub params: BTreeMap<String, Value>,
    pub knobs: Knobs,
    pub placement: Placement,
    /// Where the case comes from, for people.
    pub note: String,
}

/// Why a seed file cannot be used: the file, what is wrong, how to put it right.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    #[error("failed to read {path}: {source}; check the path and its permissions")]
    Read { path: PathBuf, source: io::Error },
    #[error("failed to write {path}: {source}; check that the folder exists, is writable and has space")]
    Write { path: PathBuf, source: io::Error },
    #[error("{path}: {what}")]
    Content { path: PathBuf, what: String },
}

/// The seed files that come with the program: path below `corpus/`, text.
const BUILT_IN: [(&str, &str); 10] = [
    ("allgather/iris-256-mib.toml", include_str!("../../corpus/allgather/iris-256-mib.toml")),
    ("allgather/iris-512-mib.toml", include_str!("../../corpus/allgather/iris-512-mib.toml")),
    ("allgather/iris-768-mib.toml", include_str!("../../corpus/allgather/iris-768-mib.toml")),
    ("allgather/iris-1024-mib.toml", include_str!("../../corpus/allgather/iris-1024-mib.toml")),
    ("gemm/gfx1201-logged-call.toml", include_str!("../../corpus/gemm/gfx1201-logged-call.toml")),
    ("gemm/gfx1201-logged-call-blas.toml", include_str!("../../corpus/gemm/gfx1201-logged-call-blas.toml")),
    ("gemm/weight-gradient-n8.toml", include_str!("../../corpus/gemm/weight-gradient-n8.toml")),
    ("gemm/weight-gradient-n16.toml", include_str!("../../corpus/gemm/weight-gradient-n16.toml")),
    ("gemm/weight-gradient-n48.toml", include_str!("../../corpus/gemm/weight-gradient-n48.toml")),
    ("gemm/weight-gradient-n64.toml", include_str!("../../corpus/gemm/weight-gradient-n64.toml")),
];

/// The seed cases of a problem that come with the program, in the order of their paths.
///
/// # Errors
/// As for [`Seed::parse`]; a test parses them all.
pub fn built_in(problem: &str) -> Result<Vec<Seed>, CorpusError> {
    let mut seeds = vec![];
    for (path, text) in BUILT_IN {
        let path = Path::new("corpus").join(path);
        let seed = Seed::parse(text).map_err(|what| CorpusError::Content { path, what })?;
        if seed.problem == problem {
            seeds.push(seed);
        }
    }
    Ok(seeds)
}

/// The seed cases of a problem below a folder, in the order of their paths: `*.toml` in it and in its direct subfolders.
/// Files of other problems are read, checked and left out.
///
/// # Errors
/// Where a folder or a file cannot be read, or a file is no seed case.
pub fn read_folder(folder: &Path, problem: &str) -> Result<Vec<(PathBuf, Seed)>, CorpusError> {
    let list = |folder: &Path| -> Result<Vec<PathBuf>, CorpusError> {
        let failed = |source| CorpusError::Read { path: folder.to_owned(), source };
        let entries = fs::read_dir(folder).map_err(failed)?;
        let mut paths = entries.map(|e| e.map(|e| e.path())).collect::<Result<Vec<_>, _>>().map_err(failed)?;
        paths.sort();
        Ok(paths)
    };
    let mut files = vec![];
    for path in list(folder)? {
        if path.is_dir() {
            files.extend(list(&path)?);
        } else {
            files.push(path);
        }
    }
    let mut seeds = vec![];
    for path in files.into_iter().filter(|p| p.extension().is_some_and(|e| e == "toml")) {
        let seed = Seed::read(&path)?;
        if seed.problem == problem {
            seeds.push((path, seed));
        }
    }
    Ok(seeds)
}

impl Seed {
    /// A case in outside form. Parameters that are inactive and plain are left out.
    pub fn of(problem: &Problem, case: &Case, note: &str) -> Seed {
        let named = problem.params.iter().enumerate().filter(|(i, _)| problem.is_active(*i, &case.params.0));
        Seed {
            problem: problem.name.clone(),
            params: named.map(|(i, p)| (p.name.clone(), p.show(case.params[i]))).collect(),
            knobs: case.knobs.clone(),
            placement: case.placement,
            note: note.to_owned(),
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// Where it cannot be read, is larger than 1 MiB, is no UTF-8, or does not parse.
    pub fn read(path: &Path) -> Result<Seed, CorpusError> {
        let failed = |source| CorpusError::Read { path: path.to_owned(), source };
        let wrong = |what: String| CorpusError::Content { path: path.to_owned(), what };
        let meta = fs::metadata(path).map_err(failed)?;
        if !meta.is_file() {
            return Err(wrong("is no file; name a seed case such as corpus/gemm/weight-gradient-n48.toml".into()));
        }
        if meta.len() > LARGEST_FILE {
            return Err(wrong(format!("has {} bytes; a seed case has at most {LARGEST_FILE}", meta.len())));
        }
        let bytes = fs::read(path).map_err(failed)?;
        let text = String::from_utf8(bytes)
            .map_err(|e| wrong(format!("byte {} is no UTF-8; save the file as UTF-8", e.utf8_error().valid_up_to())))?;
        Seed::parse(&text).map_err(wrong)
    }

    /// Writes a file, replacing one that is there.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), CorpusError> {
        fs::write(path, self.to_toml()).map_err(|source| CorpusError::Write { path: path.to_owned(), source })
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// One sentence that says what is wrong and what would be right.
    pub fn parse(text: &str) -> Result<Seed, String> {
        if text.trim().is_empty() {
            return Err("is empty; a seed case needs format, problem and [params]".into());
        }
        if text.len() as u64 > LARGEST_FILE {
            return Err(format!("has {} bytes; a seed case has at most {LARGEST_FILE}", text.len()));
        }
        let mut table = text.parse::<toml::Table>().map_err(|e| not_toml(text, &e))?;
        let format = table.remove("format").ok_or("has no format; add the line format = 1")?;
        if format.as_integer() != Some(FORMAT) {
            return Err(format!("format = {} is not known here; this version reads format = {FORMAT}", shown(&format)));
        }
        let problem = text_of("problem", table.remove("problem"))?
            .filter(|p| !p.is_empty())
            .ok_or("names no problem; add a line such as problem = \"gemm\"")?;
        let placement = match text_of("placement", table.remove("placement"))? {
            Some(word) => word.parse()?,
            None => Placement::END,
        };
        let note = text_of("note", table.remove("note"))?.unwrap_or_default();
        let params =
            labels("params", table.remove("params"))?.ok_or("has no [params]; add the table, even if empty")?;
        let knobs = labels("knobs", table.remove("knobs"))?.unwrap_or_default();
        if let Some(key) = table.keys().next() {
            return Err(format!(
                "has an unknown key '{key}'; a seed case has format, problem, placement, note, [params] and [knobs]"
            ));
        }
        Ok(Seed { problem, params, knobs, placement, note })
    }

    /// The text of the file.
    pub fn to_toml(&self) -> String {
        let mut out =
            format!("format = {FORMAT}\nproblem = {}\nplacement = \"{}\"\n", quoted(&self.problem), self.placement);
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
        Ok(Case { params, knobs: self.knobs.clone(), placement: self.placement })
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

fn not_toml(text: &str, error: &toml::de::Error) -> String {
    let at = error.span().map_or(0, |s| s.start).min(text.len());
    let line = text.as_bytes()[..at].iter().filter(|b| **b == b'\n').count() + 1;
    let what = error.message().lines().next().unwrap_or("it does not parse");
    format!("line {line} is not TOML ({what}); see corpus/README.md for the form")
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

#[cfg(test)]
mod tests;
