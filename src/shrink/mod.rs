//! Shrinking: from a case that fails to the smallest one that still fails for the same reason, and what certifies it.
//!
//! The moves know problems, hypotheses and probes, never an operation. A candidate is valid by construction, smaller in
//! one total order ([`order`]), and a smaller version of the finding only if it fails with the same signature
//! (`anchor.rs`). A result is 1-minimal under the moves, and every parameter of it that matters has a pair of cases around
//! its line, both re-run in fresh processes (`witness.rs`).
//!
//! A [`Prober`] runs a case under one seed of the operands' values; who wants passing witnesses repeated under other
//! seeds does that inside [`Prober::probe`] for [`Freshness::Fresh`].

mod anchor;
mod beliefs;
mod engine;
mod integer;
pub mod line;
pub mod list;
mod moves;
pub mod observe;
pub mod order;
pub mod rate;
mod result;
#[cfg(test)]
mod tests;
mod witness;

pub use observe::Counts;
pub use order::Key;
pub use rate::Rate;
pub use result::{
    Choice, ChoiceEffect, Direction, Island, LadderStep, NotShrunk, Probes, ShrinkEvent, Shrunk, Side, Slip, Witness,
    WitnessStatus,
};

use crate::exec::{Freshness, ProbeError, Prober, Signature};
use crate::problem::{Case, Placement, Problem};
use anchor::Anchor;
use engine::{Engine, Start};
use observe::Observations;
use std::time::{Duration, Instant};

/// Descents at most: each further one starts from a smaller case or with stricter repeats.
const ROUNDS: u32 = 20;

/// How integers are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// Where hypotheses expect the line, then biased bisection; with all moves.
    HintFirst,
    /// Bisection by halves and one parameter at a time: the baseline of the benches.
    PlainBisection,
}

/// Settings of a shrink.
#[derive(Debug, Clone)]
pub struct Options {
    pub seed: u64,
    pub strategy: Strategy,
    /// Whether the case keeps its placement, because the user asked for it; else the plainest that fails alike is taken.
    pub keep_placement: bool,
    /// Runs in fresh processes of every case that is filed.
    pub confirm: u32,
    /// Runs of the start case, where the first ones disagree.
    pub start_runs: u32,
    /// Runs of a minimal case that fails only sometimes, for its rate: 64 give an interval of at most 0.25 at any rate.
    pub rate_runs: u32,
    /// Width of the 95% interval to reach where every run fails.
    pub rate_width: f64,
    /// Passes after which a case is given up as undecided, where its failure is so rare that even that proves nothing.
    pub max_repeats: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 0,
            strategy: Strategy::HintFirst,
            keep_placement: false,
            confirm: 3,
            start_runs: 20,
            rate_runs: 64,
            rate_width: 0.25,
            max_repeats: 200,
        }
    }
}

