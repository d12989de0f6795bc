//! What a run did, a line of JSON each, on its way to the disk before the next thing happens.

use super::error::StoreError;
use crate::problem::{Knobs, Value};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Version of the lines, written with every start.
pub const JOURNAL_FORMAT: u32 = 1;

/// One line.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Line<'a> {
    /// A run began.
    Start { journal: u32, version: &'a str, pid: u32, problem: &'a str, target: &'a str, seed: u64 },
    /// These cases are about to run, by number, both included.
    Intent { first: u64, last: u64 },
    /// A case failed.
    Bad {
        case: u64,
        params: BTreeMap<String, Value>,
        knobs: &'a Knobs,
        placement: String,
        /// `fault`, `wrong`, `hang` or `crash`.
        verdict: &'a str,
        /// In words.
        signature: String,
    },
    /// A failure was filed, or counted for a finding that was there.
    Finding { name: &'a str, new: bool },
    /// The run ended by itself.
    End { cases: u64, new: u64 },
}

/// The run log of one output folder, appended to by every run.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Opens the log. A line that a killed run left half written is closed, so that the next one starts afresh.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub(super) fn open(path: &Path) -> Result<Journal, StoreError> {
        let failed = |e| StoreError::writing(path, e);
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(failed)?;
        if !ends_in_newline(&mut file).map_err(failed)? {
            file.write_all(b"\n").map_err(failed)?;
        }
        Ok(Journal { path: path.to_owned(), file })
    }

    /// Appends a line. It has left the process when this returns, so a kill cannot take it back.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn write(&mut self, line: &Line<'_>) -> Result<(), StoreError> {
        let mut text = serde_json::to_string(line)
            .map_err(|e| StoreError::Text { name: self.path.display().to_string(), what: e.to_string() })?;
        text.push('\n');
        self.file.write_all(text.as_bytes()).map_err(|e| StoreError::writing(&self.path, e))
    }
}

fn ends_in_newline(file: &mut File) -> io::Result<bool> {
    let meta = file.metadata()?;
    if !meta.is_file() || meta.len() == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last[0] == b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_written_line_does_not_spoil_the_next_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        std::fs::write(&path, "{\"event\":\"int").unwrap();
        let mut journal = Journal::open(&path).unwrap();
        journal.write(&Line::Intent { first: 1, last: 64 }).unwrap();
        journal.write(&Line::Finding { name: "x", new: true }).unwrap();
        drop(Journal::open(&path).unwrap());
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(lines[0], r#"{"event":"intent","first":1,"last":64}"#);
        assert_eq!(lines[1], r#"{"event":"finding","name":"x","new":true}"#);
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn a_full_disk_is_one_sentence() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let error = Journal::open(&path).unwrap().write(&Line::Intent { first: 0, last: 0 }).unwrap_err();
        assert!(matches!(error, StoreError::NoRoom { .. }), "{error:?}");
        assert!(error.to_string().starts_with("no room to write"), "{error}");
    }
}
