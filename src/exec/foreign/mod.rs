//! Programs of other people, started from a manifest: their process, their lines, their verdicts.

mod identity;
pub mod lines;
mod place;
pub mod plant;
mod program;
pub mod selftest;
pub mod verdict;

pub use program::{Program, StartingProgram};

use crate::manifest::Manifest;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What the programs of a pool have in common.
#[derive(Debug, Clone)]
pub struct Foreign {
    pub manifest: Arc<Manifest>,
    /// Reads between the elements of an operand are failures even where the manifest allows them.
    pub strict_gaps: bool,
    /// A program of this pool has announced a case: one that dies without doing so has died before it launched.
    announces: Arc<AtomicBool>,
}

impl Foreign {
    pub fn new(manifest: Arc<Manifest>, strict_gaps: bool) -> Foreign {
        Foreign { manifest, strict_gaps, announces: Arc::default() }
    }

    /// For error messages: the program and the manifest that names it.
    pub fn named(&self) -> String {
        let mut command = self.manifest.command.join(" ");
        if command.chars().count() > 80 {
            command = command.chars().take(80).chain("...".chars()).collect();
        }
        format!("the program `{command}` of {}", self.manifest.path.display())
    }
}
