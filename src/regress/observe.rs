//! Running a finding's own cases, each time in a fresh process.

use super::outcome::Seen;
use crate::device::Access;
use crate::exec::blame::{GapRule, settle_gap};
use crate::exec::history;
use crate::exec::pool::Pool;
use crate::exec::{Family, Place, ProbeError, Signature, Verdict};
use crate::finding::Facts;
use crate::problem::Case;
use crate::shrink::Rate;
use std::collections::HashSet;

/// Runs cases under the conditions of one finding and counts what comes of them.
#[derive(Debug)]
pub struct Watch<'a> {
    pool: &'a Pool,
    facts: &'a Facts,
    rule: GapRule,
    /// Runs of a case that fails.
    confirm: u32,
    /// Passes of a case that fails at the finding's rate before it counts as passing.
    rare: u32,
    /// The device passed its health check after the first failure.
    healthy: bool,
    /// Cases whose silence was given longer.
    patient: HashSet<Case>,
    /// The first failure in the finding's way.
    pub verdict: Option<Verdict>,
}

/// One run, as far as it concerns the finding.
enum Ran {
    Verdict(Verdict),
    /// Passed, and proves nothing.
    Nothing(String),
}

impl<'a> Watch<'a> {
    pub fn new(pool: &'a Pool, facts: &'a Facts, confirm: u32, rule: GapRule) -> Watch<'a> {
        let bad = facts.confirmation.bad;
        Watch {
            pool,
            facts,
            rule,
            confirm,
            rare: Rate::of(bad.failed, bad.runs).repeats(),
            healthy: false,
            patient: HashSet::new(),
            verdict: None,
        }
    }

    pub fn facts(&self) -> &'a Facts {
        self.facts
    }

    /// Passes in a row that count as a pass where it matters.
    pub fn needed(&self) -> u32 {
        self.confirm.max(self.rare)
    }

    /// Runs a case until it is certain what it says.
    ///
    /// # Errors
    /// Where no verdict can be had any more, or the device is unhealthy.
    pub fn watch(&mut self, case: &Case) -> Result<Seen, ProbeError> {
        self.until(case, self.confirm, self.needed())
    }

    /// Runs a case as often as it takes on the way to somewhere else: one failure is enough. How many passes it takes
    /// is the second.
    ///
    /// # Errors
    /// As [`watch`](Self::watch).
    pub fn look(&mut self, case: &Case) -> Result<(Seen, u32), ProbeError> {
        Ok((self.until(case, 1, self.rare)?, self.rare))
    }

    /// Runs a case without the cases that have to run before it.
    ///
    /// # Errors
    /// As [`watch`](Self::watch).
    pub fn alone(&mut self, case: &Case) -> Result<Seen, ProbeError> {
        let mut seen = Seen::default();
        while seen.nothing.is_none() && seen.runs < self.needed() && seen.same + seen.other == 0 {
            let result = history::run(self.pool, &[], case, self.facts.seed, self.rule)?;
            let ran = result.map_or_else(|| Ran::Nothing("no verdict".to_owned()), |r| Ran::Verdict(r.verdict));
            self.count(&mut seen, ran)?;
        }
        Ok(seen)
    }

    fn until(&mut self, case: &Case, failures: u32, passes: u32) -> Result<Seen, ProbeError> {
        let mut seen = Seen::default();
        if let Err(e) = self.pool.problem().check(&case.params) {
            seen.nothing = Some(format!("no case of this target: {e}"));
            return Ok(seen);
        }
        while seen.nothing.is_none() && seen.runs < if seen.same + seen.other > 0 { failures } else { passes } {
            let ran = self.once(case)?;
            self.count(&mut seen, ran)?;
        }
        Ok(seen)
    }

    fn count(&mut self, seen: &mut Seen, ran: Ran) -> Result<(), ProbeError> {
        seen.runs += 1;
        let verdict = match ran {
            Ran::Nothing(why) => {
                seen.nothing = Some(why);
                return Ok(());
            }
            Ran::Verdict(verdict) => verdict,
        };
        match Signature::of(&verdict) {
            Some(signature) => {
                if !self.healthy {
                    self.pool.check_health()?;
                    self.healthy = true;
                }
                if self.facts.signature.matches(&signature) {
                    seen.same += 1;
                    self.verdict.get_or_insert(verdict);
                } else {
                    seen.other += 1;
                    seen.otherwise.get_or_insert(words(&verdict, &signature));
                }
            }
            None if verdict.is_witness_pass() => seen.passes += 1,
            None => seen.nothing = Some(silence(&verdict)),
        }
        Ok(())
    }

    fn once(&mut self, case: &Case) -> Result<Ran, ProbeError> {
        let (pool, seed) = (self.pool, self.facts.seed);
        if self.facts.history.is_some() {
            let before = self.facts.before(case);
            if let Some(why) = history::declined(pool, &before, seed)? {
                return Ok(Ran::Nothing(why));
            }
            let result = history::run(pool, &before, case, seed, self.rule)?;
            let died = || Verdict::Crash { how: history::LOST.to_owned(), code: None };
            return Ok(Ran::Verdict(result.map_or_else(died, |r| r.verdict)));
        }
        let hangs = self.facts.signature.family == Family::Hang && !self.patient.contains(case);
        let mut result = if hangs { self.look_long(case)? } else { pool.probe(case, seed, true)? };
        if matches!(result.verdict, Verdict::Hang { .. }) && !self.patient.contains(case) {
            result = self.look_long(case)?;
        }
        let settled = settle_gap(pool, case, seed, &result, self.rule)?;
        let signature = &self.facts.signature;
        let is_gap_read = signature.place == Some(Place::Gap) && signature.access == Some(Access::Read);
        if is_gap_read && settled.gap_pages > 0 && settled.verdict.is_pass() {
            let why = "it reads between rows and its result is right, which only --strict-gaps calls a failure";
            return Ok(Ran::Nothing(why.to_owned()));
        }
        Ok(Ran::Verdict(settled.verdict))
    }

    /// Silence is told from slowness, once for every case.
    fn look_long(&mut self, case: &Case) -> Result<crate::exec::job::CaseResult, ProbeError> {
        let limit = self.pool.limit();
        let result = self.pool.long_look(case, self.facts.seed)?;
        match result.verdict {
            Verdict::Hang { .. } => drop(self.patient.insert(case.clone())),
            _ if result.took > limit / 2 => self.pool.raise_limit(),
            _ => {}
        }
        Ok(result)
    }
}

/// How a case fails, in words.
fn words(verdict: &Verdict, signature: &Signature) -> String {
    match verdict {
        Verdict::Fault(_) | Verdict::Wrong(_) => format!("{} ({signature})", verdict.word()),
        Verdict::Crash { how, .. } => format!("crash ({how})"),
        other => other.word().to_owned(),
    }
}

/// Why a verdict that is no failure says nothing.
fn silence(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Refused { detail } | Verdict::Skipped { detail, .. } => format!("{}: {detail}", verdict.word()),
        Verdict::Pass { sample: Some(s) } => {
            format!("passed, but only {} of {} work-groups ran, without the extreme offsets", s.groups, s.of)
        }
        other => other.word().to_owned(),
    }
}
