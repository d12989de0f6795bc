//! A hunt: rounds of cases on a pool, and what becomes of the bad ones.
//!
//! A round depends only on the seed, the corpus and the results of completed rounds folded by case number; so the list of
//! cases and their verdicts is the same for any number of workers.

mod digest;
pub mod facts;
pub mod history;
mod log;
mod resume;
mod settle;
mod shown;
pub mod slips;
mod state;

pub use resume::NotResumed;
pub use shown::{shown, slow, too_rare};
pub use state::State;

use crate::exec::blame::GapRule;
use crate::exec::job::{CaseResult, Job};
use crate::exec::pool::Pool;
use crate::exec::{ProbeError, Signature};
use crate::finding::store::{Answer, Effect, Filed, Line, NotFiled, StoreError};
use crate::finding::{Environment, Finding, Known, Store};
use crate::problem::{Case, Narrow, Problem};
use crate::report::event::{Event, FindingSummary, Phase, Reporter, Summary};
use crate::search::{Generator, Outcome, Shard};
use crate::target::TargetSpec;
use state::{Begun, Numbered};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// How a hunt goes about it.
#[derive(Debug, Clone)]
pub struct Options {
    /// Names the hunt among those of its folder.
    pub hunt: String,
    /// Cases after which the hunt ends.
    pub cases: Option<u64>,
    /// The part of the campaign that this hunt is; its generator has the same.
    pub shard: Shard,
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
    /// Groups of cases that run before those that failed are looked into; a round has more. Few where a failure is dear.
    pub stretch: usize,
    /// Ask compute-sanitizer about faults of a GPU.
    pub sanitizer: bool,
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

/// What a bad case turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    New,
    Known,
}

/// What came of a round so far.
#[derive(Default)]
struct Ran {
    /// The first finding that it came upon.
    found: Option<Found>,
    outcomes: Vec<Outcome>,
    answers: Vec<Answer>,
}

