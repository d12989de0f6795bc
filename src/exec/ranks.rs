//! Which ranks fail: one probe per rank, each in a process of its own.

use super::blame::{GapRule, settle_gap};
use super::pool::Pool;
use super::probe::ProbeError;
use super::verdict::Verdict;
use crate::problem::{Case, Role, Value};
use serde::Serialize;

/// Knob that plays one rank of a case.
pub const ONLY_RANK: &str = "only-rank";

/// Verdicts per rank of one case.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RankTable {
    pub failing: Vec<u32>,
    pub passing: Vec<u32>,
    /// Refused, skipped, or not probed.
    pub not_run: Vec<u32>,
    /// By rank, for the ranks that were probed.
    pub verdicts: Vec<(u32, Verdict)>,
}

/// Probes every rank of a case by itself; `None` where the problem has no ranks or the target cannot play one alone.
///
/// # Errors
/// Where no verdict can be had any more; ranks probed until then are lost to the caller, who may ask again.
pub fn sweep(pool: &Pool, case: &Case, seed: u64, rule: GapRule) -> Result<Option<RankTable>, ProbeError> {
    let problem = pool.problem();
    let Some(param) = problem.params.iter().position(|p| p.role == Role::Ranks) else { return Ok(None) };
    if !pool.knobs(&case.params)?.contains_key(ONLY_RANK) {
        return Ok(None);
    }
    let mut table = RankTable::default();
    for rank in 0..u32::try_from(case.params[param]).unwrap_or(0) {
        let mut alone = case.clone();
        alone.knobs.insert(ONLY_RANK.to_owned(), Value::Int(i64::from(rank)));
        let result = pool.probe(&alone, seed, true)?;
        let verdict = settle_gap(pool, &alone, seed, &result, rule)?.verdict;
        if verdict.is_bad() {
            table.failing.push(rank);
        } else if verdict.is_pass() {
            table.passing.push(rank);
        } else {
            table.not_run.push(rank);
        }
        table.verdicts.push((rank, verdict));
    }
    Ok(Some(table))
}
