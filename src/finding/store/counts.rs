//! How often known findings were met again. Kept beside the findings, whose files stay as they were written.

use super::atomic;
use super::error::StoreError;
use crate::finding::known::Warning;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    counts: u32,
    found_again: BTreeMap<String, u64>,
}

/// Counts by the name of the finding.
#[derive(Debug)]
pub struct Counts {
    path: PathBuf,
    found_again: BTreeMap<String, u64>,
}

impl Counts {
    /// Reads the counts. A file that cannot be read is set aside, and counting starts at 0.
    pub(super) fn load(path: &Path) -> (Counts, Option<Warning>) {
        let mut counts = Counts { path: path.to_owned(), found_again: BTreeMap::new() };
        let text = match crate::finding::read::text(path) {
            Ok(text) => text,
            Err(_) if std::fs::symlink_metadata(path).is_err() => return (counts, None),
            Err(e) => return (counts, Some(Warning(e.to_string()))),
        };
        match serde_json::from_str::<Stored>(&text) {
            Ok(stored) if stored.counts == 1 => {
                counts.found_again = stored.found_again;
                (counts, None)
            }
            _ => {
                let aside = path.with_extension("json.unreadable");
                let kept = std::fs::rename(path, &aside).is_ok();
                let where_to = if kept { format!(" and is kept as {}", aside.display()) } else { String::new() };
                let text = format!("{} holds no counts{where_to}; counting starts at 0", path.display());
                (counts, Some(Warning(text)))
            }
        }
    }

    /// How often the finding was met again, over all runs.
    pub fn of(&self, name: &str) -> u64 {
        self.found_again.get(name).copied().unwrap_or(0)
    }

    /// Counts `times` more and replaces the file.
    ///
    /// # Errors
    /// Where the file cannot be written; the count in memory stands.
    pub fn add(&mut self, name: &str, times: u64) -> Result<(), StoreError> {
        let count = self.found_again.entry(name.to_owned()).or_default();
        *count = count.saturating_add(times);
        let stored = Stored { counts: 1, found_again: self.found_again.clone() };
        let mut text = serde_json::to_string_pretty(&stored)
            .map_err(|e| StoreError::Text { name: self.path.display().to_string(), what: e.to_string() })?;
        text.push('\n');
        atomic::replace(&self.path, text.as_bytes()).map_err(|e| StoreError::writing(&self.path, e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_outlive_the_process_and_a_broken_file_is_set_aside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("counts.json");
        let (mut counts, warning) = Counts::load(&path);
        assert_eq!(warning, None);
        counts.add("a", 2).unwrap();
        counts.add("a", u64::MAX).unwrap();
        counts.add("b", 1).unwrap();
        let (again, _) = Counts::load(&path);
        assert_eq!((again.of("a"), again.of("b"), again.of("c")), (u64::MAX, 1, 0));

        std::fs::write(&path, "{\"counts\": 1").unwrap();
        let (empty, warning) = Counts::load(&path);
        assert_eq!(empty.of("a"), 0);
        assert!(warning.unwrap().0.contains("counting starts at 0"));
        assert!(dir.path().join("counts.json.unreadable").exists());
    }
}
