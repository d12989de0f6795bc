//! Room kept free in an output folder, so that a full disk does not lose what was found.

use super::error::StoreError;
use crate::exec::disk;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes kept free: a hundred findings, or the journal of a round in which every case fails.
pub const RESERVE_BYTES: u64 = 1 << 20;

/// A file whose only use is to be removed. It goes with this value, too.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
    given_up: AtomicBool,
}

impl Reserve {
    /// Takes the room.
    ///
    /// # Errors
    /// Where there is none.
    pub fn take(path: &Path) -> Result<Reserve, StoreError> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let taken = file.and_then(|file| disk::allocate(&file, RESERVE_BYTES));
        if let Err(e) = taken {
            let _ = fs::remove_file(path);
            return Err(StoreError::reserving(path, e));
        }
        Ok(Reserve { path: path.to_owned(), given_up: AtomicBool::new(false) })
    }

    /// Whether the room was needed: the disk is full.
    pub fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    /// Writes something; where the disk is full, once more with the room that was kept.
    ///
    /// # Errors
    /// As the second attempt.
    pub fn spend<T>(&self, mut write: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        match write() {
            Err(e) if is_full(&e) && !self.given_up.swap(true, Ordering::Relaxed) => {
                fs::remove_file(&self.path)?;
                write()
            }
            other => other,
        }
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn is_full(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_the_disk_full_is_written_with_the_room_that_was_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("reserve");
        let reserve = Reserve::take(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), RESERVE_BYTES);
        // The disk is full for as long as the file is there.
        let write = || if path.exists() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(7) };
        assert_eq!(reserve.spend(write).unwrap(), 7);
        assert!(reserve.is_given_up());
        let full = || Err::<(), _>(io::ErrorKind::StorageFull.into());
        assert_eq!(reserve.spend(full).unwrap_err().kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn another_error_gives_nothing_up_and_the_room_goes_with_the_run() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("reserve");
        let reserve = Reserve::take(&path).unwrap();
        let denied = || Err::<(), _>(io::ErrorKind::PermissionDenied.into());
        assert!(reserve.spend(denied).is_err());
        assert!(path.exists() && !reserve.is_given_up());
        drop(reserve);
        assert!(!path.exists());
    }
}
