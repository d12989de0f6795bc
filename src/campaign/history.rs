//! A case that fails only after others in the same process: is it so, what is the shortest list, and where is the line?

use super::facts::{self, Context};
use crate::exec::blame::{GapRule, MOST_RUNS};
use crate::exec::history::{self, Budget, Earlier, ListProber, Vary, relative, resolved};
use crate::exec::pool::Pool;
use crate::exec::{ProbeError, Signature, Verdict};
use crate::finding::{Confirmation, Facts, History, Tally};
use crate::problem::{Case, Problem};
use crate::report::event::FindingSummary;
use crate::shrink::{self, Key, NotShrunk, Rate, ShrinkEvent, Shrunk, list};

/// Replays that the search for the shortest list may take, and launches in all of them.
const LIST: Budget = Budget { replays: 400, launches: 1 << 18 };
/// The same for making one case smaller: the one that fails, or one that runs before it.
const CASE: Budget = Budget { replays: 2000, launches: 1 << 18 };
/// Longest list of which the single cases are made smaller, too.
const SHORT: usize = 4;

/// A case that failed after others, and how it is looked into.
#[derive(Debug, Clone, Copy)]
pub struct Suspect<'a> {
    pub pool: &'a Pool,
    /// As limits, pins and the profile narrow it.
    pub problem: &'a Problem,
    pub case: &'a Case,
    /// What ran before it, in the same process.
    pub before: &'a [Case],
    /// How often it passed alone, of as many runs.
    pub alone: u32,
    pub seed: u64,
    pub confirm: u32,
    pub rule: GapRule,
    pub keep_placement: bool,
}

/// What a suspect turned out to be.
#[derive(Debug)]
pub enum Looked {
    /// It fails after these cases and not without them.
    Needs(Box<Needs>),
    /// It fails alone as well, in this way: no history.
    Alone(Verdict),
    /// It fails too rarely to tell: how often after the list, and alone.
    CannotTell { after: Tally, alone: Tally },
}

/// A confirmed failure that needs a history.
#[derive(Debug, Clone)]
pub struct Needs {
    pub list: Vec<Earlier>,
    pub found_after: u32,
    pub alone: Tally,
    pub ending: Ending,
    /// What is left open, a sentence each.
    pub open: Vec<String>,
    /// What ended the run meanwhile.
    pub stopped: Option<ProbeError>,
}

/// The case that fails at the end.
#[derive(Debug, Clone)]
pub enum Ending {
    Shrunk(Box<Shrunk>),
    AsFound { verdict: Verdict, signature: Signature, after: Tally },
}

/// How often a case failed after a list, and alone.
struct Sides {
    verdict: Verdict,
    signature: Signature,
    after: Tally,
    alone: Tally,
}

/// Looks into a suspect: runs it with and without what ran before it, in turns, and where that tells the two apart, makes
/// the list as short and its cases and the failing one as small as the bounds allow.
///
/// # Errors
/// Where no verdict can be had any more before the failure is confirmed; later errors are in [`Needs::stopped`].
pub fn look(suspect: Suspect<'_>, on_event: &mut dyn FnMut(ShrinkEvent<'_>)) -> Result<Looked, ProbeError> {
    let list = relative(suspect.before, suspect.case);
    let sides = match sides(suspect, &list)? {
        Ok(sides) => sides,
        Err(other) => return Ok(other),
    };
    let mut needs = Needs {
        found_after: list.len() as u32,
        list,
        alone: sides.alone,
        ending: Ending::AsFound { verdict: sides.verdict, signature: sides.signature.clone(), after: sides.after },
        open: vec![],
        stopped: None,
    };
    let rate = Rate::of(sides.after.failed, sides.after.runs);
    let mut budget = LIST;
    let fewer = shorten(suspect, &needs.list, &sides.signature, rate, &mut budget);
    let list = needs.take(fewer, "the list may not be the shortest");
    let same = with_same(suspect, &list, &sides.signature, rate, &mut budget);
    let same = needs.take(same, "a case of the list may be needless");
    let mut best = smallest(suspect, same.clone(), &sides.signature, needs.clone(), on_event)?;
    // A list of other cases is told only where it makes all of it smaller, and the case need not be related to it.
    if same != list
        && best.stopped.is_none()
        && best.weight(suspect.problem) > Weight::least(suspect, &list)
        && best.fails_after(suspect, &list, &sides.signature, rate, &mut budget)
    {
        let other = smallest(suspect, list, &sides.signature, needs, on_event)?;
        if other.stopped.is_some() {
            best.stopped = other.stopped;
        } else if other.weight(suspect.problem) < best.weight(suspect.problem) {
            best = other;
        }
    }
    Ok(Looked::Needs(Box::new(best)))
}

