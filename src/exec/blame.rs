//! Who is to blame for a bad verdict: the case alone, what ran before it, or a gap read that does no harm.

use super::history;
use super::job::{CaseResult, Job};
use super::pool::Pool;
use super::probe::ProbeError;
use super::protocol::LayoutLine;
use super::signature::Signature;
use super::verdict::{Place, Verdict};
use crate::device::Access;
use crate::problem::{Case, Gaps};
use std::sync::Arc;
use std::time::Duration;

/// What becomes of reads inside the span of an operand that allows them: between its rows, and of elements that were not
/// mapped because only a part of the work-groups ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GapRule {
    /// Map the page, full of NaN, and look at the result.
    Note,
    /// Every gap access is a failure (`--strict-gaps`).
    Strict,
}

/// Times that pages are mapped for one case before it is left as it is.
const GAP_ROUNDS: usize = 64;
/// Neighbouring pages mapped in one round at most: every round maps twice as many as the one before it.
const GAP_PAGES: u64 = 256;
/// Places at which a round maps them: a read between two rows is repeated between the others.
const GAP_PLACES: usize = 1024;
/// Pages mapped in all rounds together, at most a little more than this.
const GAP_TOTAL: usize = 8192;

/// A verdict after the gap rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Settled {
    pub verdict: Verdict,
    /// Pages that had to be mapped.
    pub gap_pages: u32,
}

/// Runs a case that faulted on a read inside an operand's span again with that page mapped and full of NaN, until it ends
/// otherwise.
///
/// A right result makes the reads harmless: the verdict is the pass. A wrong one means that the value was used: the fault stays.
///
/// # Errors
/// Where no verdict can be had any more.
pub fn settle_gap(
    pool: &Pool,
    case: &Case,
    seed: u64,
    result: &CaseResult,
    rule: GapRule,
) -> Result<Settled, ProbeError> {
    settle_gap_after(pool, &[], case, seed, result, rule)
}

/// As [`settle_gap`], for a case that other cases ran before in the same process.
///
/// # Errors
/// Where no verdict can be had any more.
pub fn settle_gap_after(
    pool: &Pool,
    before: &[Case],
    case: &Case,
    seed: u64,
    result: &CaseResult,
    rule: GapRule,
) -> Result<Settled, ProbeError> {
    let verdict = &result.verdict;
    let mut pages = vec![];
    let (mut now, mut arena) = (verdict.clone(), result.arena);
    for round in 0..GAP_ROUNDS {
        let place = harmless_place(pool, case, &now).filter(|_| rule == GapRule::Note && pages.len() < GAP_TOTAL);
        let Some(place) = place else { break };
        let page_bytes = arena.page_bytes.max(1);
        let page = |address: u64| (address - arena.base) & !(page_bytes - 1);
        if pages.contains(&page(place.address)) {
            break;
        }
        let wanted = GAP_PAGES.min(1 << round.min(32));
        for at in place.repeated(page_bytes) {
            let run = (page(at)..=page(place.last)).step_by(page_bytes as usize).take(wanted as usize);
            pages.extend(run);
        }
        pages.sort_unstable();
        pages.dedup();
        let mut job = Job::single(0, case, seed);
        job.also_map.clone_from(&pages);
        let next = match before {
            [] => pool.run_fresh(&job)?.into_iter().next(),
            before => pool.run_after(before, &job)?,
        };
        let Some(next) = next else { break };
        (now, arena) = (next.verdict, next.arena);
    }
    let gap_pages = pages.len() as u32;
    let settled = if now.is_pass() || pages.is_empty() { now } else { verdict_after(now, verdict.clone()) };
    Ok(Settled { verdict: settled, gap_pages })
}

/// The last run decides, unless it only shows the damage of the reads that came before: then the first address is the evidence.
fn verdict_after(now: Verdict, first: Verdict) -> Verdict {
    match now {
        Verdict::Fault(_) | Verdict::Hang { .. } | Verdict::Crash { .. } => now,
        Verdict::Wrong(_) | Verdict::Pass { .. } | Verdict::Refused { .. } | Verdict::Skipped { .. } => first,
    }
}

/// A read that an operand allows, and the operand around it.
struct Allowed {
    address: u64,
    first: u64,
    last: u64,
    /// Extent and distance, bytes, of every dimension.
    steps: Vec<(i64, i64)>,
}

impl Allowed {
    /// The place, and those as many steps away from it as the dimensions whose step leaves out a page have.
    fn repeated(&self, page_bytes: u64) -> Vec<u64> {
        let mut all = vec![self.address];
        for &(extent, step) in self.steps.iter().filter(|(_, step)| step.unsigned_abs() > page_bytes) {
            let most = (GAP_PLACES / all.len().max(1) / 2) as i64;
            let reach = (extent - 1).min(most);
            let around = |at: &u64| (-reach..=reach).map(|n| at.wrapping_add_signed(n * step)).collect::<Vec<u64>>();
            all = all.iter().flat_map(around).filter(|at| (self.first..=self.last).contains(at)).collect();
        }
        all
    }
}

/// The place of a read inside the span of an operand that allows such reads.
fn harmless_place(pool: &Pool, case: &Case, verdict: &Verdict) -> Option<Allowed> {
    let Verdict::Fault(fault) = verdict else { return None };
    let hit = fault.hit.as_ref().filter(|h| matches!(h.place, Place::Gap | Place::Element))?;
    let operand = pool.problem().operand(&hit.operand)?;
    if fault.access != Some(Access::Read) || pool.problem().operands[operand].gaps != Gaps::Read {
        return None;
    }
    let instance = pool.problem().instance(case.clone()).ok()?;
    let view = instance.view(operand)?;
    let address = fault.address?;
    let base = address.wrapping_add_signed(-hit.from_base);
    Some(Allowed {
        address,
        first: base.wrapping_add_signed(view.lowest(hit.copy) * view.element_bytes),
        last: base.wrapping_add_signed((view.highest(hit.copy) + 1) * view.element_bytes - 1),
        steps: view.dims.iter().map(|d| (d.extent, d.stride * view.element_bytes)).collect(),
    })
}

