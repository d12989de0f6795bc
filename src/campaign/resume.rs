//! Going on with a hunt: its completed rounds are gone through again by what the journal says of them; nothing is run.

use super::Campaign;
use super::state::{Begun, Numbered, found};
use crate::exec::{ProbeError, Verdict};
use crate::finding::store::{Answer, Effect, Line, Past, Record, Round, Spent, StoreError};
use crate::report::event::Event;
use crate::search::Outcome;
use std::sync::atomic::Ordering;

/// Why a hunt cannot be gone on with.
#[derive(Debug, thiserror::Error)]
pub enum NotResumed {
    /// One sentence that says what to change.
    #[error("{0}")]
    Text(String),
    #[error(transparent)]
    Probe(#[from] ProbeError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("failed to read the journal: make it readable, or leave out --resume ({0})")]
    Journal(#[from] std::io::Error),
}

/// A round as the journal has it, not yet gone through, and what is settled of it.
#[derive(Debug, Default)]
struct Held {
    round: Option<Round>,
    settled: Vec<(u64, Vec<Effect>)>,
    begun: Begun,
}

impl Campaign<'_> {
    /// Goes through what the journal holds of the hunt, and is then where the hunt was after its last complete round.
    ///
    /// # Errors
    /// Where the journal does not belong to this hunt as it is now, or an interruption.
    pub fn resume(&mut self, past: &Past) -> Result<(), NotResumed> {
        let mut held = Held::default();
        for record in past.records()? {
            self.read(record?, &mut held)?;
        }
        self.last(held)?;
        self.store.cut(past)?;
        let (pid, round, case) = (std::process::id(), self.state.round, self.next_case());
        self.store.log_durably(&Line::Resume { pid, round, case })?;
        let counts = &self.state.counts;
        let (findings, known) = (counts.findings.clone(), counts.known.clone());
        let (tally, seconds) = (self.state.tally.clone(), self.state.before.seconds);
        self.reporter.event(&Event::Resumed { tally, seconds, findings, known });
        Ok(())
    }

    /// Number of the first case of the round that comes next.
    fn next_case(&self) -> u64 {
        self.options.shard.number(self.state.tally.all())
    }

    fn read(&mut self, record: Record, held: &mut Held) -> Result<(), NotResumed> {
        match record {
            Record::Start(_) | Record::Other => return Ok(()),
            // The end of the round was left out, for the sake of --cases, and is run now.
            Record::Resume { round } if held.round.as_ref().is_some_and(|r| r.round == round) => {
                if let Some(round) = held.round.take() {
                    self.spend(&round.spent);
                }
                return Ok(());
            }
            // Every other line is about a later round than the one that is held.
            _ => self.complete(held)?,
        }
        match record {
            Record::Bad { case } => {
                held.begun.bad.insert(case);
            }
            Record::Filing { case, finding, effects } => held.begun.filing = Some((case, finding, effects)),
            Record::Settled { case, effects } => held.settled.push((case, effects)),
            Record::Round(round) => held.round = Some(round),
            Record::Start(_) | Record::Resume { .. } | Record::Other => {}
        }
        Ok(())
    }

    /// Goes through the round that is held, if one is: a later one follows it.
    fn complete(&mut self, held: &mut Held) -> Result<(), NotResumed> {
        let Some(round) = held.round.take() else { return Ok(()) };
        let held = std::mem::take(held);
        self.take_settled(&held.settled);
        self.replay(&round)
    }

    /// The last round of the journal: complete, or to be run again for the sake of cases that are not in it.
    fn last(&mut self, held: Held) -> Result<(), NotResumed> {
        self.take_settled(&held.settled);
        let of = held.settled.iter().find_map(|(_, effects)| found(effects));
        if let Some(round) = &held.round {
            if round.round != self.state.round {
                return Err(damaged(round.round));
            }
            let have = round.count().ok_or_else(|| damaged(round.round))?;
            let planned: u64 = self.plan(round.round).iter().map(|(_, cases)| cases.len() as u64).sum();
            if have > planned {
                return Err(too_short());
            }
            if have == planned {
                self.state.found = of;
                return self.replay(round);
            }
            // A larger --cases: the end of this round was left out.
            self.spend(&round.spent);
        }
        let settled = held.settled.into_iter().map(|(case, _)| case).collect();
        self.state.begun = Begun { settled, found: of, ..held.begun };
        Ok(())
    }

    /// Takes what is settled.
    fn take_settled(&mut self, settled: &[(u64, Vec<Effect>)]) {
        let counted = self.store.counted(&self.options.hunt);
        for (case, effects) in settled {
            effects.iter().for_each(|e| self.state.counts.apply(e));
            self.state.counts.settle(*case, effects, *case < counted);
        }
    }

    /// Takes the answers of a complete round as if its cases had run.
    fn replay(&mut self, round: &Round) -> Result<(), NotResumed> {
        self.pool.check()?;
        if round.round != self.state.round {
            return Err(damaged(round.round));
        }
        let planned = self.plan(round.round);
        let cases: Vec<_> = planned.iter().flat_map(|(_, cases)| cases).collect();
        match round.count() {
            Some(have) if have == cases.len() as u64 => {}
            Some(have) if have > cases.len() as u64 && self.options.cases.is_some() => return Err(too_short()),
            _ => return Err(damaged(round.round)),
        }
        let mut outcomes = vec![];
        for (numbered, answer) in cases.into_iter().zip(round.iter()) {
            self.state.record(self.pool.problem(), numbered, answer);
            outcomes.push(outcome(numbered, answer).ok_or_else(|| damaged(round.round))?);
        }
        let (case_sum, verdict_sum) = self.state.digests.short();
        if case_sum != round.cases {
            return Err(NotResumed::Text(format!(
                "round {} has other cases now than in the journal: go on with the version of shrinkfault that began the \
                 hunt, or leave out --resume",
                round.round
            )));
        }
        if verdict_sum != round.verdicts {
            return Err(damaged(round.round));
        }
        self.generator.fold(outcomes);
        self.state.round += 1;
        self.spend(&round.spent);
        Ok(())
    }

    /// Takes what the hunt had used by the end of a round.
    fn spend(&mut self, spent: &Spent) {
        let (c, before) = (&self.pool.counters, std::mem::replace(&mut self.state.before, *spent));
        c.processes.fetch_add(spent.processes.saturating_sub(before.processes), Ordering::Relaxed);
        c.remapped.fetch_add(spent.remapped.saturating_sub(before.remapped), Ordering::Relaxed);
        self.pool.set_stretch(spent.stretch);
    }
}

fn too_short() -> NotResumed {
    let text =
        "the hunt has run more cases already than --cases allows; give it at least as many as before, or --time alone";
    NotResumed::Text(text.to_owned())
}

fn damaged(round: u64) -> NotResumed {
    NotResumed::Text(format!(
        "round {round} of the journal does not fit together: it was edited or damaged; leave out --resume to begin another hunt"
    ))
}

/// As the round had it.
fn outcome(numbered: &Numbered, answer: &Answer) -> Option<Outcome> {
    Some(Outcome {
        number: numbered.id,
        case: numbered.planned.case.clone(),
        verdict: Verdict::known_word(&answer.verdict)?,
        kernel: answer.kernel.clone(),
        place: answer.signature.as_ref().and_then(|s| s.place),
    })
}
