//! Where the problem of a finding or a case file comes from: it is built in, or described by a manifest that the target
//! names.

use crate::manifest::{self, Manifest};
use crate::problem::{BUILTINS, Builtin, Problem};
use crate::target::TargetSpec;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What names are looked up in.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    /// Folder of the file that is read: manifests are looked for from there, too.
    near: Option<PathBuf>,
    /// A manifest that the user named: findings of that name use it, wherever theirs lies.
    given: Option<Arc<Manifest>>,
}

/// A problem, and the manifest where it comes from one.
#[derive(Debug, Clone)]
pub struct Described {
    pub problem: Arc<Problem>,
    pub manifest: Option<Arc<Manifest>>,
}

impl Catalog {
    /// With a manifest that the user named.
    pub fn with(given: Option<Arc<Manifest>>) -> Catalog {
        Catalog { near: None, given }
    }

    /// For a file.
    pub fn near(&self, file: &Path) -> Catalog {
        let folder = file.parent().map(|p| if p.as_os_str().is_empty() { Path::new(".") } else { p });
        Catalog { near: folder.map(Path::to_owned), given: self.given.clone() }
    }

    /// The problem of that name on a target, which may be unknown.
    ///
    /// # Errors
    /// A sentence, where there is none, or its manifest is not found, does not parse or has another name.
    pub fn describe(&self, name: &str, target: Option<&TargetSpec>) -> Result<Described, String> {
        if let Some(manifest) = self.given.as_ref().filter(|m| m.name() == name) {
            return Ok(of(Arc::clone(manifest)));
        }
        match target.filter(|t| t.family == manifest::FAMILY) {
            Some(target) => self.read(name, target).map(of),
            None => Ok(Described { problem: builtin(name)?, manifest: None }),
        }
    }

    fn read(&self, name: &str, target: &TargetSpec) -> Result<Arc<Manifest>, String> {
        let shown = target.library.as_deref().ok_or_else(|| format!("target = '{target}' names no manifest"))?;
        let path = manifest::find(shown, self.near.as_deref())
            .ok_or_else(|| format!("its manifest {shown} was not found; name it with --manifest PATH"))?;
        let manifest = Manifest::read(&path).map_err(|e| format!("its manifest: {e}"))?;
        match manifest.name() {
            theirs if theirs != name => Err(format!("{} describes {theirs} now, not {name}", path.display())),
            _ => Ok(Arc::new(manifest)),
        }
    }
}

fn of(manifest: Arc<Manifest>) -> Described {
    Described { problem: Arc::clone(&manifest.problem), manifest: Some(manifest) }
}

/// A built-in problem by name.
///
/// # Errors
/// A sentence with the names there are.
pub fn builtin(name: &str) -> Result<Arc<Problem>, String> {
    match Builtin::find(name) {
        Some(builtin) => Ok(builtin.problem()),
        None => {
            let known: Vec<&str> = BUILTINS.iter().map(|b| b.name).collect();
            Err(format!("problem = '{name}' is not one of {}", known.join(", ")))
        }
    }
}
