//! A hunt: rounds of cases on a pool, and what becomes of the bad ones.
//!
//! A round depends only on the seed, the corpus and the results of completed rounds folded by case number; so the list of
//! cases and their verdicts is the same for any number of workers.

mod digest;
mod facts;
mod settle;
mod shown;

pub use shown::shown;

use crate::exec::ProbeError;
use crate::exec::blame::GapRule;
use crate::exec::job::{CaseResult, Job};
use crate::exec::pool::Pool;
use crate::exec::verdict::Verdict;
use crate::finding::{Environment, Finding, Known, Store, StoreError};
use crate::problem::{Case, Narrow};
use crate::report::event::{Event, Phase, Reporter, Summary, Tally};
use crate::search::coverage::Coverage;
use crate::search::{Generator, Origin, Outcome};
use crate::target::TargetSpec;
use digest::Digests;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// How a hunt goes about it.
#[derive(Debug, Clone)]
pub struct Options {
    /// Cases after which the hunt ends.
    pub cases: Option<u64>,
    pub keep_going: bool,
    /// Fresh runs that confirm a bad case.
    pub confirm: u32,
    /// Shrinks per signature before further cases are only counted.
    pub shrinks: u32,
    pub seed: u64,
    pub gap_rule: GapRule,
    /// `strided` or `packed`, for the record.
    pub profile: String,
    pub pins: Vec<Narrow>,
}

/// Why a hunt could not go on. What was found until then is in the store.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    #[error(transparent)]
    Probe(#[from] ProbeError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Everything a hunt works with.
pub struct Campaign<'a> {
    pub pool: &'a Pool,
    pub target: TargetSpec,
    pub generator: Generator,
    pub known: Known,
    pub store: Store,
    pub environment: Environment,
    pub options: Options,
    pub reporter: &'a mut (dyn Reporter + Send),
    started: Instant,
    tally: Tally,
    coverage: Coverage,
    digests: Digests,
    counts: Counts,
}

/// What became of bad cases.
#[derive(Debug, Default)]
struct Counts {
    known: BTreeMap<String, u64>,
    gap_notes: u64,
    not_shrunk: u64,
    unreproduced: u64,
    findings: Vec<String>,
    /// Shrinks so far, by signature as text.
    shrinks: BTreeMap<String, u32>,
}

/// One case of a round.
struct Planned {
    id: u64,
    case: Case,
    origin: Origin,
    can_be_silent: bool,
}

/// The parts that a hunt is made of.
pub struct Parts<'a> {
    pub pool: &'a Pool,
    pub target: TargetSpec,
    pub generator: Generator,
    pub known: Known,
    pub store: Store,
    pub environment: Environment,
    pub options: Options,
    pub reporter: &'a mut (dyn Reporter + Send),
    pub started: Instant,
}

