//! The output folder: `findings/` NAME.toml each, `raw/` failing cases that were not shrunk, `state/` counts, `journal.jsonl`
//! the run log, `lock` held while a run writes.

pub mod atomic;
mod counts;
mod error;
mod journal;
mod keep;
mod update;

pub use counts::Counts;
pub use error::{NotFiled, StoreError};
pub use journal::{JOURNAL_FORMAT, Journal, Line};
pub use keep::{Kept, keep};
pub use update::update;

use super::known::Warning;
use super::{Finding, Seed, check, known::Known, name};
use crate::exec::Signature;
use crate::problem::{Case, Problem};
use crate::target::TargetSpec;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where runs write unless --out says otherwise.
pub const DEFAULT_OUT: &str = "shrinkfault-out";

/// Folder of committed findings, in the working directory.
pub const REGRESSIONS: &str = "regressions";

/// An output folder that no other run writes to while this value lives.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    pub journal: Journal,
    pub counts: Counts,
    _lock: File,
}

/// What became of a finding that was to be filed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filed {
    New(PathBuf),
    /// The same finding lies there; its file was not touched.
    Already(PathBuf),
}

impl Filed {
    pub fn path(&self) -> &Path {
        match self {
            Filed::New(path) | Filed::Already(path) => path,
        }
    }
}

impl Store {
    /// Makes and locks an output folder. A new one, or an empty one, gets a .gitignore of its own that covers all of it.
    ///
    /// # Errors
    /// Where another run holds it, it cannot be made, or it is no folder.
    pub fn open(root: &Path) -> Result<(Store, Vec<Warning>), StoreError> {
        let fresh = fs::read_dir(root).map_or(true, |mut entries| entries.next().is_none());
        for folder in [root.to_owned(), root.join("findings"), root.join("raw"), root.join("state")] {
            fs::create_dir_all(&folder).map_err(|e| folder_error(&folder, e))?;
        }
        let lock = lock(&root.join("lock"))?;
        if fresh {
            let path = root.join(".gitignore");
            atomic::create(&path, b"*\n").map_err(|e| StoreError::writing(&path, e))?;
        }
        for folder in ["findings", "raw", "state"] {
            atomic::sweep(&root.join(folder));
        }
        let journal = Journal::open(&root.join("journal.jsonl"))?;
        let (counts, warning) = Counts::load(&root.join("state").join("counts.json"));
        Ok((Store { root: root.to_owned(), journal, counts, _lock: lock }, warning.into_iter().collect()))
    }

    /// The folder of the findings.
    pub fn findings(&self) -> PathBuf {
        findings(&self.root)
    }

    /// Writes a finding under its name, never over another file: where a different one has the name, a number is appended.
    ///
    /// # Errors
    /// With the text of the file, so that it can be printed: a finding is never lost to a full disk.
    pub fn file(&self, finding: &Finding) -> Result<Filed, NotFiled> {
        let name = finding.name();
        let toml = finding
            .to_toml()
            .map_err(|what| NotFiled { error: StoreError::Text { name: name.clone(), what }, toml: String::new() })?;
        let mut number = 1;
        loop {
            let suffix = if number == 1 { String::new() } else { format!("-{number}") };
            let path = self.findings().join(format!("{name}{suffix}.toml"));
            match atomic::create(&path, toml.as_bytes()) {
                Ok(true) => return Ok(Filed::New(path)),
                Ok(false) if is_same(&path, finding) => return Ok(Filed::Already(path)),
                Ok(false) => number += 1,
                Err(e) => return Err(NotFiled { error: StoreError::writing(&path, e), toml }),
            }
        }
    }

    /// Writes a failing case that was not shrunk as a case file for `shrinkfault shrink`; one of the same name is the same
    /// case and stays.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn save_raw(
        &self,
        problem: &Problem,
        target: &TargetSpec,
        case: &Case,
        signature: &Signature,
    ) -> Result<Filed, StoreError> {
        let name = name::raw_name(problem, target, case, signature);
        let note = format!("failed, not shrunk: {signature}");
        let seed = Seed { target: Some(target.to_string()), ..Seed::of(problem, &check::filed(problem, case), &note) };
        let path = self.root.join("raw").join(format!("{name}.toml"));
        match atomic::create(&path, seed.to_toml().as_bytes()) {
            Ok(true) => Ok(Filed::New(path)),
            Ok(false) => Ok(Filed::Already(path)),
            Err(e) => Err(StoreError::writing(&path, e)),
        }
    }
}

impl Store {
    /// Removes a raw case that became a finding, or turned out to be one that is known.
    ///
    /// # Errors
    /// Where it cannot be removed.
    pub fn remove_raw(&self, path: &Path) -> Result<(), StoreError> {
        match fs::remove_file(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(StoreError::writing(path, e)),
            _ => Ok(()),
        }
    }
}

/// The folder of the findings of an output folder.
pub fn findings(out: &Path) -> PathBuf {
    out.join("findings")
}

/// Whether the file holds the same failure, whatever else it says.
fn is_same(path: &Path, finding: &Finding) -> bool {
    let Ok(there) = Finding::read(path) else { return false };
    let mut known = Known::default();
    known.add(path.to_owned(), there);
    let facts = finding.facts();
    let before = facts.before(&facts.minimal);
    known.same_minimal(&facts.problem, &facts.target, &facts.minimal, &facts.signature, &before).is_some()
}

/// Takes the lock of an output folder and writes this process's number into it.
fn lock(path: &Path) -> Result<File, StoreError> {
    let failed = |e| StoreError::writing(path, e);
    // Not truncated on opening: the number of the process that holds the lock is still to be read.
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let pid = fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok());
            let root = path.parent().unwrap_or(path).to_owned();
            return Err(StoreError::InUse { path: root, pid });
        }
        Err(TryLockError::Error(e)) => return Err(failed(e)),
    }
    file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(failed)?;
    Ok(file)
}

fn folder_error(folder: &Path, source: io::Error) -> StoreError {
    if source.kind() == io::ErrorKind::AlreadyExists {
        return StoreError::NotAFolder { path: folder.to_owned() };
    }
    StoreError::writing(folder, source)
}

#[cfg(test)]
mod tests;
