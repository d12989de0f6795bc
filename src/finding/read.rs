//! Reading the TOML files that people write and commit: findings and seed cases.

use super::file::FORMAT;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Largest file that is read, in bytes.
const LIMIT: u64 = 1 << 20;
/// Largest list of shapes that is read, in bytes.
const LIST_LIMIT: u64 = 1 << 26;

/// Why a file gives nothing. Each text is one sentence with the file name.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("failed to read {}: {source}; check the path and its permissions", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is not a file: name a finding or a case file", path.display())]
    NotAFile { path: PathBuf },
    #[error("{} is larger than 1 MiB: a finding or a case file is far smaller, so name another file", path.display())]
    TooLarge { path: PathBuf },
    #[error("{} is larger than 64 MiB: split the list", path.display())]
    TooLong { path: PathBuf },
    #[error("{} is not UTF-8: save it as UTF-8 text", path.display())]
    NotUtf8 { path: PathBuf },
    #[error("{}: {what}", path.display())]
    Content { path: PathBuf, what: String },
}

/// The text of a small regular file.
///
/// # Errors
/// Where it is something else.
pub fn text(path: &Path) -> Result<String, ReadError> {
    up_to(path, LIMIT)?.ok_or_else(|| ReadError::TooLarge { path: path.to_owned() })
}

/// The text of a list of shapes.
///
/// # Errors
/// Where it is no regular file, or none of a reasonable size.
pub fn list(path: &Path) -> Result<String, ReadError> {
    up_to(path, LIST_LIMIT)?.ok_or_else(|| ReadError::TooLong { path: path.to_owned() })
}

/// The text of a regular file; `None` where it is longer than that.
fn up_to(path: &Path, limit: u64) -> Result<Option<String>, ReadError> {
    let failed = |source| ReadError::Io { path: path.to_owned(), source };
    // Asked before opening: opening a pipe would wait for its other end.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(ReadError::NotAFile { path: path.to_owned() });
    }
    let mut bytes = vec![];
    File::open(path).and_then(|f| f.take(limit + 1).read_to_end(&mut bytes)).map_err(failed)?;
    if bytes.len() as u64 > limit {
        return Ok(None);
    }
    String::from_utf8(bytes).map(Some).map_err(|_| ReadError::NotUtf8 { path: path.to_owned() })
}

/// The table of a text whose format this version reads.
///
/// # Errors
/// A sentence, where the text is no TOML or of another format.
pub fn head(text: &str) -> Result<toml::Table, String> {
    let table: toml::Table = toml::from_str(text).map_err(|e| sentence(text, &e))?;
    match table.get("format") {
        Some(toml::Value::Integer(FORMAT)) => Ok(table),
        Some(toml::Value::Integer(n)) if *n > FORMAT => {
            Err(format!("format = {n} is newer than {FORMAT}, the newest this version reads: use a newer shrinkfault"))
        }
        Some(other) => Err(format!("format = {other} is none: write format = {FORMAT}")),
        None => Err(format!("there is no line format = {FORMAT}: this is neither a finding nor a case file")),
    }
}

/// The text as one of the stored types.
///
/// # Errors
/// A sentence with the line number, where a key is missing or unknown or has another type.
pub fn typed<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|e| sentence(text, &e))
}

/// An error of the TOML reader on one line.
fn sentence(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().replace('\n', " ");
    // The list of all keys helps nobody on a terminal; docs/findings.md has it.
    let message = match message.split_once(", expected one of `") {
        Some((front, _)) if front.starts_with("unknown field") => {
            format!("{front}: remove it, or see docs/findings.md")
        }
        _ => message,
    };
    match error.span() {
        Some(span) => {
            let line = text.as_bytes().iter().take(span.start).filter(|b| **b == b'\n').count() + 1;
            format!("line {line}: {message}")
        }
        None => message,
    }
}
