//! How often known findings were met again. Kept beside the findings, whose files stay as they were written.

use super::error::StoreError;
use crate::finding::known::Warning;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    counts: u32,
    found_again: BTreeMap<String, u64>,
    #[serde(default)]
    counted: Option<Counted>,
}

/// How far the cases of the last hunt are counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    pub hunt: String,
    /// Every case below this number that is settled.
    pub below: u64,
}

/// Counts by the name of the finding.
#[derive(Debug)]
pub struct Counts {
    path: PathBuf,
    found_again: BTreeMap<String, u64>,
    counted: Option<Counted>,
}

impl Counts {
    /// Reads the counts. A file that cannot be read is set aside, and counting starts at 0.
    pub(super) fn load(path: &Path) -> (Counts, Option<Warning>) {
        let mut counts = Counts { path: path.to_owned(), found_again: BTreeMap::new(), counted: None };
        let text = match crate::finding::read::text(path) {
            Ok(text) => text,
            Err(_) if std::fs::symlink_metadata(path).is_err() => return (counts, None),
            Err(e) => return (counts, Some(Warning(e.to_string()))),
        };
        match serde_json::from_str::<Stored>(&text) {
            Ok(stored) if stored.counts == 1 => {
                counts.found_again = stored.found_again;
                counts.counted = stored.counted;
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

    /// Below which number the cases of a hunt are counted.
    pub fn counted(&self, hunt: &str) -> u64 {
        self.counted.as_ref().filter(|c| c.hunt == hunt).map_or(0, |c| c.below)
    }

    /// Counts more, which makes all cases of a hunt up to there counted.
    pub(super) fn add(&mut self, more: &BTreeMap<String, u64>, counted: Counted) {
        for (name, times) in more {
            let count = self.found_again.entry(name.clone()).or_default();
            *count = count.saturating_add(*times);
        }
        self.counted = Some(counted);
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The file.
    pub(super) fn text(&self) -> Result<String, StoreError> {
        let stored = Stored { counts: 1, found_again: self.found_again.clone(), counted: self.counted.clone() };
        let text = serde_json::to_string_pretty(&stored);
        text.map(|t| t + "\n")
            .map_err(|e| StoreError::Text { name: self.path.display().to_string(), what: e.to_string() })
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
        let more = |name: &str, times| BTreeMap::from([(name.to_owned(), times)]);
        let counted = |below| Counted { hunt: "h".to_owned(), below };
        counts.add(&more("a", 2), counted(1));
        counts.add(&more("a", u64::MAX), counted(2));
        counts.add(&more("b", 1), counted(9));
        std::fs::write(&path, counts.text().unwrap()).unwrap();
        let (again, _) = Counts::load(&path);
        assert_eq!((again.of("a"), again.of("b"), again.of("c")), (u64::MAX, 1, 0));
        assert_eq!((again.counted("h"), again.counted("other")), (9, 0));

        std::fs::write(&path, "{\"counts\": 1").unwrap();
        let (empty, warning) = Counts::load(&path);
        assert_eq!(empty.of("a"), 0);
        assert!(warning.unwrap().0.contains("counting starts at 0"));
        assert!(dir.path().join("counts.json.unreadable").exists());
    }
}
