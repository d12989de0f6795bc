//! The files of findings below a folder.

use std::io;
use std::path::{Path, PathBuf};

/// Every .toml file below the folder, sorted; a file is a list of its own. Names that begin with a dot are passed over,
/// and folders behind links are not entered.
///
/// # Errors
/// A sentence, where the folder cannot be read.
pub fn files(place: &Path) -> Result<Vec<PathBuf>, String> {
    if place.is_file() {
        return Ok(vec![place.to_owned()]);
    }
    let mut all = vec![];
    below(place, &mut all).map_err(|(folder, e)| {
        format!("failed to read {} ({e}): name a folder of findings, or one finding", folder.display())
    })?;
    all.sort();
    Ok(all)
}

fn below(folder: &Path, all: &mut Vec<PathBuf>) -> Result<(), (PathBuf, io::Error)> {
    let failed = |e| (folder.to_owned(), e);
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        if entry.file_type().map_err(failed)?.is_dir() {
            below(&path, all)?;
        } else if path.extension().is_some_and(|e| e == "toml") {
            all.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_found_at_any_depth_and_nothing_else_is() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.toml", "a/z/deep.toml", "a/x.c", "README.md", ".git/x.toml", "a/.y.toml"] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let found = files(dir.path()).unwrap();
        assert_eq!(found, ["a/z/deep.toml", "b.toml"].map(|n| dir.path().join(n)));
        assert_eq!(files(&found[1]).unwrap(), found[1..]);
        assert!(files(&dir.path().join("none")).unwrap_err().contains("name a folder of findings"));
    }
}
