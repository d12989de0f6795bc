//! proptest strategies whose values are cases and groups of cases.
//!
//! They are the only source of cases of a campaign, and library users can put them into properties of their own:
//!
//! ```
//! use proptest::prelude::*;
//! use shrinkfault::problem::Builtin;
//! use shrinkfault::search::{Options, cases};
//!
//! let problem = Builtin::find("gemm").unwrap().problem();
//! proptest!(|(case in cases(problem.clone(), Options::default()).unwrap())| {
//!     prop_assert!(problem.check(&case.params).is_ok());
//! });
//! ```
//!
//! proptest's shrinking is not used: the value trees do not simplify. It would move the values of a strategy one at a
//! time towards a boundary that it takes for monotone, while a faulting region has residue classes, windows and islands;
//! it has no moves across parameters (hold a product, keep a stride packed while a size falls), which a smaller case of
//! the same fault often needs; and it pays the same for every step, while here a probe that fails costs a process and
//! one that passes does not. `shrink` has moves, an order and a cost model of its own.

use super::draw::Draw;
use super::group::Group;
use super::plan;
use super::space::{Options, SearchError, Space};
use crate::problem::{Case, Problem};
use proptest::strategy::{Just, NewTree, Strategy};
use proptest::test_runner::TestRunner;
use std::sync::Arc;

/// Cases of one layout that a campaign sends together.
pub const GROUP: usize = 16;

/// A strategy for groups of cases.
#[derive(Debug, Clone)]
pub struct Groups {
    space: Arc<Space>,
    corpus: Arc<[Case]>,
    /// A seed case to start from, with its position in the corpus.
    seed: Option<(usize, Case)>,
    number: u64,
    size: usize,
}

impl Groups {
    pub(super) fn new(space: Arc<Space>, corpus: Arc<[Case]>, number: u64, seed: Option<(usize, Case)>) -> Groups {
        Groups { space, corpus, seed, number, size: GROUP }
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// At most so many cases in a group; at least 1.
    pub fn with_size(mut self, size: usize) -> Groups {
        self.size = size.max(1);
        self
    }
}

impl Strategy for Groups {
    type Tree = Just<Group>;
    type Value = Group;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let mut draw = Draw::new(runner.rng());
        Ok(Just(match &self.seed {
            Some((index, case)) => plan::seed_group(&self.space, &mut draw, case, *index, self.number, self.size),
            None => plan::group(&self.space, &mut draw, &self.corpus, self.number, self.size),
        }))
    }
}

/// Groups of cases of a problem, all with number 0 and none from a corpus.
///
/// # Errors
/// Where the problem has no case within the caps.
pub fn groups(problem: Arc<Problem>, options: Options) -> Result<Groups, SearchError> {
    Ok(Groups::new(Arc::new(Space::new(problem, options)?), Arc::new([]), 0, None))
}

/// Single cases of a problem: each is a member of a small group of its own.
///
/// # Errors
/// Where the problem has no case within the caps.
pub fn cases(problem: Arc<Problem>, options: Options) -> Result<impl Strategy<Value = Case>, SearchError> {
    let groups = groups(problem, options)?.with_size(4);
    Ok(groups.prop_perturb(|group, mut rng| {
        let mut draw = Draw::new(&mut rng);
        let at = draw.below(group.cases.len() as u64) as usize;
        // A group is never empty.
        group.cases[at].case.clone()
    }))
}
