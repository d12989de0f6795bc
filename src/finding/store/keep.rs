//! Copying a finding to where it is committed.

use super::atomic;
use super::error::StoreError;
use crate::finding::{Finding, name};
use std::path::{Path, PathBuf};

/// What became of a finding that was to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// It was copied there.
    Now(PathBuf),
    /// The same bytes were there.
    Already(PathBuf),
}

impl Kept {
    pub fn path(&self) -> &Path {
        match self {
            Kept::Now(path) | Kept::Already(path) => path,
        }
    }
}

/// Copies a finding, byte by byte, to `regressions`/GROUP/NAME.toml: GROUP is the library, or the family of the target where
/// no library is named, and NAME follows from what the finding states, whatever the file was called.
///
/// # Errors
/// Where the file is no finding, a different file has the name already, or nothing can be written.
pub fn keep(file: &Path, regressions: &Path) -> Result<Kept, StoreError> {
    let finding = Finding::read(file)?;
    let text = crate::finding::read::text(file)?;
    let folder = regressions.join(name::group(&finding.facts().target));
    std::fs::create_dir_all(&folder).map_err(|e| super::folder_error(&folder, e))?;
    let path = folder.join(format!("{}.toml", finding.name()));
    match atomic::create(&path, text.as_bytes()) {
        Ok(true) => Ok(Kept::Now(path)),
        Ok(false) if crate::finding::read::text(&path).is_ok_and(|there| there == text) => Ok(Kept::Already(path)),
        Ok(false) => Err(StoreError::Differs { path }),
        Err(e) => Err(StoreError::writing(&path, e)),
    }
}
