//! The name of a target on the command line and in findings: `cblas`, `sim:i32-sum,operand=B,tile=64x32`.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Family, model and settings of a target. Written and read as one word.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TargetSpec {
    /// `sim`, `cblas`, ...
    pub family: String,
    /// What follows the colon up to the first comma; empty where there is none.
    pub model: String,
    /// `key=value` pairs after the first comma.
    pub settings: BTreeMap<String, String>,
    /// File of the library, where one was named.
    pub library: Option<String>,
}

impl TargetSpec {
    pub fn with_library(mut self, library: Option<String>) -> TargetSpec {
        self.library = library;
        self
    }
}

impl std::str::FromStr for TargetSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<TargetSpec, String> {
        let (text, library) = match text.split_once('@') {
            Some((t, l)) if !l.is_empty() => (t, Some(l.to_owned())),
            Some(_) => return Err(format!("'{text}': name the library file after the @")),
            None => (text, None),
        };
        let mut parts = text.split(',');
        let head = parts.next().unwrap_or_default();
        let (family, model) = head.split_once(':').unwrap_or((head, ""));
        let word = |w: &str| !w.is_empty() && w.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
        if !word(family) || !(model.is_empty() || word(model)) {
            return Err(format!("'{text}' is no target; see `shrinkfault targets` for the names"));
        }
        let mut settings = BTreeMap::new();
        for part in parts {
            match part.split_once('=') {
                Some((k, v)) if word(k) && word(v) => {
                    if settings.insert(k.to_owned(), v.to_owned()).is_some() {
                        return Err(format!("'{text}': {k} is given twice"));
                    }
                }
                _ => return Err(format!("'{text}': '{part}' should read key=value")),
            }
        }
        Ok(TargetSpec { family: family.to_owned(), model: model.to_owned(), settings, library })
    }
}

impl std::fmt::Display for TargetSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.family)?;
        if !self.model.is_empty() {
            write!(f, ":{}", self.model)?;
        }
        for (k, v) in &self.settings {
            write!(f, ",{k}={v}")?;
        }
        match &self.library {
            Some(l) => write!(f, "@{l}"),
            None => Ok(()),
        }
    }
}

impl TryFrom<String> for TargetSpec {
    type Error = String;
    fn try_from(text: String) -> Result<TargetSpec, String> {
        text.parse()
    }
}

impl From<TargetSpec> for String {
    fn from(spec: TargetSpec) -> String {
        spec.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_reads_back_as_written() {
        for text in ["cblas", "cblas@/usr/lib/libcblas.so.3", "sim:i32-sum,operand=B,tile=64x32"] {
            assert_eq!(text.parse::<TargetSpec>().unwrap().to_string(), text);
        }
        for text in ["", ":x", "sim:", "sim:a,b", "sim:a,b=1,b=2", "cblas@", "sim:ü"] {
            match text.parse::<TargetSpec>() {
                Ok(spec) => assert_eq!(spec.model, "", "{text}"),
                Err(e) => assert!(!e.is_empty()),
            }
        }
    }
}
