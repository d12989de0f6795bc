//! What becomes of one bad case: known, harmless, not reproduced, or shrunk to a finding.

use super::history::{self, Looked, Suspect};
use super::{Campaign, CampaignError, Found, facts, shown, slips, slow, too_rare};
use crate::exec;
use crate::exec::blame::{Blame, blame};
use crate::exec::job::CaseResult;
use crate::exec::pool::Pool;
use crate::exec::prober::PoolProber;
use crate::exec::{ProbeError, Signature, ranks, sanitizer};
use crate::finding::Finding;
use crate::finding::known::By;
use crate::finding::store::Effect;
use crate::problem::contents::mix;
use crate::problem::{Case, Problem};
use crate::report::event::{Event, Phase, Reporter, Tally};
use crate::shrink::{self, NotShrunk, ShrinkEvent, Shrunk};
use std::sync::Arc;
use std::time::Instant;

/// One in so many cases that lie past the lines of a known finding is looked into all the same.
const SAMPLE: u64 = 20;

/// Profiles, as findings name them.
const STRIDED: &str = "strided";
const PACKED: &str = "packed";

/// Settles a bad case that no finding knows; the finding that it belongs to, if any.
///
/// # Errors
/// Where no verdict can be had any more, or the store cannot be written.
pub fn settle(c: &mut Campaign<'_>, id: u64, case: &Case, result: &CaseResult) -> Result<Option<Found>, CampaignError> {
    let Some(signature) = Signature::of(&result.verdict) else { return Ok(None) };
    if c.state.counts.capped(&signature.to_string(), c.options.shrinks) {
        c.state.counts.add(Effect::NotShrunk);
        return Ok(None);
    }
    c.progress(Phase::Confirming);
    match blame(c.pool, case, c.options.seed, result, c.options.confirm, c.options.gap_rule)? {
        Blame::Alone { verdict, bad, runs } => {
            let signature = Signature::of(&verdict);
            c.reporter.event(&Event::Confirmed {
                id,
                verdict: verdict.clone(),
                signature: signature.clone(),
                bad,
                runs,
            });
            match signature {
                None => Ok(None),
                Some(s) => alone(c, id, case, &s),
            }
        }
        Blame::GapNote { pages } => {
            c.state.counts.add(Effect::GapNote);
            c.note(id, format!("reads {pages} pages between rows, which this operand allows, and its result is right"));
            Ok(None)
        }
        Blame::Slow { took, limit } => {
            c.state.counts.add(Effect::Slow);
            c.note(id, slow(took, limit));
            Ok(None)
        }
        Blame::History { before, alone } => needs_others(c, id, case, &before, alone),
        Blame::Unreproduced { runs, is_cut } => {
            c.state.counts.add(Effect::Unreproduced);
            let kept = if is_cut { "; its worker had run more, longer ago" } else { "" };
            c.note(id, format!("passed {runs} of {runs} times alone, and after what ran before it{kept}"));
            Ok(None)
        }
    }
}

/// The known finding that a case is counted for without running it again.
pub(super) fn known(c: &Campaign<'_>, id: u64, case: &Case, signature: &Signature) -> Option<String> {
    let found = c.known.matching(c.pool.problem(), &c.target, case, signature)?;
    let sampled = found.by == By::PastLines && mix(c.options.seed, id).is_multiple_of(SAMPLE);
    (!sampled).then_some(found.name)
}

/// A case that fails alone: shrinks it, unless that was done often enough, and files what is new.
fn alone(c: &mut Campaign<'_>, id: u64, case: &Case, signature: &Signature) -> Result<Option<Found>, CampaignError> {
    let problem = Arc::clone(c.pool.problem());
    if let Some(found) = c.known.matching(&problem, &c.target, case, signature).filter(|m| m.by == By::OwnCase) {
        return c.count_known(id, &found.name).map(Some);
    }
    let key = signature.to_string();
    if c.state.counts.capped(&key, c.options.shrinks) {
        c.state.counts.add(Effect::NotShrunk);
        return Ok(None);
    }
    c.state.counts.add(Effect::Shrunk(key));
    c.reporter.event(&Event::Shrinking { id, case: shown(&problem, case) });
    // The case is confirmed: whatever ends the run now, a kill included, finds it kept.
    let kept = c.store.save_raw(&problem, &c.target, case, signature)?;
    let settled = shrink_and_file(c, id, case, signature)?;
    if settled.is_some() {
        c.store.remove_raw(kept.path())?;
    }
    Ok(settled)
}

