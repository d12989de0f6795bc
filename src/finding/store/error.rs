//! Why something could not be written down.

use std::io;
use std::path::{Path, PathBuf};

/// Each text is one sentence that says what to change.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{} is not a folder: name another one", path.display())]
    NotAFolder { path: PathBuf },
    #[error("another run{} uses {}: wait for it, or give --out another folder", process(*pid), path.display())]
    InUse { path: PathBuf, pid: Option<u32> },
    #[error("no room to write {}: free some space, or give --out another folder ({source})", path.display())]
    NoRoom { path: PathBuf, source: io::Error },
    #[error(
        "no room to write {}, {} that are kept free for findings: free some space, or give --out another folder ({source})",
        path.display(), bytesize::ByteSize::b(super::RESERVE_BYTES)
    )]
    NoReserve { path: PathBuf, source: io::Error },
    #[error(
        "the disk that holds {} is full, and the room kept for findings was needed: what was found is filed; free some \
         space, then go on with --resume",
        path.display()
    )]
    Full { path: PathBuf },
    #[error("failed to write {}: make the folder writable, or name another one ({source})", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    #[error("failed to read {}: make it readable, or begin another hunt without --resume ({source})", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} is there already and differs: compare the two, then remove or rename one", path.display())]
    Differs { path: PathBuf },
    #[error("{name}: {what}")]
    Text { name: String, what: String },
    #[error(transparent)]
    Read(#[from] super::super::ReadError),
}

fn process(pid: Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (process {pid})"))
}

impl StoreError {
    /// What an error while writing `path` means.
    pub(crate) fn writing(path: &Path, source: io::Error) -> StoreError {
        let path = path.to_owned();
        match source.kind() {
            kind if is_no_room(kind) => StoreError::NoRoom { path, source },
            io::ErrorKind::NotADirectory => StoreError::NotAFolder { path },
            _ => StoreError::Unwritable { path, source },
        }
    }

    /// What an error while reading `path` means.
    pub(super) fn reading(path: &Path, source: io::Error) -> StoreError {
        StoreError::Unreadable { path: path.to_owned(), source }
    }

    /// What an error while making the reserve means.
    pub(super) fn reserving(path: &Path, source: io::Error) -> StoreError {
        match source.kind() {
            kind if is_no_room(kind) => StoreError::NoReserve { path: path.to_owned(), source },
            _ => StoreError::writing(path, source),
        }
    }
}

fn is_no_room(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}

/// A finding that could not be written. Its text is here: print it, it is all there is.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct NotFiled {
    pub error: StoreError,
    /// The complete file; empty where it could not be made.
    pub toml: String,
}
