//! The prober that the shrinker and the commands use: one case at a time on a pool.

use super::blame::{GapRule, settle_gap};
use super::pool::Pool;
use super::probe::{Freshness, Observation, ProbeError, Prober};
use super::signature::Family;
use super::verdict::Verdict;
use crate::problem::Case;
use std::time::Duration;

/// Probes on the first seat of a pool, or on spares.
#[derive(Debug)]
pub struct PoolProber<'a> {
    pool: &'a Pool,
    /// Seed of the operand contents.
    seed: u64,
    gap_rule: GapRule,
}

impl<'a> PoolProber<'a> {
    pub fn new(pool: &'a Pool, seed: u64, gap_rule: GapRule) -> PoolProber<'a> {
        PoolProber { pool, seed, gap_rule }
    }
}

impl Prober for PoolProber<'_> {
    fn probe(&mut self, case: &Case, freshness: Freshness) -> Result<Observation, ProbeError> {
        let result = self.pool.probe(case, self.seed, freshness == Freshness::Fresh)?;
        let verdict = settle_gap(self.pool, case, self.seed, &result, self.gap_rule)?.verdict;
        Ok(Observation {
            verdict,
            kernel: result.kernel,
            resolved: result.resolved,
            remapped: result.remapped,
            took: result.took,
        })
    }

    fn answers_late(&mut self, case: &Case) -> Result<Option<Duration>, ProbeError> {
        let result = self.pool.long_look(case, self.seed)?;
        let late = !matches!(result.verdict, Verdict::Hang { .. });
        if late {
            self.pool.raise_limit();
        }
        Ok(late.then_some(result.took))
    }

    fn cost_ratio(&self, family: Family, pass: Option<Duration>) -> f64 {
        self.pool.cost_ratio(family, pass)
    }
}
