//! The files of findings below a folder, and the part of them that one machine takes.

use std::io;
use std::path::{Path, PathBuf};

/// One of `of` parts of a list, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    pub part: u32,
    pub of: u32,
}

impl Shard {
    /// Every `of`-th item: each lies in exactly one part, and the parts differ by one in size.
    pub fn take<T>(self, items: Vec<T>) -> Vec<T> {
        let (skip, step) = (self.part as usize - 1, self.of as usize);
        items.into_iter().skip(skip).step_by(step).collect()
    }
}

impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let parsed = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
        match parsed {
            Some((part, of)) if 1 <= part && part <= of => Ok(Shard { part, of }),
            _ => Err("write K/N with 1 <= K <= N, such as 2/8".to_owned()),
        }
    }
}

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
    use proptest::prelude::*;

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

    #[test]
    fn a_shard_that_is_none_says_how_it_should_read() {
        assert_eq!("2/8".parse(), Ok(Shard { part: 2, of: 8 }));
        for text in ["0/3", "4/3", "1", "a/b", "1/", "-1/2", ""] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_parts_of_a_list_make_the_list(items in 0usize..100, of in 1u32..20) {
            let list: Vec<usize> = (0..items).collect();
            let mut all: Vec<usize> = (1..=of).flat_map(|part| Shard { part, of }.take(list.clone())).collect();
            all.sort_unstable();
            prop_assert_eq!(all, list);
        }
    }
}
