//! Files that are there whole or not at all, whenever the process or the machine stops.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Ending of files under way. They begin with a dot and are removed by [`sweep`].
const UNDER_WAY: &str = ".tmp";

/// Creates a file with these bytes; false where the name is taken, and then nothing has changed.
///
/// The bytes go to a file under way in the same folder, reach the disk, and get their name by a hard link, which never
/// replaces anything.
///
/// # Errors
/// Where the bytes cannot be written; nothing of the name is left then.
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let temporary = write_aside(path, bytes)?;
    let linked = match fs::hard_link(&temporary, path) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        // File systems without hard links: the name is only taken by a rename. Two processes at once could both see it
        // free, and the later one would win with a whole file.
        Err(_) if !path.exists() => fs::rename(&temporary, path).map(|()| true),
        Err(e) => Err(e),
    };
    let _ = fs::remove_file(&temporary);
    let created = linked?;
    sync_folder(path)?;
    Ok(created)
}

/// Replaces a file, or creates it: a reader sees the old bytes or the new ones.
///
/// # Errors
/// Where the bytes cannot be written; the old ones are still there then.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = write_aside(path, bytes)?;
    if let Err(e) = fs::rename(&temporary, path) {
        let _ = fs::remove_file(&temporary);
        return Err(e);
    }
    sync_folder(path)
}

/// As [`replace`], for what only says how things stand: it does not wait for the disk, and a power cut may leave no bytes.
///
/// # Errors
/// Where the bytes cannot be written; the old ones are still there then.
pub fn show(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_file_name(under_way(path));
    let shown = fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    if shown.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    shown
}

/// Removes what writers that were killed have left under way. Nobody else may write to the folder meanwhile.
pub fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') && name.ends_with(UNDER_WAY) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn write_aside(path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    let temporary = path.with_file_name(under_way(path));
    // A file left under way by a process that had the same number is of no use to anyone.
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&temporary)?;
    match file.write_all(bytes).and_then(|()| file.sync_all()) {
        Ok(()) => Ok(temporary),
        Err(e) => {
            let _ = fs::remove_file(&temporary);
            Err(e)
        }
    }
}

/// A name beside the path's that no other writer has.
fn under_way(path: &Path) -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!(".{name}.{}.{number}{UNDER_WAY}", std::process::id())
}

fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_taken_keeps_its_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.toml");
        assert!(create(&path, b"one").unwrap());
        assert!(!create(&path, b"two").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"one");
        replace(&path, b"three").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"three");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_sweep_removes_files_under_way_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        for name in [".a.toml.1.2.tmp", "b.tmp", ".gitignore"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        sweep(dir.path());
        let mut left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [".gitignore", "b.tmp"]);
    }
}
