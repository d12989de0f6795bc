//! The output folder: `findings/` NAME.toml each, `raw/` failing cases that were not shrunk, `state/` counts and how a hunt
//! stands, `journal.jsonl` what hunts did, `lock` held while a run writes, `reserve` room that is given up on a full disk.

pub mod atomic;
mod counts;
mod error;
mod journal;
mod keep;
mod past;
mod record;
mod reserve;
mod update;

pub use counts::{Counted, Counts};
pub use error::{NotFiled, StoreError};
pub use journal::{JOURNAL_FORMAT, Journal, Line};
pub use keep::{Kept, keep};
pub use past::Past;
pub use record::{Answer, Effect, Record, Round, Spent, Start};
pub use reserve::RESERVE_BYTES;
pub use update::update;

use super::known::Warning;
use super::{Finding, Seed, check, known::Known, name};
use crate::exec::Signature;
use crate::problem::{Case, Problem};
use crate::target::TargetSpec;
use reserve::Reserve;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where runs write unless --out says otherwise.
pub const DEFAULT_OUT: &str = "shrinkfault-out";

/// Folder of committed findings, in the working directory.
pub const REGRESSIONS: &str = "regressions";

/// An output folder that no other run writes to while this value lives.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    journal: Journal,
    counts: Counts,
    reserve: Reserve,
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
        let reserve = Reserve::take(&root.join("reserve"))?;
        let journal = Journal::open(&root.join("journal.jsonl"))?;
        let (counts, warning) = Counts::load(&root.join("state").join("counts.json"));
        Ok((Store { root: root.to_owned(), journal, counts, reserve, _lock: lock }, warning.into_iter().collect()))
    }

    /// Appends a line to the journal. A kill cannot take it back.
    ///
    /// # Errors
    /// Where it cannot be written; nothing of it stays then.
    pub fn log(&mut self, line: &Line<'_>) -> Result<(), StoreError> {
        let text = line.text(self.journal.path())?;
        let journal = &mut self.journal;
        let written = self.reserve.spend(|| journal.append(&text));
        written.map_err(|e| StoreError::writing(self.journal.path(), e))
    }

    /// Appends a line to the journal and waits until it is on the disk.
    ///
    /// # Errors
    /// As [`Store::log`].
    pub fn log_durably(&mut self, line: &Line<'_>) -> Result<(), StoreError> {
        self.log(line)?;
        self.journal.sync().map_err(|e| StoreError::writing(self.journal.path(), e))
    }

    /// The last hunt in this folder.
    ///
    /// # Errors
    /// Where the journal cannot be read.
    pub fn past(&self) -> Result<Option<Past>, StoreError> {
        Past::last(self.journal.path()).map_err(|e| StoreError::reading(self.journal.path(), e))
    }

    /// Removes from the journal what cannot be read of that hunt.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn cut(&mut self, past: &Past) -> Result<(), StoreError> {
        self.journal.cut(past.until())
    }

    /// Below which number the cases of a hunt are counted.
    pub fn counted(&self, hunt: &str) -> u64 {
        self.counts.counted(hunt)
    }

    /// Counts cases for findings that exist: all of a hunt up to there are counted then.
    ///
    /// # Errors
    /// Where the file cannot be written; the counts in memory stand.
    pub fn count(&mut self, more: &BTreeMap<String, u64>, counted: Counted) -> Result<(), StoreError> {
        self.counts.add(more, counted);
        let (path, text) = (self.counts.path(), self.counts.text()?);
        self.reserve.spend(|| atomic::replace(path, text.as_bytes())).map_err(|e| StoreError::writing(path, e))
    }

    /// Whether anything more may be found.
    ///
    /// # Errors
    /// Where the disk is full, and the room kept for findings is in use.
    pub fn check(&self) -> Result<(), StoreError> {
        if self.reserve.is_given_up() { Err(StoreError::Full { path: self.root.clone() }) } else { Ok(()) }
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
        loop {
            let place = self.place(finding);
            let Filed::New(path) = place else { return Ok(place) };
            match self.reserve.spend(|| atomic::create(&path, toml.as_bytes())) {
                Ok(true) => return Ok(Filed::New(path)),
                // Somebody took the name just now.
                Ok(false) => {}
                Err(e) => return Err(NotFiled { error: StoreError::writing(&path, e), toml }),
            }
        }
    }

    /// Where a finding would be filed, or lies.
    pub fn place(&self, finding: &Finding) -> Filed {
        let name = finding.name();
        let mut number = 1;
        loop {
            let suffix = if number == 1 { String::new() } else { format!("-{number}") };
            let path = self.findings().join(format!("{name}{suffix}.toml"));
            if fs::symlink_metadata(&path).is_err() {
                return Filed::New(path);
            }
            if is_same(&path, finding) {
                return Filed::Already(path);
            }
            number += 1;
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
        let path = self.raw_path(problem, target, case, signature);
        let note = format!("failed, not shrunk: {signature}");
        let seed = Seed { target: Some(target.to_string()), ..Seed::of(problem, &check::filed(problem, case), &note) };
        match self.reserve.spend(|| atomic::create(&path, seed.to_toml().as_bytes())) {
            Ok(true) => Ok(Filed::New(path)),
            Ok(false) => Ok(Filed::Already(path)),
            Err(e) => Err(StoreError::writing(&path, e)),
        }
    }

    /// The file of a failing case that was not shrunk.
    pub fn raw_path(&self, problem: &Problem, target: &TargetSpec, case: &Case, signature: &Signature) -> PathBuf {
        self.root.join("raw").join(format!("{}.toml", name::raw_name(problem, target, case, signature)))
    }

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

/// The file that says how the hunt of an output folder stands.
pub fn status(out: &Path) -> PathBuf {
    out.join("state").join("status.json")
}

/// The process whose run holds an output folder, if one does; 0 where it has not said its number. Asking takes nothing from
/// the run.
///
/// # Errors
/// Where the lock cannot be read.
pub fn user(out: &Path) -> io::Result<Option<u32>> {
    let path = out.join("lock");
    let file = match File::open(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(holder(&path).unwrap_or(0))),
        Err(TryLockError::Error(e)) => Err(e),
    }
}

/// The number that the last run to hold a lock has written into it.
fn holder(lock: &Path) -> Option<u32> {
    fs::read_to_string(lock).ok().and_then(|text| text.trim().parse().ok())
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

/// For so long a run tries to take the lock: `status` may hold it for a moment.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Takes the lock of an output folder and writes this process's number into it.
fn lock(path: &Path) -> Result<File, StoreError> {
    let failed = |e| StoreError::writing(path, e);
    // Not truncated on opening: the number of the process that holds the lock is still to be read.
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(failed)?;
    let mut tries = 1;
    let locked = loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if tries < LOCK_TRIES => std::thread::sleep(LOCK_PAUSE),
            other => break other,
        }
        tries += 1;
    };
    match locked {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let root = path.parent().unwrap_or(path).to_owned();
            return Err(StoreError::InUse { path: root, pid: holder(path) });
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
