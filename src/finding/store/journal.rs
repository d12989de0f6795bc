//! What a hunt did, a line of JSON each, on its way to the disk before the next thing happens. docs/journal.md has every
//! kind of line.

use super::error::StoreError;
use super::record::{Effect, Round, Start};
use crate::problem::{Knobs, Value};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Version of the lines, written with every start.
pub const JOURNAL_FORMAT: u32 = 2;

/// One line.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Line<'a> {
    /// A hunt began.
    Start(&'a Start),
    /// It goes on with this round, whose first case this is.
    Resume { pid: u32, round: u64, case: u64 },
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
    /// A finding is about to be written: there is no file of its name yet.
    Filing { case: u64, finding: &'a str, effects: &'a [Effect] },
    /// What became of a case that failed.
    Settled { case: u64, effects: &'a [Effect] },
    /// All cases of a round ran, and those that failed are settled.
    Round(&'a Round),
    /// This run of the hunt ended in order.
    End { cases: u64, new: u64, ended: &'a str },
}

/// The run log of one output folder, appended to by every run.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Bytes in whole lines.
    len: u64,
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
        let len = file.metadata().map_err(failed)?.len();
        Ok(Journal { path: path.to_owned(), file, len })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Cuts off what lies past `len` bytes.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub(super) fn cut(&mut self, len: u64) -> Result<(), StoreError> {
        self.file.set_len(len).map_err(|e| StoreError::writing(&self.path, e))?;
        self.len = len;
        Ok(())
    }

    /// Appends a line. It has left the process when this returns, so a kill cannot take it back. Where the file cannot be
    /// written, nothing of the line stays.
    pub(super) fn append(&mut self, text: &str) -> io::Result<()> {
        if let Err(e) = self.file.write_all(text.as_bytes()) {
            let _ = self.file.set_len(self.len);
            return Err(e);
        }
        self.len += text.len() as u64;
        Ok(())
    }

    /// Returns once every line is on the disk, so that a power cut cannot take them back.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

impl Line<'_> {
    /// As it stands in the file.
    pub(super) fn text(&self, path: &Path) -> Result<String, StoreError> {
        let text = serde_json::to_string(self);
        let mut text = text.map_err(|e| StoreError::Text { name: path.display().to_string(), what: e.to_string() })?;
        text.push('\n');
        Ok(text)
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

    fn write(journal: &mut Journal, line: &Line<'_>) -> io::Result<()> {
        let text = line.text(journal.path()).unwrap();
        journal.append(&text)
    }

    #[test]
    fn a_half_written_line_does_not_spoil_the_next_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        std::fs::write(&path, "{\"event\":\"int").unwrap();
        let mut journal = Journal::open(&path).unwrap();
        write(&mut journal, &Line::Intent { first: 1, last: 64 }).unwrap();
        write(&mut journal, &Line::Settled { case: 3, effects: &[Effect::Known("x".into()), Effect::Slow] }).unwrap();
        drop(Journal::open(&path).unwrap());
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(lines[0], r#"{"event":"intent","first":1,"last":64}"#);
        assert_eq!(lines[1], r#"{"event":"settled","case":3,"effects":[{"known":"x"},"slow"]}"#);
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let error = write(&mut Journal::open(&path).unwrap(), &Line::Intent { first: 0, last: 0 }).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