/// What a bad verdict of a batch comes to when the case runs alone.
#[derive(Debug, Clone, PartialEq)]
pub enum Blame {
    /// Bad alone in fresh processes, `bad` of `runs` times.
    Alone { verdict: Verdict, bad: u32, runs: u32 },
    /// The case reads what it does not need inside an operand's span, and its result is right: a note.
    GapNote { pages: u32 },
    /// Answered past the time limit: slow, no hang. The limit of the run is longer from here on.
    Slow { took: Duration, limit: Duration },
    /// Passed alone, `alone` times of as many, and failed after what the worker ran before it.
    /// `before` are the cases to run first, each with its own pages.
    History { before: Vec<Case>, alone: u32 },
    /// Could not be made to fail again, alone or with its history, in `runs` runs; `is_cut`: the worker had run more than
    /// was replayed.
    Unreproduced { runs: u32, is_cut: bool },
}

/// Most runs of a case that fails only sometimes.
pub const MOST_RUNS: u32 = 20;

/// Runs a bad case alone in fresh processes, `confirm` times and more often unless all of them fail; replays its history
/// where it never fails alone. So a rare failure is not taken for one that needs what ran before it. Before that, the health
/// probe must pass. A hang has to hold when given longer, too ([`Pool::long_look`]).
///
/// # Errors
/// Where no verdict can be had any more, or the device is unhealthy.
pub fn blame(
    pool: &Pool,
    case: &Case,
    seed: u64,
    batch: &CaseResult,
    confirm: u32,
    rule: GapRule,
) -> Result<Blame, ProbeError> {
    pool.check_health()?;
    let mut first_bad: Option<Verdict> = None;
    let (mut bad, mut runs, mut passes) = (0, 0, 0);
    while runs < confirm || (bad < runs && runs < MOST_RUNS) {
        let limit = pool.limit();
        let hung = first_bad.is_none() && matches!(batch.verdict, Verdict::Hang { .. });
        let alone = if hung { pool.long_look(case, seed)? } else { pool.probe(case, seed, true)? };
        // About as slow as the limit or slower; one that is far faster hangs only sometimes.
        if hung && !alone.verdict.is_bad() && alone.took > limit / 2 {
            pool.raise_limit();
            return Ok(Blame::Slow { took: alone.took, limit: pool.limit() });
        }
        let settled = settle_gap(pool, case, seed, &alone, rule)?;
        if settled.gap_pages > 0 && settled.verdict.is_pass() && first_bad.is_none() {
            return Ok(Blame::GapNote { pages: settled.gap_pages });
        }
        runs += 1;
        passes += u32::from(settled.verdict.is_pass());
        let same = match (&first_bad, Signature::of(&settled.verdict)) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(first), Some(s)) => Signature::of(first).is_some_and(|f| f.matches(&s)),
        };
        if same {
            bad += 1;
            first_bad.get_or_insert(settled.verdict);
        }
    }
    if let Some(verdict) = first_bad {
        return Ok(Blame::Alone { verdict, bad, runs });
    }
    // What is refused or skipped alone is no control.
    let replayed = if passes == runs { replay(pool, case, seed, batch, rule)? } else { None };
    Ok(match replayed {
        Some(before) => Blame::History { before, alone: runs },
        None => Blame::Unreproduced { runs, is_cut: batch.history.is_cut },
    })
}

/// Runs what the worker had run before, then the case, each with its own pages; tries the last line, the last two, four, ...
/// The cases run before, where the case is bad again.
fn replay(
    pool: &Pool,
    case: &Case,
    seed: u64,
    batch: &CaseResult,
    rule: GapRule,
) -> Result<Option<Vec<Case>>, ProbeError> {
    let all = &batch.history.lines;
    let mut length = 1;
    while length / 2 < all.len() {
        let before = cases_of(pool, &all[all.len().saturating_sub(length)..]);
        if history::run(pool, &before, case, seed, rule)?.is_some_and(|r| r.verdict.is_bad()) {
            return Ok(Some(before));
        }
        length *= 2;
    }
    Ok(None)
}

/// The launches of lines, in their order.
fn cases_of(pool: &Pool, lines: &[Arc<LayoutLine>]) -> Vec<Case> {
    let run = lines.iter().flat_map(|l| l.run.iter().filter_map(|id| l.cases.iter().find(|w| w.id == *id)));
    run.filter_map(|w| w.case(pool.problem()).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_between_two_rows_is_repeated_between_the_others_and_not_outside() {
        let row = 1 << 20;
        let place =
            Allowed { address: 10 * row + 5000, first: 8 * row, last: 13 * row, steps: vec![(9, 4), (6, row as i64)] };
        let all = place.repeated(4096);
        assert_eq!(all, [8, 9, 10, 11, 12].map(|n| n * row + 5000));
        let many = Allowed { steps: vec![(1 << 40, row as i64), (1 << 40, 1 << 30)], last: u64::MAX / 2, ..place };
        let all = many.repeated(4096);
        assert!(all.len() <= GAP_PLACES + 1 && all.contains(&many.address));
    }
}