/// Makes the cases of a list smaller, then the one that fails.
///
/// # Errors
/// Where no verdict can be had any more and nothing smaller was confirmed.
fn smallest(
    s: Suspect<'_>,
    list: Vec<Earlier>,
    signature: &Signature,
    mut needs: Needs,
    on_event: &mut dyn FnMut(ShrinkEvent<'_>),
) -> Result<Needs, ProbeError> {
    let list = smaller_items(s, list, signature, &mut needs, on_event);
    if needs.stopped.is_none() {
        shrink_last(s, list, signature, &mut needs, on_event)?;
    }
    Ok(needs)
}

/// How large a history is: features, work and bits of all its cases together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Weight {
    features: usize,
    work: i128,
    bits: u32,
}

impl Weight {
    fn of<'c>(problem: &Problem, cases: impl IntoIterator<Item = &'c Case>) -> Weight {
        let keys = cases.into_iter().map(|c| Key::of(problem, &c.params));
        keys.fold(Weight { features: 0, work: 0, bits: 0 }, |sum, k| Weight {
            features: sum.features + k.features,
            work: sum.work.saturating_add(k.work),
            bits: sum.bits + k.bits,
        })
    }

    /// The least that a list of so many cases and one more can have.
    fn least(s: Suspect<'_>, list: &[Earlier]) -> Weight {
        let plain = s.problem.plainest().map(|params| s.case.with_params(params));
        Weight::of(s.problem, std::iter::repeat_n(plain.as_ref().unwrap_or(s.case), list.len() + 1))
    }
}

impl Needs {
    fn weight(&self, problem: &Problem) -> Weight {
        match &self.ending {
            Ending::Shrunk(shrunk) => {
                Weight::of(problem, resolved(&self.list, &shrunk.minimal).iter().chain([&shrunk.minimal]))
            }
            // Nothing was made smaller: anything else is better.
            Ending::AsFound { .. } => Weight { features: usize::MAX, work: i128::MAX, bits: u32::MAX },
        }
    }

    /// Whether the smallest case fails after another list as well.
    fn fails_after(
        &mut self,
        s: Suspect<'_>,
        list: &[Earlier],
        signature: &Signature,
        rate: Rate,
        budget: &mut Budget,
    ) -> bool {
        let Ending::Shrunk(shrunk) = &self.ending else { return true };
        match fails(Suspect { case: &shrunk.minimal, ..s }, list, signature, rate, budget) {
            Ok(fails) => fails,
            Err(e) => {
                self.take(((), Some(e)), "a smaller list may exist");
                false
            }
        }
    }

    /// The result of a step, with what ended it noted.
    fn take<T>(&mut self, (value, error): (T, Option<ProbeError>), open: &str) -> T {
        match error {
            Some(ProbeError::Spent) => self.open.push(format!("{open}: {}", ProbeError::Spent)),
            Some(e) => {
                self.open.push(format!("{open}: {e}"));
                self.stopped = self.stopped.take().or(Some(e));
            }
            None => {}
        }
        value
    }

    /// What a finding states.
    pub fn facts(&self, context: &Context, original: &Case) -> Facts {
        let mut facts = match &self.ending {
            Ending::Shrunk(shrunk) => facts::facts(context, original, shrunk, None),
            Ending::AsFound { verdict, signature, after } => {
                let rate = Rate::of(after.failed, after.runs);
                let rate = rate.is_flaky().then_some((rate.low, rate.high));
                let confirmation = Confirmation { bad: *after, good: Tally::default(), rate };
                Facts { confirmation, ..facts::base(context, original, signature, verdict.clone()) }
            }
        };
        facts.windows.extend(self.open.iter().cloned());
        facts.history = Some(History { before: self.list.clone(), found_after: self.found_after, alone: self.alone });
        facts
    }
}

