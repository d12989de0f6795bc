//! What is known of a foreign program before it runs: its manifest and the digests of its files.

use super::Foreign;
use super::lines::cut;
use crate::target::Description;
use sha2::{Digest, Sha256};

/// Largest file of a program whose digest goes into the environment.
const LARGEST_PROGRAM: u64 = 64 << 20;

/// Title and, where asked for, identity.
pub(super) fn description(foreign: &Foreign, identify: bool) -> Description {
    let manifest = &foreign.manifest;
    let mut identity = vec![];
    if identify {
        identity.push(("manifest".to_owned(), crate::manifest::shown(&manifest.path)));
        identity.push(("manifest sha256".to_owned(), manifest.sha256.clone()));
        let files = manifest.command.iter().map(|word| (word, manifest.folder().join(word)));
        for (word, path) in files {
            let small = std::fs::metadata(&path).is_ok_and(|m| m.is_file() && m.len() <= LARGEST_PROGRAM);
            if let Some(bytes) = small.then(|| std::fs::read(&path).ok()).flatten() {
                let digest: String = Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect();
                identity.push((format!("{word} sha256"), digest));
            }
        }
    }
    let title = format!("program `{}`", cut(&manifest.command.join(" ")));
    Description { title, limits: vec![], identity, ..Description::default() }
}
