//! A hunt: rounds of cases on a pool, and what becomes of the bad ones.
//!
//! A round depends only on the seed, the corpus and the results of completed rounds folded by case number; so the list of
//! cases and their verdicts is the same for any number of workers.

mod digest;
pub mod facts;
pub mod history;
mod settle;
mod shown;
pub mod slips;

pub use shown::{shown, slow, too_rare};

use crate::exec::blame::GapRule;
use crate::exec::job::{CaseResult, Job};
use crate::exec::pool::Pool;
use crate::exec::{ProbeError, Signature, Verdict};
use crate::finding::store::{Filed, Line, NotFiled, StoreError};
use crate::finding::{Environment, Finding, Known, Store};
use crate::problem::{Case, Narrow, Problem};
use crate::report::event::{Event, FindingSummary, Phase, Reporter, Summary, Tally};
use crate::search::{Coverage, Generator, Origin, Outcome, Planned};
use crate::target::TargetSpec;
use digest::Digests;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
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
    /// Launches of every case, one after another in one process.
    pub repeat: u32,
    /// The user asked for one placement: minimal cases keep it.
    pub keep_placement: bool,
}

/// Why a hunt could not go on. What was found until then is in the store.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    #[error(transparent)]
    Probe(#[from] ProbeError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A finding that could not be written: its text is inside and must be printed.
    #[error(transparent)]
    NotFiled(#[from] NotFiled),
}

/// Everything a hunt works with.
pub struct Campaign<'a> {
    pub pool: &'a Pool,
    /// As the problem describes itself, without limits and pins: what findings are stated in.
    pub problem: Arc<Problem>,
    pub target: TargetSpec,
    pub generator: Generator,
    pub known: Known,
    pub store: Store,
    pub environment: Environment,
    pub options: Options,
    pub reporter: &'a mut (dyn Reporter + Send),
    pub started: Instant,
    pub state: State,
}

/// How far a hunt has come.
#[derive(Debug)]
pub struct State {
    tally: Tally,
    coverage: Coverage,
    digests: Digests,
    counts: Counts,
}

impl State {
    /// Of a hunt that has not begun.
    pub fn new(pool: &Pool) -> State {
        State {
            tally: Tally::default(),
            coverage: Coverage::new(pool.problem(), pool.hello().arena.page_bytes as i64),
            digests: Digests::default(),
            counts: Counts::default(),
        }
    }
}

/// What became of bad cases.
#[derive(Debug, Default)]
struct Counts {
    known: BTreeMap<String, u64>,
    /// Of these, what the store does not hold yet.
    unsaved: BTreeMap<String, u64>,
    gap_notes: u64,
    slow: u64,
    not_shrunk: u64,
    /// Signatures of which a case was saved without being looked into.
    raw: BTreeSet<String>,
    unreproduced: u64,
    findings: Vec<String>,
    /// Shrinks so far, by signature as text.
    shrinks: BTreeMap<String, u32>,
}

/// What a bad case turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    New,
    Known,
}

/// One case of a round.
struct Numbered {
    id: u64,
    planned: Planned,
    origin: Origin,
}