impl<'a> Campaign<'a> {
    pub fn new(parts: Parts<'a>) -> Campaign<'a> {
        let coverage = Coverage::new(parts.pool.problem());
        Campaign {
            pool: parts.pool,
            target: parts.target,
            generator: parts.generator,
            known: parts.known,
            store: parts.store,
            environment: parts.environment,
            options: parts.options,
            reporter: parts.reporter,
            started: parts.started,
            tally: Tally::default(),
            coverage,
            digests: Digests::default(),
            counts: Counts::default(),
        }
    }

    /// Hunts until the budget is spent, the first new finding (unless told to keep going), or an interruption.
    ///
    /// The summary is complete in every case; an error beside it says why the hunt ended early.
    pub fn run(&mut self) -> (Summary, Option<CampaignError>) {
        let (ended, error) = match self.rounds() {
            Ok(ended) => (ended, None),
            Err(CampaignError::Probe(ProbeError::OutOfTime)) => ("the time is used up".to_owned(), None),
            Err(e) => (e.to_string(), Some(e)),
        };
        let summary = self.summary(ended);
        self.reporter.event(&Event::Finished { summary: Box::new(summary.clone()) });
        (summary, error)
    }

    fn rounds(&mut self) -> Result<String, CampaignError> {
        for number in 0.. {
            if self.options.cases.is_some_and(|n| self.tally.all() >= n) {
                break;
            }
            self.pool.check()?;
            if self.round(number)? && !self.options.keep_going {
                return Ok("stopped at the first new finding (--keep-going goes on)".to_owned());
            }
        }
        Ok(format!("all {} cases ran", self.tally.all()))
    }

    /// One round; whether it gave a new finding.
    fn round(&mut self, number: u64) -> Result<bool, CampaignError> {
        let planned = self.plan(number);
        let jobs: Vec<Job> = planned
            .iter()
            .map(|(layout, cases)| Job {
                layout: *layout,
                cases: cases.iter().map(|p| (p.id, p.case.clone())).collect(),
                seed: self.options.seed,
                also_map: vec![],
            })
            .collect();
        let (results, error) = self.execute(&jobs);
        let mut outcomes = vec![];
        let mut found = false;
        for ((_, cases), results) in planned.iter().zip(results) {
            let Some(results) = results else { break };
            for (p, r) in cases.iter().zip(results) {
                found |= self.take(p, r, found, &mut outcomes)?;
            }
        }
        self.generator.fold(outcomes);
        match error {
            Some(e) => Err(e.into()),
            None => Ok(found),
        }
    }

    /// Numbers the cases of a round and leaves out what is past the budget.
    fn plan(&self, number: u64) -> Vec<(u64, Vec<Planned>)> {
        let mut id = self.tally.all();
        let left = self.options.cases.map_or(u64::MAX, |n| n.saturating_sub(id));
        let last = id.saturating_add(left);
        let mut out = vec![];
        for group in self.generator.round(number) {
            let mut cases = vec![];
            for p in group.cases {
                if id < last {
                    cases.push(Planned { id, case: p.case, origin: group.origin, can_be_silent: p.can_be_silent });
                    id += 1;
                }
            }
            if !cases.is_empty() {
                out.push((group.number, cases));
            }
        }
        out
    }

    fn execute(&mut self, jobs: &[Job]) -> (Vec<Option<Vec<CaseResult>>>, Option<ProbeError>) {
        let (base, started) = (self.tally.clone(), self.started);
        let done = AtomicU64::new(0);
        let running = Mutex::new((base, &mut *self.reporter));
        self.pool.run(jobs, &|results: &[CaseResult]| {
            done.fetch_add(results.len() as u64, Ordering::Relaxed);
            let Ok(mut running) = running.lock() else { return };
            results.iter().for_each(|r| running.0.add(&r.verdict));
            let tally = running.0.clone();
            let seconds = started.elapsed().as_secs_f64();
            running.1.event(&Event::Progress { phase: Phase::Searching, tally, seconds });
        })
    }

    /// Takes one result in case order; whether it became a new finding. `found`: the round has one already.
    fn take(
        &mut self,
        planned: &Planned,
        result: CaseResult,
        found: bool,
        outcomes: &mut Vec<Outcome>,
    ) -> Result<bool, CampaignError> {
        let problem = self.pool.problem();
        self.tally.add(&result.verdict);
        self.digests.add(problem, planned.id, &planned.case, &result.verdict);
        self.coverage.add(problem, &planned.case, planned.origin, planned.can_be_silent, &result.verdict);
        self.reporter.event(&Event::Case {
            id: planned.id,
            origin: planned.origin.word().to_owned(),
            case: shown(problem, &planned.case),
            verdict: result.verdict.clone(),
            kernel: result.kernel.clone(),
        });
        let mut steady = true;
        let mut new = false;
        if result.verdict.is_bad() {
            self.store.log_bad(planned.id, problem, &planned.case, &result.verdict)?;
            if found && !self.options.keep_going {
                self.counts.not_shrunk += 1;
            } else {
                let settled = settle::settle(self, planned.id, &planned.case, &result)?;
                steady = settled.steady;
                new = settled.new_finding;
            }
        }
        let (verdict, kernel) = (&result.verdict, result.kernel.clone());
        outcomes.push(Outcome::new(planned.id, planned.case.clone(), verdict, kernel, steady));
        Ok(new)
    }

    fn progress(&mut self, phase: Phase) {
        let (tally, seconds) = (self.tally.clone(), self.started.elapsed().as_secs_f64());
        self.reporter.event(&Event::Progress { phase, tally, seconds });
    }

    fn note(&mut self, id: u64, text: String) {
        self.reporter.event(&Event::Note { id, text });
    }

    /// Counts a bad case for a finding that exists.
    fn count_known(&mut self, id: u64, name: &str) -> Result<(), CampaignError> {
        *self.counts.known.entry(name.to_owned()).or_default() += 1;
        self.store.count(name)?;
        self.reporter.event(&Event::Known { id, finding: name.to_owned() });
        Ok(())
    }

    /// Writes a finding, reports it, and knows it from now on.
    fn file(&mut self, finding: Finding, summary: crate::report::event::FindingSummary) -> Result<PathBuf, CampaignError> {
        let path = self.store.add(&finding)?;
        let name = finding.name();
        self.counts.findings.push(name.clone());
        self.known.add(path.clone(), finding);
        self.reporter.event(&Event::Finding { name, path: path.clone(), summary: Box::new(summary) });
        Ok(path)
    }

    fn summary(&self, ended: String) -> Summary {
        let c = &self.pool.counters;
        let (case_digest, verdict_digest) = self.digests.finish();
        Summary {
            tally: self.tally.clone(),
            seconds: self.started.elapsed().as_secs_f64(),
            processes: c.processes.load(Ordering::Relaxed),
            remapped: c.remapped.load(Ordering::Relaxed),
            coverage: self.coverage.clone(),
            gap_notes: self.counts.gap_notes,
            known: self.counts.known.clone(),
            not_shrunk: self.counts.not_shrunk,
            unreproduced: self.counts.unreproduced,
            findings: self.counts.findings.clone(),
            case_digest,
            verdict_digest,
            ended,
        }
    }
}

/// Whether a signature was shrunk often enough.
fn capped(counts: &Counts, signature: &str, cap: u32) -> bool {
    counts.shrinks.get(signature).is_some_and(|n| *n >= cap)
}

/// A verdict that stands for a finding has a signature; this is it.
fn is_bad(verdict: &Verdict) -> bool {
    verdict.is_bad()
}
