//! Rounds of groups, each a function of the seed, the corpus and the results of the rounds before it.

use super::group::Group;
use super::novelty::{Outcome, Seen, key};
use super::shard::Shard;
use super::space::{Options, SearchError, Space};
use super::strategy::Groups;
use crate::problem::{Case, Problem};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Groups in a round.
pub const GROUPS: u64 = 32;
/// Cases that results may add to the corpus; past that the oldest of them goes.
const FOUND: usize = 1024;

/// Generates the cases of a campaign.
#[derive(Debug)]
pub struct Generator {
    space: Arc<Space>,
    seed: u64,
    groups: u64,
    shard: Shard,
    /// The seed cases, then those that results added.
    corpus: Vec<Case>,
    seeds: usize,
    /// Position after `seeds` that the next addition to a full corpus takes.
    next: usize,
    seen: Seen,
    digest: [u8; 32],
    /// Draws groups side by side; one after another where the system grants no threads.
    threads: Option<ThreadPool>,
}

impl Generator {
    /// A generator over a narrowed problem: pins and limits are in its domains. `corpus` holds the seed cases; a value
    /// that the narrowed problem lacks goes to the nearest one it has.
    ///
    /// # Errors
    /// Where the problem has no case within the caps.
    pub fn new(
        problem: Arc<Problem>,
        seed: u64,
        options: Options,
        corpus: Vec<Case>,
    ) -> Result<Generator, SearchError> {
        let space = Arc::new(Space::new(problem, options)?);
        let digest = digest(&space.problem, &corpus);
        let seeds = corpus.len();
        Ok(Generator {
            space,
            seed,
            groups: GROUPS,
            shard: Shard::WHOLE,
            corpus,
            seeds,
            next: 0,
            seen: Seen::default(),
            digest,
            threads: ThreadPoolBuilder::new().build().ok(),
        })
    }

    /// Of all groups only those of a shard: no two shards of a campaign have a group in common.
    pub fn with_shard(self, shard: Shard) -> Generator {
        Generator { shard, ..self }
    }

    /// The problem that cases belong to: with packed strides under the packed profile.
    pub fn problem(&self) -> &Arc<Problem> {
        &self.space.problem
    }

    /// SHA-256 of the seed cases.
    pub fn corpus_digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Cases in the corpus now: seeds and what results added.
    pub fn corpus_len(&self) -> usize {
        self.corpus.len()
    }

    /// The groups of a round, counted from 0. The first groups of a campaign are those of the seed cases, in order; a
    /// shard has its share of them.
    pub fn round(&self, number: u64) -> Vec<Group> {
        let corpus: Arc<[Case]> = self.corpus.clone().into();
        let first = number.saturating_mul(self.groups);
        let groups = first..first.saturating_add(self.groups);
        let draw = |own: u64| {
            let group = self.shard.number(own);
            let seed = usize::try_from(group).ok().filter(|g| *g < self.seeds).map(|g| (g, self.corpus[g].clone()));
            self.draw(Groups::new(Arc::clone(&self.space), Arc::clone(&corpus), group, seed))
        };
        match &self.threads {
            Some(threads) => threads.install(|| groups.into_par_iter().map(draw).collect()),
            None => groups.map(draw).collect(),
        }
    }

    fn draw(&self, groups: Groups) -> Group {
        let mut runner = TestRunner::new_with_rng(config(), rng(self.seed, groups.number()));
        match groups.new_tree(&mut runner) {
            Ok(tree) => tree.current(),
            // `Groups` rejects nothing: its trees are always made.
            Err(reason) => unreachable!("a group was rejected: {reason}"),
        }
    }

    /// Adds to the corpus the cases whose results are new. Call once at the end of each round with all of its results;
    /// they are taken by number, so that their order here does not matter.
    pub fn fold(&mut self, mut results: Vec<Outcome>) {
        results.sort_by_key(|r| r.number);
        for result in results.into_iter().filter(Outcome::feeds_back) {
            if key(&self.space.problem, &result).is_some_and(|k| self.seen.insert(k)) {
                self.add(result.case);
            }
        }
    }

    fn add(&mut self, case: Case) {
        if self.corpus.len() < self.seeds + FOUND {
            self.corpus.push(case);
        } else {
            self.corpus[self.seeds + self.next] = case;
            self.next = (self.next + 1) % FOUND;
        }
    }
}

/// A runner's settings without the environment's: a seed alone decides.
fn config() -> Config {
    Config { failure_persistence: None, ..Config::default() }
}

/// The generator of one group: a hash of seed and group number, so that no draw depends on how many came before it.
fn rng(seed: u64, group: u64) -> TestRng {
    let mut hash = Sha256::new();
    hash.update(b"shrinkfault group 1");
    hash.update(seed.to_le_bytes());
    hash.update(group.to_le_bytes());
    TestRng::from_seed(RngAlgorithm::ChaCha, &hash.finalize())
}

/// SHA-256 of the problem's name and, for every case in order, its parameters, knobs and placement as text.
fn digest(problem: &Problem, corpus: &[Case]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(&problem.name);
    for case in corpus {
        hash.update(format!("\n{:?} {:?} {}", case.params.0, case.knobs, case.placement));
    }
    hash.finalize().into()
}