impl Campaign<'_> {
    /// Hunts until the budget is spent, the first new finding (unless told to keep going), or an interruption.
    ///
    /// The summary is complete in every case; an error beside it says why the hunt ended early.
    pub fn run(&mut self) -> (Summary, Option<CampaignError>) {
        let (ended, error) = match self.rounds() {
            Ok(ended) => (ended, None),
            Err(CampaignError::Probe(ProbeError::OutOfTime)) => ("the time is used up".to_owned(), None),
            Err(e) => (e.to_string(), Some(e)),
        };
        // Counts of the round that was cut short; an error here must not hide the first one.
        let error = error.or_else(|| self.save_counts().err());
        let summary = self.summary(ended);
        let (cases, new) = (summary.tally.all(), summary.findings.len() as u64);
        // Also of a run that was cut short.
        let unwritten = self.store.journal.write(&Line::End { cases, new }).err();
        let error = error.or_else(|| unwritten.map(Into::into));
        self.reporter.event(&Event::Finished { summary: Box::new(summary.clone()) });
        (summary, error)
    }

    fn rounds(&mut self) -> Result<String, CampaignError> {
        for number in 0.. {
            if self.options.cases.is_some_and(|n| self.state.tally.all() >= n) {
                break;
            }
            self.pool.check()?;
            match self.round(number)? {
                Some(Found::New) if !self.options.keep_going => {
                    return Ok("stopped at the first finding (--keep-going goes on)".to_owned());
                }
                Some(Found::Known) if !self.options.keep_going => {
                    return Ok("stopped at the first finding, which is known (--keep-going goes on)".to_owned());
                }
                _ => {}
            }
        }
        Ok(format!("all {} cases ran", self.state.tally.all()))
    }

    /// One round; the first finding that it came upon.
    fn round(&mut self, number: u64) -> Result<Option<Found>, CampaignError> {
        let planned = self.plan(number);
        let jobs: Vec<Job> = planned
            .iter()
            .map(|(layout, cases)| Job {
                layout: *layout,
                cases: cases.iter().map(|n| (n.id, n.planned.case.clone())).collect(),
                seed: self.options.seed,
                also_map: vec![],
                patience: 1,
                repeat: self.options.repeat,
            })
            .collect();
        if let (Some(first), Some(last)) = (jobs.first(), jobs.last()) {
            let (first, last) = (first.cases[0].0, last.cases[last.cases.len() - 1].0);
            self.store.journal.write(&Line::Intent { first, last })?;
        }
        let (results, error) = self.execute(&jobs);
        let mut error = error.map(CampaignError::from);
        let mut outcomes = vec![];
        let mut found = None;
        // After an error some cases have no result. Those that have one count, and those that failed are kept.
        for ((_, cases), results) in planned.iter().zip(results) {
            for (numbered, result) in cases.iter().zip(results) {
                let settle = error.is_none() && (found.is_none() || self.options.keep_going);
                match self.take(numbered, result, settle, &mut outcomes) {
                    Ok(one) => found = found.or(one),
                    // Nobody can run a case any more, but those that failed still go to the journal.
                    Err(e) => error = error.or(Some(e)),
                }
            }
        }
        self.generator.fold(outcomes);
        self.save_counts()?;
        match error {
            Some(e) => Err(e),
            None => Ok(found),
        }
    }

    /// Numbers the cases of a round and leaves out what is past the budget.
    fn plan(&self, number: u64) -> Vec<(u64, Vec<Numbered>)> {
        let mut id = self.state.tally.all();
        let left = self.options.cases.map_or(u64::MAX, |n| n.saturating_sub(id));
        let last = id.saturating_add(left);
        let mut out = vec![];
        for group in self.generator.round(number) {
            let mut cases = vec![];
            for planned in group.cases {
                if id < last {
                    cases.push(Numbered { id, planned, origin: group.origin });
                    id += 1;
                }
            }
            if !cases.is_empty() {
                out.push((group.number, cases));
            }
        }
        out
    }

    fn execute(&mut self, jobs: &[Job]) -> (Vec<Vec<CaseResult>>, Option<ProbeError>) {
        let (base, started) = (self.state.tally.clone(), self.started);
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

    /// Takes one result in case order; the finding that it belongs to, if any. A bad case that is not to be settled is only
    /// written to the journal.
    fn take(
        &mut self,
        numbered: &Numbered,
        result: CaseResult,
        settle: bool,
        outcomes: &mut Vec<Outcome>,
    ) -> Result<Option<Found>, CampaignError> {
        let Numbered { id, planned, origin } = numbered;
        let (id, case, problem) = (*id, &planned.case, self.pool.problem());
        self.state.tally.add(&result.verdict);
        self.state.digests.add(problem, id, case, &result.verdict);
        self.state.coverage.record(problem, planned, *origin, result.verdict.word());
        if self.reporter.hears_cases() {
            self.reporter.event(&Event::Case {
                id,
                origin: origin.word().to_owned(),
                case: shown(problem, case),
                verdict: result.verdict.clone(),
                kernel: result.kernel.clone(),
            });
        }
        let mut of = None;
        if let Some(signature) = Signature::of(&result.verdict) {
            self.store.journal.write(&bad_line(problem, id, case, &result.verdict, &signature))?;
            if settle {
                of = settle::settle(self, id, case, &result)?;
            } else {
                self.state.counts.not_shrunk += 1;
                // The first of every kind can be shrunk by hand.
                if self.state.counts.raw.insert(signature.to_string()) {
                    let kept = self.store.save_raw(&self.problem, &self.target, case, &signature)?;
                    if let Filed::New(path) = kept {
                        self.note(id, format!("{signature}: not looked into, kept as {}", path.display()));
                    }
                }
            }
        }
        outcomes.push(Outcome::new(id, case.clone(), &result.verdict, result.kernel));
        Ok(of)
    }

    fn progress(&mut self, phase: Phase) {
        let (tally, seconds) = (self.state.tally.clone(), self.started.elapsed().as_secs_f64());
        self.reporter.event(&Event::Progress { phase, tally, seconds });
    }

    fn note(&mut self, id: u64, text: String) {
        self.reporter.event(&Event::Note { id, text });
    }

    /// Counts a bad case for a finding that exists.
    fn count_known(&mut self, id: u64, name: &str) -> Result<Found, CampaignError> {
        *self.state.counts.known.entry(name.to_owned()).or_default() += 1;
        *self.state.counts.unsaved.entry(name.to_owned()).or_default() += 1;
        self.store.journal.write(&Line::Finding { name, new: false })?;
        self.reporter.event(&Event::Known { id, finding: name.to_owned() });
        Ok(Found::Known)
    }

    fn save_counts(&mut self) -> Result<(), CampaignError> {
        for (name, times) in std::mem::take(&mut self.state.counts.unsaved) {
            self.store.counts.add(&name, times)?;
        }
        Ok(())
    }

    /// Writes a finding, reports it, and knows it from now on.
    fn file(&mut self, id: u64, finding: Finding, summary: FindingSummary) -> Result<Found, CampaignError> {
        let name = finding.name();
        let path = match self.store.file(&finding)? {
            Filed::New(path) => path,
            Filed::Already(_) => {
                return self.count_known(id, &name);
            }
        };
        self.store.journal.write(&Line::Finding { name: &name, new: true })?;
        self.state.counts.findings.push(name.clone());
        self.known.add(path.clone(), finding);
        self.reporter.event(&Event::Finding { name, path, summary: Box::new(summary) });
        Ok(Found::New)
    }

    fn summary(&self, ended: String) -> Summary {
        let c = &self.pool.counters;
        let (case_digest, verdict_digest) = self.state.digests.finish();
        Summary {
            tally: self.state.tally.clone(),
            seconds: self.started.elapsed().as_secs_f64(),
            processes: c.processes.load(Ordering::Relaxed),
            remapped: c.remapped.load(Ordering::Relaxed),
            coverage: self.state.coverage.clone(),
            gap_notes: self.state.counts.gap_notes,
            slow: self.state.counts.slow,
            known: self.state.counts.known.clone(),
            not_shrunk: self.state.counts.not_shrunk,
            unreproduced: self.state.counts.unreproduced,
            findings: self.state.counts.findings.clone(),
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

fn bad_line<'a>(problem: &Problem, id: u64, case: &'a Case, verdict: &'a Verdict, signature: &Signature) -> Line<'a> {
    Line::Bad {
        case: id,
        params: problem.show(&case.params).into_iter().collect(),
        knobs: &case.knobs,
        placement: case.placement.to_string(),
        verdict: verdict.word(),
        signature: signature.to_string(),
    }
}