/// Shrinks a confirmed case and files what came of it.
fn shrink_and_file(
    c: &mut Campaign<'_>,
    id: u64,
    case: &Case,
    signature: &Signature,
) -> Result<Option<Found>, CampaignError> {
    let problem = Arc::clone(c.pool.problem());
    let shrunk = match shrink_case(c, id, case, signature) {
        Ok(s) => s,
        Err(NotShrunk::Probe(e)) => return Err(e.into()),
        Err(other) => {
            c.state.counts.add(Effect::Unreproduced);
            c.note(id, other.to_string());
            return Ok(None);
        }
    };
    if shrunk.stopped.is_none() {
        c.pool.check_health()?;
    }
    slips::keep(c.pool, &c.store, &problem, &c.target, &shrunk, c.options.seed)?;
    let stopped = shrunk.stopped.clone();
    if let Some(e) = stopped.clone().filter(|_| shrunk.confirmed.bad == 0) {
        // No run in a fresh process says that the smallest case so far fails: the case as found is what is kept.
        return Err(e.into());
    }
    if let Some(m) = c.known.same_minimal(&problem, &c.target, &shrunk.minimal, &shrunk.signature, &[]) {
        let known = c.count_known(id, &m.name)?;
        return stopped.map_or(Ok(Some(known)), |e| Err(e.into()));
    }
    let new = file(c, id, case, &shrunk)?;
    stopped.map_or(Ok(Some(new)), |e| Err(e.into()))
}

/// What a case is shrunk in: a packed hunt leaves strides at their least, unless the case itself, a seed, does not have
/// them there; and the profile that this is.
fn space(c: &Campaign<'_>, case: &Case) -> (Arc<Problem>, &'static str) {
    let problem = c.pool.problem();
    let packed = || problem.narrowed(&problem.packed()).ok().filter(|p| p.check(&case.params).is_ok());
    match packed().filter(|_| c.options.profile == PACKED) {
        Some(packed) => (Arc::new(packed), PACKED),
        None => (Arc::clone(problem), STRIDED),
    }
}

fn shrink_case(c: &mut Campaign<'_>, id: u64, case: &Case, signature: &Signature) -> Result<Shrunk, NotShrunk> {
    let (problem, _) = space(c, case);
    let mut prober = PoolProber::new(c.pool, c.options.seed, c.options.gap_rule);
    let options = shrink::Options {
        confirm: c.options.confirm,
        seed: c.options.seed,
        keep_placement: c.options.keep_placement,
        ..shrink::Options::default()
    };
    let begun = (c.state.before.seconds, c.started);
    let tell = &mut telling(c.reporter, &problem, case, c.pool, id, &c.state.ran, begun);
    shrink::shrink(&problem, case, Some(signature), &mut prober, &options, tell)
}

