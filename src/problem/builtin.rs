//! The problems that come with the program.

use super::contents::Contents;
use super::{Instance, Problem, allgather, gemm};
use std::sync::Arc;

/// A problem with the values its cases run on.
#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    pub name: &'static str,
    build: fn() -> Result<Problem, super::expr::ParseError>,
    pub contents: fn(&Instance, u64) -> Box<dyn Contents>,
    /// Largest work of a case in a hunt, on a library and on a model: such a case takes a few milliseconds. Above it a
    /// library skips, and of a model some work-groups run, which is all that offsets need.
    pub hunt_work: (u64, u64),
}

/// All built-in problems.
pub const BUILTINS: [Builtin; 2] = [
    Builtin { name: "gemm", build: gemm::problem, contents: gemm::contents, hunt_work: (1 << 21, 1 << 20) },
    // Without the first and the last tile a case tells nothing: 64 x 128 elements pushed to 64 ranks, twice, are 2^20.
    Builtin {
        name: "allgather",
        build: allgather::problem,
        contents: allgather::contents,
        hunt_work: (1 << 22, 1 << 22),
    },
];

impl Builtin {
    pub fn find(name: &str) -> Option<Builtin> {
        BUILTINS.into_iter().find(|b| b.name == name)
    }

    /// The description.
    ///
    /// # Panics
    /// Where the text of a built-in description does not parse: a test builds each of them.
    pub fn problem(&self) -> Arc<Problem> {
        match (self.build)() {
            Ok(p) => Arc::new(p),
            Err(e) => panic!("built-in problem {}: {e}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_problem_parses_and_has_a_plainest_case() {
        for b in BUILTINS {
            let p = b.problem();
            assert_eq!(p.name, b.name);
            let plain = p.plainest().unwrap();
            assert_eq!(p.work(&plain), 1);
        }
    }
}