/// Whether a bad case is looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Into,
    /// The hunt ends at its first finding, and this case comes after it.
    PastFirst,
    /// Nobody can run a case any more.
    Never,
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
        let summary = self.summary(ended, error.is_none());
        let (cases, new) = (summary.tally.all(), summary.findings.len() as u64);
        // Also of a run that was cut short.
        let unwritten = self.store.log(&Line::End { cases, new, ended: &summary.ended }).err();
        let error = error.or_else(|| unwritten.map(Into::into));
        self.reporter.event(&Event::Finished { summary: Box::new(summary.clone()) });
        (summary, error)
    }

    fn rounds(&mut self) -> Result<String, CampaignError> {
        let mut found = self.state.found;
        for number in self.state.round.. {
            match found {
                Some(Found::New) if !self.options.keep_going => {
                    return Ok("stopped at the first finding (--keep-going goes on)".to_owned());
                }
                Some(Found::Known) if !self.options.keep_going => {
                    return Ok("stopped at the first finding, which is known (--keep-going goes on)".to_owned());
                }
                _ => {}
            }
            if self.options.cases.is_some_and(|n| self.state.tally.all() >= n) {
                break;
            }
            self.pool.check()?;
            found = self.round(number)?;
        }
        Ok(format!("all {} cases ran", self.state.tally.all()))
    }

    /// One round; the first finding that it came upon.
    fn round(&mut self, number: u64) -> Result<Option<Found>, CampaignError> {
        let planned = self.plan(number);
        if let (Some(first), Some(last)) = (planned.first(), planned.last()) {
            let (first, last) = (first.1[0].id, last.1[last.1.len() - 1].id);
            self.store.log(&Line::Intent { first, last })?;
        }
        let begun = std::mem::take(&mut self.state.begun);
        let mut ran = Ran { found: begun.found, ..Ran::default() };
        for stretch in planned.chunks(self.options.stretch.max(1)) {
            if ran.found.is_some() && !self.options.keep_going {
                // The hunt ends here, and the rest of the round is not run.
                self.save_counts()?;
                return Ok(ran.found);
            }
            if let Err(e) = self.stretch(stretch, &begun, &mut ran) {
                self.save_counts()?;
                return Err(e);
            }
        }
        self.log_round(number, ran.answers)?;
        self.generator.fold(ran.outcomes);
        Ok(ran.found)
    }

    /// Runs some groups of a round, and looks into what failed.
    fn stretch(&mut self, planned: &[(u64, Vec<Numbered>)], begun: &Begun, ran: &mut Ran) -> Result<(), CampaignError> {
        let (results, error) = self.execute(&self.jobs(planned));
        let mut error = error.map(CampaignError::from);
        // After an error some cases have no result. Those that have one count, and those that failed are kept.
        for ((_, cases), results) in planned.iter().zip(results) {
            for (numbered, result) in cases.iter().zip(results) {
                let look = match (&error, ran.found) {
                    (Some(_), _) => Look::Never,
                    (None, Some(_)) if !self.options.keep_going => Look::PastFirst,
                    (None, _) => Look::Into,
                };
                let answer = Answer::new(&result.verdict, result.kernel.clone());
                self.state.record(self.pool.problem(), numbered, &answer);
                let (case, kernel) = (numbered.planned.case.clone(), result.kernel.clone());
                ran.outcomes.push(Outcome::new(numbered.id, case, &result.verdict, kernel));
                ran.answers.push(answer);
                match self.take(numbered, &result, look, begun) {
                    Ok(one) => ran.found = ran.found.or(one),
                    // Nobody can run a case any more, but those that failed still go to the journal.
                    Err(e) => error = error.or(Some(e)),
                }
            }
        }
        error.map_or(Ok(()), Err)
    }

    fn jobs(&self, planned: &[(u64, Vec<Numbered>)]) -> Vec<Job> {
        let job = |(layout, cases): &(u64, Vec<Numbered>)| Job {
            layout: *layout,
            cases: cases.iter().map(|n| (n.id, n.planned.case.clone())).collect(),
            seed: self.options.seed,
            also_map: vec![],
            patience: 1,
            repeat: self.options.repeat,
        };
        planned.iter().map(job).collect()
    }

    /// Numbers the cases of a round and leaves out what is past the budget.
    fn plan(&self, number: u64) -> Vec<(u64, Vec<Numbered>)> {
        let mut own = self.state.tally.all();
        let last = self.options.cases.unwrap_or(u64::MAX);
        let mut out = vec![];
        for group in self.generator.round(number) {
            let mut cases = vec![];
            for planned in group.cases {
                if own < last {
                    cases.push(Numbered { id: self.options.shard.number(own), planned, origin: group.origin });
                    own += 1;
                }
            }
            if !cases.is_empty() {
                out.push((group.number, cases));
            }
        }
        out
    }

    fn execute(&mut self, jobs: &[Job]) -> (Vec<Vec<CaseResult>>, Option<ProbeError>) {
        let (base, started, before) = (self.state.tally.clone(), self.started, self.state.before.seconds);
        let running = Mutex::new((base, &mut *self.reporter));
        let ended = self.pool.run(jobs, &|results: &[CaseResult]| {
            let Ok(mut running) = running.lock() else { return };
            results.iter().for_each(|r| running.0.add(&r.verdict));
            let tally = running.0.clone();
            let seconds = before + started.elapsed().as_secs_f64();
            running.1.event(&Event::Progress { phase: Phase::Searching, tally, seconds });
        });
        if let Ok((ran, _)) = running.into_inner() {
            self.state.ran = ran;
        }
        ended
    }

    /// Tells of one result, in case order, and settles it; the finding that it belongs to, if any. A bad case that is not to
    /// be settled is only written to the journal.
    fn take(
        &mut self,
        numbered: &Numbered,
        result: &CaseResult,
        look: Look,
        begun: &Begun,
    ) -> Result<Option<Found>, CampaignError> {
        let (id, case) = (numbered.id, &numbered.planned.case);
        if self.reporter.hears_cases() {
            self.reporter.event(&Event::Case {
                id,
                origin: numbered.origin.word().to_owned(),
                case: shown(self.pool.problem(), case),
                verdict: result.verdict.clone(),
                kernel: result.kernel.clone(),
            });
        }
        let Some(signature) = Signature::of(&result.verdict) else { return Ok(None) };
        if begun.settled.contains(&id) {
            return Ok(None);
        }
        let known = if look == Look::Into { settle::known(self, id, case, &signature) } else { None };
        // Of cases that are only counted there may be many.
        if known.is_none() && !begun.bad.contains(&id) {
            self.store.log(&log::bad_line(self.pool.problem(), id, case, &result.verdict, &signature))?;
        }
        let of = match (look, known) {
            (_, Some(name)) => self.again(id, case, &signature, name, begun).map(Some),
            (Look::Into, None) => settle::settle(self, id, case, result),
            (Look::PastFirst | Look::Never, None) => self.leave(id, case, &signature).map(|()| None),
        };
        self.log_settled(id, look, &of)?;
        self.store.check()?;
        of
    }

    /// A bad case that a finding knows: counted, unless the finding is of this case and was written just before this hunt
    /// was cut short.
    fn again(
        &mut self,
        id: u64,
        case: &Case,
        signature: &Signature,
        name: String,
        begun: &Begun,
    ) -> Result<Found, CampaignError> {
        let Some((_, _, effects)) = begun.filing.as_ref().filter(|f| f.0 == id && f.1 == name) else {
            return self.count_known(id, &name);
        };
        effects.iter().cloned().for_each(|e| self.state.counts.add(e));
        self.state.counts.add(Effect::New(name.clone()));
        self.store.remove_raw(&self.store.raw_path(self.pool.problem(), &self.target, case, signature))?;
        self.note(id, format!("was filed as {name} when the hunt was cut short"));
        Ok(Found::New)
    }

    /// Leaves a bad case as it is. The first of every kind can be shrunk by hand.
    fn leave(&mut self, id: u64, case: &Case, signature: &Signature) -> Result<(), CampaignError> {
        self.state.counts.add(Effect::NotShrunk);
        let kind = signature.to_string();
        if !self.state.counts.raw.contains(&kind) {
            let kept = self.store.save_raw(&self.problem, &self.target, case, signature)?;
            if let Filed::New(path) = kept {
                self.note(id, format!("{signature}: not looked into, kept as {}", path.display()));
            }
            self.state.counts.add(Effect::Raw(kind));
        }
        Ok(())
    }

    fn progress(&mut self, phase: Phase) {
        let (tally, seconds) = (self.state.ran.clone(), self.seconds());
        self.reporter.event(&Event::Progress { phase, tally, seconds });
    }

    /// Seconds of this hunt, over all its runs.
    fn seconds(&self) -> f64 {
        self.state.before.seconds + self.started.elapsed().as_secs_f64()
    }

    fn note(&mut self, id: u64, text: String) {
        self.reporter.event(&Event::Note { id, text });
    }

    /// Counts a bad case for a finding that exists.
    fn count_known(&mut self, id: u64, name: &str) -> Result<Found, CampaignError> {
        self.state.counts.add(Effect::Known(name.to_owned()));
        self.reporter.event(&Event::Known { id, finding: name.to_owned() });
        Ok(Found::Known)
    }

    /// Writes a finding, reports it, and knows it from now on. That it is about to be written is on the disk before, so
    /// that a run that goes on with this hunt can tell it from one that was there.
    fn file(&mut self, id: u64, finding: Finding, summary: FindingSummary) -> Result<Found, CampaignError> {
        let name = finding.name();
        if let Filed::Already(_) = self.store.place(&finding) {
            return self.count_known(id, &name);
        }
        let logged = {
            let effects = &self.state.counts.fresh;
            self.store.log_durably(&Line::Filing { case: id, finding: &name, effects })
        };
        // Whatever becomes of the journal, the finding itself comes first.
        let path = match self.store.file(&finding)? {
            Filed::New(path) => path,
            Filed::Already(_) => return self.count_known(id, &name),
        };
        self.state.counts.add(Effect::New(name.clone()));
        self.known.add(path.clone(), finding);
        self.reporter.event(&Event::Finding { name, path, summary: Box::new(summary) });
        logged?;
        Ok(Found::New)
    }

    fn summary(&self, ended: String, complete: bool) -> Summary {
        let c = &self.pool.counters;
        let (case_digest, verdict_digest) = self.state.digests.finish();
        Summary {
            tally: self.state.tally.clone(),
            seconds: self.seconds(),
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
            complete,
        }
    }
}