/// Tells a reporter how a shrink goes.
fn telling<'a>(
    reporter: &'a mut (dyn Reporter + Send),
    problem: &'a Problem,
    start: &Case,
    pool: &'a Pool,
    id: u64,
    tally: &Tally,
    (before, started): (f64, Instant),
) -> impl FnMut(ShrinkEvent<'_>) + use<'a> {
    let (mut best, tally) = (problem.short(&start.params), tally.clone());
    move |event| match event {
        ShrinkEvent::Accepted(step) => {
            best = problem.short(&step.case.params);
            reporter.event(&Event::Shrunk { step: step.by.to_owned(), case: shown(problem, &step.case) });
        }
        ShrinkEvent::Probed { .. } => {
            let (tally, seconds) = (tally.clone(), before + started.elapsed().as_secs_f64());
            reporter.event(&Event::Progress { phase: Phase::Shrinking(best.clone()), tally, seconds });
        }
        ShrinkEvent::Slow { took, .. } => {
            let text = slow(took, pool.limit());
            reporter.event(&Event::Note { id, text: format!("{text}; shrinking starts again") });
        }
        ShrinkEvent::Phase(_) => {}
    }
}

/// Files a shrunk case, with what the other value seeds and the ranks say.
fn file(c: &mut Campaign<'_>, id: u64, original: &Case, shrunk: &Shrunk) -> Result<Found, CampaignError> {
    let mut shrunk = shrunk.clone();
    let asked = match c.options.sanitizer {
        true => sanitizer::sharpen(c.pool, &shrunk.minimal, c.options.seed, &mut shrunk.verdict),
        false => Ok(None),
    };
    if let Ok(Some(text)) = &asked {
        c.note(id, text.clone());
    }
    let more = asked
        .and_then(|_| facts::other_seeds(c.pool, &[], c.options.seed, c.options.gap_rule, &mut shrunk))
        .and_then(|()| ranks::sweep(c.pool, &shrunk.minimal, c.options.seed, c.options.gap_rule));
    // What was found is filed before an interruption ends the run.
    let (table, stopped) = match more {
        Ok(table) => (table, None),
        Err(e) => (None, Some(e)),
    };
    let stated = facts::facts(&context(c, original), original, &shrunk, table.as_ref());
    let summary = facts::summary(c.pool.problem(), &stated, &shrunk);
    let finding = Finding::new(stated).map_err(|e| ProbeError::Setup(format!("a finding cannot be stated: {e}")))?;
    let new = c.file(id, finding, summary)?;
    stopped.map_or(Ok(new), |e| Err(e.into()))
}

/// A case that passed alone, `passes` times, and failed after others: looks into it and files what comes of it.
fn needs_others(
    c: &mut Campaign<'_>,
    id: u64,
    case: &Case,
    before: &[Case],
    passes: u32,
) -> Result<Option<Found>, CampaignError> {
    if let Some(name) = known_history(c, case)? {
        return c.count_known(id, &name).map(Some);
    }
    let ran = before.len();
    c.note(id, format!("passed {passes} of {passes} times alone, and failed after {ran} cases in the same process"));
    c.reporter.event(&Event::Shrinking { id, case: shown(c.pool.problem(), case) });
    let (problem, _) = space(c, case);
    let suspect = Suspect {
        pool: c.pool,
        problem: &problem,
        case,
        before,
        alone: passes,
        seed: c.options.seed,
        confirm: c.options.confirm,
        rule: c.options.gap_rule,
        keep_placement: c.options.keep_placement,
    };
    let begun = (c.state.before.seconds, c.started);
    let looked = history::look(suspect, &mut telling(c.reporter, &problem, case, c.pool, id, &c.state.ran, begun))?;
    match looked {
        Looked::Alone(verdict) => match Signature::of(&verdict) {
            Some(signature) => alone(c, id, case, &signature),
            None => Ok(None),
        },
        Looked::CannotTell { after, alone } => {
            c.state.counts.add(Effect::Unreproduced);
            c.note(id, too_rare(after, alone));
            Ok(None)
        }
        Looked::Needs(needs) => {
            let stated = needs.facts(&context(c, case), case);
            c.state.counts.add(Effect::Shrunk(stated.signature.to_string()));
            let summary = history::summary(c.pool.problem(), &stated, &needs);
            let finding =
                Finding::new(stated).map_err(|e| ProbeError::Setup(format!("a finding cannot be stated: {e}")))?;
            let new = c.file(id, finding, summary)?;
            needs.stopped.map_or(Ok(Some(new)), |e| Err(e.into()))
        }
    }
}

/// The finding whose list makes this case fail in its way, too.
fn known_history(c: &Campaign<'_>, case: &Case) -> Result<Option<String>, ProbeError> {
    for entry in c.known.histories(c.pool.problem(), &c.target) {
        let facts = entry.finding.facts();
        let before = facts.before(case);
        if before.iter().any(|b| c.pool.problem().check(&b.params).is_err()) {
            continue;
        }
        let result = exec::history::run(c.pool, &before, case, c.options.seed, c.options.gap_rule)?;
        let signature = result.and_then(|r| Signature::of(&r.verdict));
        if signature.is_some_and(|s| facts.signature.matches(&s)) {
            return Ok(Some(entry.name.clone()));
        }
    }
    Ok(None)
}

fn context(c: &Campaign<'_>, original: &Case) -> facts::Context {
    facts::Context {
        problem: Arc::clone(&c.problem),
        target: c.target.clone(),
        pins: c.options.pins.clone(),
        profile: space(c, original).1.to_owned(),
        seed: c.options.seed,
        environment: c.environment.clone(),
    }
}
