//! Groups: the cases that share a layout of mapped pages.

use crate::problem::{Case, Placement};

/// Where a group of cases comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// A seed case of the corpus, and what lies around it. `fitted`: it was above a cap, its sizes are smaller here.
    Seed { index: usize, fitted: bool },
    /// Around the line of a hypothesis.
    Directed,
    /// Sizes around multiples of tile sizes, and small packed shapes.
    Edge,
    /// Sizes and strides of any magnitude.
    Random,
    /// Changes of a case of the corpus.
    Mutation,
}

impl Origin {
    pub const WORDS: [&'static str; 5] = ["seed", "directed", "edge", "random", "mutation"];

    /// Position of the kind in [`WORDS`](Self::WORDS).
    pub fn index(self) -> usize {
        match self {
            Origin::Seed { .. } => 0,
            Origin::Directed => 1,
            Origin::Edge => 2,
            Origin::Random => 3,
            Origin::Mutation => 4,
        }
    }

    pub fn word(self) -> &'static str {
        Origin::WORDS[self.index()]
    }
}

/// One generated case, and what the planner knows of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    pub case: Case,
    /// A wrapped offset can land on a page that the case maps: only the comparison of contents would notice.
    pub can_be_silent: bool,
}

/// A layout's worth of cases, at least one.
///
/// All have the same placement and knobs. In a strided group they have the same strides, offsets and element type, so
/// that one comb of mapped pages serves all; in a packed group the strides follow the sizes within a small window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Counts the groups of a campaign: round * groups per round + position.
    pub number: u64,
    pub placement: Placement,
    pub cases: Vec<Planned>,
    pub origin: Origin,
}