/// What is read aloud of a finding.
pub fn summary(problem: &Problem, facts: &Facts, needs: &Needs) -> FindingSummary {
    match &needs.ending {
        Ending::Shrunk(shrunk) => facts::summary(problem, facts, shrunk),
        Ending::AsFound { .. } => facts::summary_of(problem, facts, vec![], "the case is as it was found".to_owned()),
    }
}

/// Runs the case after the list and alone, in turns; what it is instead, where the two do not tell it apart.
fn sides(s: Suspect<'_>, list: &[Earlier]) -> Result<Result<Sides, Looked>, ProbeError> {
    let before = resolved(list, s.case);
    let mut first: Option<(Verdict, Signature)> = None;
    let (mut after, mut alone) = (Tally::default(), Tally { runs: s.alone, failed: 0 });
    while after.runs < s.confirm || (after.failed < after.runs && after.runs < MOST_RUNS) {
        let verdict = history::run(s.pool, &before, s.case, s.seed, s.rule)?.map(|r| r.verdict);
        after.runs += 1;
        if let Some((verdict, signature)) = verdict.and_then(|v| Signature::of(&v).map(|s| (v, s)))
            && first.as_ref().is_none_or(|(_, f)| f.matches(&signature))
        {
            after.failed += 1;
            first.get_or_insert((verdict, signature));
        }
        if let Some(verdict) = control(s, s.case, &mut alone, 1)? {
            return Ok(Err(Looked::Alone(verdict)));
        }
    }
    let left = MOST_RUNS.max(after.runs).saturating_sub(alone.runs);
    if let Some(verdict) = control(s, s.case, &mut alone, left)? {
        return Ok(Err(Looked::Alone(verdict)));
    }
    Ok(match first.filter(|_| is_certain(Rate::of(after.failed, after.runs), alone)) {
        Some((verdict, signature)) => Ok(Sides { verdict, signature, after, alone }),
        None => Err(Looked::CannotTell { after, alone }),
    })
}

/// Whether the list makes the difference: the intervals of the failure rates with and without it lie apart.
fn is_certain(after: Rate, alone: Tally) -> bool {
    after.low > Rate::of(alone.failed, alone.runs).high
}

/// Runs a case alone in fresh processes; a failure, where there is one. What does not run is no control.
fn control(s: Suspect<'_>, case: &Case, alone: &mut Tally, runs: u32) -> Result<Option<Verdict>, ProbeError> {
    for _ in 0..runs {
        let verdict = history::run(s.pool, &[], case, s.seed, s.rule)?.map(|r| r.verdict);
        if let Some(bad) = verdict.filter(Verdict::is_bad) {
            return Ok(Some(bad));
        }
        alone.runs += 1;
    }
    Ok(None)
}

