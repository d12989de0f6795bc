//! What a hunt writes down on its way, so that a later run can go on with it.

use super::{Campaign, CampaignError, Found, Look, state};
use crate::exec::{Signature, Verdict};
use crate::finding::store::{Answer, Counted, Line, Round, Spent};
use crate::problem::{Case, Problem};
use std::sync::atomic::Ordering;

impl Campaign<'_> {
    /// Writes down that a round is complete.
    pub(super) fn log_round(&mut self, round: u64, answers: Vec<Answer>) -> Result<(), CampaignError> {
        self.save_counts()?;
        let c = &self.pool.counters;
        let spent = Spent {
            seconds: self.seconds(),
            processes: c.processes.load(Ordering::Relaxed),
            remapped: c.remapped.load(Ordering::Relaxed),
            stretch: self.pool.stretch(),
        };
        let (answers, runs) = Round::pack(answers);
        let (cases, verdicts) = self.state.digests.short();
        self.store.log(&Line::Round(&Round { round, answers, runs, cases, verdicts, spent }))?;
        self.store.check()?;
        Ok(())
    }

    /// Writes down what became of a bad case. One that was cut short is settled by the run that goes on with the hunt,
    /// unless it belongs to a finding already.
    pub(super) fn log_settled(
        &mut self,
        id: u64,
        look: Look,
        of: &Result<Option<Found>, CampaignError>,
    ) -> Result<(), CampaignError> {
        let effects = std::mem::take(&mut self.state.counts.fresh);
        if (look != Look::Never && of.is_ok()) || state::found(&effects).is_some() {
            self.store.log(&Line::Settled { case: id, effects: &effects })?;
            self.state.counts.settle(id, &effects, false);
        }
        Ok(())
    }

    /// Has the store count what it has not counted yet.
    pub(super) fn save_counts(&mut self) -> Result<(), CampaignError> {
        let unsaved = std::mem::take(&mut self.state.counts.unsaved);
        if !unsaved.is_empty() {
            let counted = Counted { hunt: self.options.hunt.clone(), below: self.state.counts.settled };
            self.store.count(&unsaved, counted)?;
        }
        Ok(())
    }
}

/// The line of a case that failed.
pub(super) fn bad_line<'a>(
    problem: &Problem,
    id: u64,
    case: &'a Case,
    verdict: &'a Verdict,
    signature: &Signature,
) -> Line<'a> {
    Line::Bad {
        case: id,
        params: problem.show(&case.params).into_iter().collect(),
        knobs: &case.knobs,
        placement: case.placement.to_string(),
        verdict: verdict.word(),
        signature: signature.to_string(),
    }
}