/// Shrinks a failing case of a problem whose pins and limits are in its domains.
///
/// `wanted` is the signature under which the case was found; without it, the first one that says where is followed.
///
/// # Errors
/// Where the start is no case, does not fail, or fails in another way. Once it failed, whatever stops the probes ends the
/// shrink with what was found by then, and [`Shrunk::stopped`] says why.
pub fn shrink(
    problem: &Problem,
    start: &Case,
    wanted: Option<&Signature>,
    prober: &mut dyn Prober,
    options: &Options,
    on_event: &mut dyn FnMut(ShrinkEvent<'_>),
) -> Result<Shrunk, NotShrunk> {
    let began = Instant::now();
    problem.check(&start.params)?;
    on_event(ShrinkEvent::Phase("confirm the start"));
    let mut before = Probes::default();
    let mut case = start.clone();
    loop {
        let (mut confirmed, mut stopped) = confirm_start(&case, wanted, prober, options, on_event)?;
        if stopped.is_none() && confirmed.case == *start && !options.keep_placement {
            (confirmed, stopped) = plainly_placed(confirmed, prober, options, on_event)?;
            case = confirmed.case.clone();
        }
        let mut engine = Engine::new(problem, confirmed, &mut *prober, options, &mut *on_event);
        let mut found = witness::Found::default();
        let ended = match stopped {
            Some(error) => Err(error),
            None => run(&mut engine, &mut found),
        };
        if ended == Ok(Ended::Slow) {
            before.add(engine.probes);
            continue;
        }
        engine.probes.add(before);
        return Ok(collect(engine, found, ended.err(), began.elapsed()));
    }
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Done,
    /// It followed cases that are slow and do not hang. The time limit is longer now: it has to start again.
    Slow,
}

/// The start under the plainest placement in which it fails in the same way, so that one failure has one minimal case: a
/// coarse alignment or a padding moves the edge that an over-read runs into.
fn plainly_placed(
    start: Start,
    prober: &mut dyn Prober,
    options: &Options,
    on_event: &mut dyn FnMut(ShrinkEvent<'_>),
) -> Result<(Start, Option<ProbeError>), NotShrunk> {
    for placement in [Placement::END, Placement::START] {
        if start.case.placement == placement {
            break;
        }
        let case = Case { placement, ..start.case.clone() };
        let observation = match prober.probe(&case, Freshness::Fresh) {
            Ok(observation) => observation,
            Err(error) => return Ok((start, Some(error))),
        };
        on_event(ShrinkEvent::Probed { case: &case, freshness: Freshness::Fresh, observation: &observation });
        let same = Signature::of(&observation.verdict).is_some_and(|s| s == start.anchor.signature);
        if !same {
            continue;
        }
        match confirm_start(&case, Some(&start.anchor.signature), prober, options, on_event) {
            Ok((mut plain, stopped)) => {
                plain.probes.add(start.probes);
                return Ok((plain, stopped));
            }
            Err(NotShrunk::Probe(error)) => return Ok((start, Some(error))),
            Err(_) => {}
        }
    }
    Ok((start, None))
}

/// Runs the start in fresh processes, `confirm` times and more where the runs disagree, and settles which failure is
/// followed and how many passes a case needs.
fn confirm_start(
    case: &Case,
    wanted: Option<&Signature>,
    prober: &mut dyn Prober,
    options: &Options,
    on_event: &mut dyn FnMut(ShrinkEvent<'_>),
) -> Result<(Start, Option<ProbeError>), NotShrunk> {
    let (mut observations, mut probes, mut stopped) = (Observations::default(), Probes::default(), None);
    for run in 0..options.start_runs.max(options.confirm) {
        let tally = observations.of(&case.params, Freshness::Fresh);
        if run >= options.confirm && tally.passes + tally.not_run == 0 {
            break;
        }
        match prober.probe(case, Freshness::Fresh) {
            Err(error) => {
                stopped = Some(error);
                break;
            }
            Ok(observation) => {
                observations.add(&case.params, Freshness::Fresh, &observation.verdict);
                probes.count(&observation.verdict);
                on_event(ShrinkEvent::Probed { case, freshness: Freshness::Fresh, observation: &observation });
            }
        }
    }
    let tally = observations.of(&case.params, Freshness::Fresh);
    let fits = |s: &Signature| wanted.is_none_or(|w| w.matches(s));
    let best = tally.bad.iter().filter(|b| fits(&b.signature)).max_by_key(|b| (b.signature.is_located(), b.runs));
    let Some(best) = best else {
        return Err(match (stopped, tally.bad.first()) {
            (_, Some(other)) => NotShrunk::AnotherSignature(other.signature.clone()),
            (Some(error), None) => error.into(),
            (None, None) if tally.passes == 0 => NotShrunk::NotRun(tally.why_not.unwrap_or_default()),
            (None, None) => NotShrunk::DoesNotFail(tally.passes),
        });
    };
    let mut anchor = Anchor::new(wanted.unwrap_or(&best.signature).clone(), case.params.clone());
    anchor.follow(&case.params, best);
    let start = Start {
        case: case.clone(),
        anchor,
        verdict: best.verdict.clone(),
        repeats: Rate::of(tally.failures(), tally.failures() + tally.passes).repeats(),
        observations,
        probes,
    };
    Ok((start, stopped))
}

/// Descends and certifies until both agree: a witness that fails is a smaller case, and a minimal case that turns out to
/// be flaky needs the descent again with passes repeated.
fn run(e: &mut Engine, found: &mut witness::Found) -> Result<Ended, ProbeError> {
    for _ in 0..ROUNDS {
        e.phase("shrink");
        descend(e)?;
        e.phase("confirm");
        match witness::confirm_minimal(e)? {
            witness::Confirmed::Again => continue,
            witness::Confirmed::Slow => return Ok(Ended::Slow),
            witness::Confirmed::Done => {}
        }
        e.phase("witnesses");
        if witness::certify(e, found)? == witness::Confirmed::Done {
            break;
        }
    }
    Ok(Ended::Done)
}

/// Runs the moves until none of them finds anything.
fn descend(e: &mut Engine) -> Result<(), ProbeError> {
    let (moves, last) = (moves::all(e.options.strategy), moves::last(e.options.strategy));
    loop {
        let mut moved = false;
        for m in &moves {
            moved |= m.run(e)?;
        }
        if moved {
            continue;
        }
        for m in &last {
            moved |= m.run(e)?;
        }
        if !moved {
            return Ok(());
        }
    }
}

fn collect(e: Engine, found: witness::Found, stopped: Option<ProbeError>, took: Duration) -> Shrunk {
    let fresh = e.observations.of(&e.current, Freshness::Fresh);
    let verdict = e.same(&e.current, &fresh).map_or(&e.verdict, |b| &b.verdict).clone();
    let confirmed = e.fresh_counts(&e.current);
    Shrunk {
        minimal: e.case(&e.current),
        verdict,
        signature: e.anchor.signature.clone(),
        witnesses: found.witnesses,
        choices: found.choices,
        irrelevant: found.irrelevant,
        far: found.far,
        islands: found.islands,
        slips: e.slips(),
        confirmed,
        rate: Rate::of(confirmed.bad, confirmed.bad + confirmed.passes),
        probes: e.probes,
        ladder: e.ladder,
        took,
        stopped,
    }
}