/// Whether the case fails after a list, in as many runs as its rate takes.
fn fails(
    s: Suspect<'_>,
    list: &[Earlier],
    signature: &Signature,
    rate: Rate,
    budget: &mut Budget,
) -> Result<bool, ProbeError> {
    let before = resolved(list, s.case);
    for _ in 0..rate.repeats() {
        budget.take(before.len())?;
        let verdict = history::run(s.pool, &before, s.case, s.seed, s.rule)?.map(|r| r.verdict);
        if verdict.and_then(|v| Signature::of(&v)).is_some_and(|found| signature.matches(&found)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The shortest list that was found.
fn shorten(
    s: Suspect<'_>,
    list: &[Earlier],
    signature: &Signature,
    rate: Rate,
    budget: &mut Budget,
) -> (Vec<Earlier>, Option<ProbeError>) {
    list::minimise(list.to_vec(), &mut |list: &[Earlier]| fails(s, list, signature, rate, budget))
}

/// The list with the case itself in place of others where it fails all the same: all of them at once, else one by one.
fn with_same(
    s: Suspect<'_>,
    list: &[Earlier],
    signature: &Signature,
    rate: Rate,
    budget: &mut Budget,
) -> (Vec<Earlier>, Option<ProbeError>) {
    let mut list = list.to_vec();
    let mut candidates: Vec<Vec<usize>> = vec![(0..list.len()).collect()];
    candidates.extend((0..list.len()).map(|i| vec![i]));
    for places in candidates {
        let mut changed = list.clone();
        places.iter().for_each(|i| changed[*i] = Earlier::Same);
        if changed == list {
            continue;
        }
        match fails(s, &changed, signature, rate, budget) {
            Ok(true) => list = changed,
            Ok(false) => {}
            Err(e) => return (list, Some(e)),
        }
    }
    (list, None)
}

/// Makes the cases of a short list smaller, each by the moves that shrink any case: it fails if the last one does.
fn smaller_items(
    s: Suspect<'_>,
    mut list: Vec<Earlier>,
    signature: &Signature,
    needs: &mut Needs,
    on_event: &mut dyn FnMut(ShrinkEvent<'_>),
) -> Vec<Earlier> {
    for i in 0..if list.len() <= SHORT { list.len() } else { 0 } {
        let Earlier::Case(item) = list[i].clone() else { continue };
        if needs.stopped.is_some() {
            break;
        }
        let mut quiet = |event: ShrinkEvent<'_>| {
            if matches!(event, ShrinkEvent::Probed { .. } | ShrinkEvent::Slow { .. }) {
                on_event(event);
            }
        };
        match shrunk(s, &list, &item, Vary::Earlier(i), signature, &mut quiet) {
            Ok(shrunk) if shrunk.confirmed.bad > 0 => {
                let (minimal, stopped) = (shrunk.minimal, shrunk.stopped);
                list[i] = needs.take((Earlier::Case(minimal), stopped), "a case of the list may not be the smallest");
            }
            Ok(shrunk) => needs.take(((), shrunk.stopped), "a case of the list is left as it was found"),
            Err(NotShrunk::Probe(e)) => needs.take(((), Some(e)), "a case of the list is left as it was found"),
            // As it was found it does no harm.
            Err(_) => {}
        }
    }
    list
}

/// Shrinks the failing case after the list, and runs the smallest one alone. Where that does not hold, the case stays as it
/// was found; where not even the shorter list does, that stays, too.
fn shrink_last(
    s: Suspect<'_>,
    list: Vec<Earlier>,
    signature: &Signature,
    needs: &mut Needs,
    on_event: &mut dyn FnMut(ShrinkEvent<'_>),
) -> Result<(), ProbeError> {
    match shrunk(s, &list, s.case, Vary::Last, signature, on_event) {
        Ok(mut shrunk) => {
            needs.take(((), shrunk.stopped.clone()), "the case may not be the smallest");
            let mut alone = Tally::default();
            let runs = MOST_RUNS.max(shrunk.confirmed.runs);
            match control(s, &shrunk.minimal, &mut alone, runs) {
                Ok(None) if is_certain(shrunk.rate, alone) => {
                    let more = facts::other_seeds(s.pool, &list, s.seed, s.rule, &mut shrunk).err();
                    needs.take(((), more), "the last good cases were not all run with other values");
                    (needs.list, needs.alone, needs.ending) = (list, alone, Ending::Shrunk(Box::new(shrunk)));
                    return Ok(());
                }
                Ok(None) => needs.open.push("the smaller case fails too rarely to tell".to_owned()),
                Ok(Some(_)) => {
                    let case = s.problem.short(&shrunk.minimal.params);
                    needs.open.push(format!("a smaller case fails alone, too, at times: {case}"));
                }
                Err(e) => needs.take(((), Some(e)), "the smaller case was not run alone"),
            }
        }
        Err(NotShrunk::Probe(e)) => needs.take(((), Some(e)), "the case is left as it was found"),
        Err(e) => needs.open.push(format!("the case is left as it was found: {e}")),
    }
    if needs.stopped.is_none()
        && let Ok(sides) = sides(s, &list)?
    {
        (needs.list, needs.alone) = (list, sides.alone);
        needs.ending = Ending::AsFound { verdict: sides.verdict, signature: sides.signature, after: sides.after };
    }
    Ok(())
}

fn shrunk(
    s: Suspect<'_>,
    list: &[Earlier],
    start: &Case,
    vary: Vary,
    signature: &Signature,
    on_event: &mut dyn FnMut(ShrinkEvent<'_>),
) -> Result<Shrunk, NotShrunk> {
    let (list, case, mut budget) = (list.to_vec(), s.case.clone(), CASE);
    let mut prober = ListProber { pool: s.pool, seed: s.seed, rule: s.rule, list, case, vary, budget: &mut budget };
    let options = shrink::Options {
        confirm: s.confirm,
        seed: s.seed,
        keep_placement: s.keep_placement,
        ..shrink::Options::default()
    };
    shrink::shrink(s.problem, start, Some(signature), &mut prober, &options, on_event)
}
