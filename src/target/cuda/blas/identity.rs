//! What a loaded library says of itself.

use crate::device::cuda::Gpu;
use crate::target::cblas::file_facts;
use crate::target::cuda::card_facts;
use std::path::Path;

/// Facts for a finding's environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// `cuBLAS` or `cublasLt`.
    pub name: &'static str,
    /// `13.1.0`.
    pub version: String,
}

impl Identity {
    /// Pairs of name and value: the library, its file, the driver and the card.
    pub fn facts(&self, path: &Path, gpu: &Gpu) -> Vec<(String, String)> {
        let mut facts = vec![("name".to_owned(), self.name.to_owned()), ("version".to_owned(), self.version.clone())];
        facts.extend(card_facts(gpu));
        facts.extend(file_facts("library", path));
        facts
    }
}

/// A version as the properties of a library give it; one that it does not give is -1.
pub fn version_text(major: i32, minor: i32, patch: i32) -> String {
    if major < 0 { "unknown version".to_owned() } else { format!("{major}.{minor}.{}", patch.max(0)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_three_numbers_or_is_unknown() {
        assert_eq!(version_text(13, 1, 0), "13.1.0");
        assert_eq!(version_text(-1, 0, 0), "unknown version");
    }
}
