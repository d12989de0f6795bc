//! What certifies a minimal case: runs in fresh processes, pairs of cases around every line, a case well past it.

use super::engine::{Engine, Seen};
use super::integer::spread;
use super::line::{Follow, Line, follows, is_free};
use super::observe::Counts;
use super::rate::Rate;
use super::result::{Choice, ChoiceEffect, Direction, Island, Side, Witness, WitnessStatus};
use crate::exec::{Freshness, ProbeError};
use crate::problem::{Assignment, contents::mix};

/// Legal steps tried where the nearest neighbour cannot run.
const NEIGHBOURS: u32 = 4;
/// Seeded looks above a boundary.
const LOOKS: u64 = 4;
/// Variants in which all idle parameters are raised at once.
const TOGETHER: u32 = 3;
/// Probes spent on the edge of an island.
const EDGE: u32 = 40;

/// What was found around the minimal case.
#[derive(Debug, Default)]
pub struct Found {
    pub witnesses: Vec<Witness>,
    pub choices: Vec<Choice>,
    pub irrelevant: Vec<(usize, u32)>,
    pub far: Option<(usize, Side)>,
    pub islands: Vec<Island>,
}

/// Whether a check stands, or changed what shrinking has to start from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmed {
    Done,
    Again,
    /// The minimal case is no hang, only slow.
    Slow,
}

/// Runs the minimal case in fresh processes until its rate is known well enough.
///
/// Where it never fails, what ran before it in a warm process took part: the search goes back to the last accepted case
/// that fails by itself, and goes on in fresh processes only. Where it hangs, it first has to do so when given longer.
pub fn confirm_minimal(e: &mut Engine) -> Result<Confirmed, ProbeError> {
    if e.was_slow()? {
        return Ok(Confirmed::Slow);
    }
    let mut again = Confirmed::Done;
    loop {
        let minimal = e.current.clone();
        let rate = measure(e, &minimal)?;
        if rate.bad > 0 {
            let needed = rate.repeats();
            if needed > e.repeats {
                e.need_repeats(needed);
                return Ok(Confirmed::Again);
            }
            return Ok(again);
        }
        if !e.go_back() {
            return Ok(Confirmed::Done);
        }
        again = Confirmed::Again;
    }
}

/// Runs the case in fresh processes for its rate. A failure that is known to come only sometimes gets a fixed number of
/// runs: to stop once the interval is narrow enough would favour the extreme rates, whose intervals are narrow early.
fn measure(e: &mut Engine, case: &Assignment) -> Result<Rate, ProbeError> {
    loop {
        let counts = e.fresh_counts(case);
        let rate = Rate::of(counts.bad, counts.bad + counts.passes);
        let enough = counts.runs >= e.options.confirm.max(e.repeats) && counts.bad == 0;
        let steady = e.repeats == 1 && counts.passes == 0;
        let narrow = steady && counts.runs >= e.options.confirm && rate.width() <= e.options.rate_width;
        if enough || narrow || counts.runs >= e.options.rate_runs.max(e.options.confirm) {
            return Ok(rate);
        }
        e.probe(case, Freshness::Fresh)?;
    }
}

/// Finds the pairs, the choices, the far case and the islands.
pub fn certify(e: &mut Engine, found: &mut Found) -> Result<Confirmed, ProbeError> {
    *found = Found::default();
    let idle = raised_together(e)?;
    for param in e.integers(&e.current) {
        if idle.contains(&param) {
            match whole_tiles(e, param)? {
                true => found.irrelevant.push((param, TOGETHER + 1)),
                false => drop(integer(e, found, param)?),
            }
        } else if integer(e, found, param)? == Confirmed::Again {
            return Ok(Confirmed::Again);
        }
    }
    for param in 0..e.problem.params.len() {
        let p = &e.problem.params[param];
        if p.is_choice() && is_free(e.problem, param) && e.problem.is_active(param, &e.current.0) {
            choices(e, found, param)?;
        }
    }
    far(e, found)?;
    above(e, found)?;
    Ok(Confirmed::Done)
}

fn integer(e: &mut Engine, found: &mut Found, param: usize) -> Result<Confirmed, ProbeError> {
    let current = e.current.clone();
    let line = Line::new(e.problem, &current, &[param], Follow::Held);
    let outcome = match line.lowest() {
        Some(_) => down(e, &line)?,
        None => up(e, &line)?,
    };
    let minimal = |e: &Engine| Side { case: e.case(&current), counts: e.fresh_counts(&current) };
    match outcome {
        Outcome::Smaller => return Ok(Confirmed::Again),
        Outcome::Irrelevant(tried) => found.irrelevant.push((param, tried)),
        Outcome::Fixed => {}
        Outcome::Unknown(why) => found.witnesses.push(Witness {
            param,
            first_bad: minimal(e),
            last_good: None,
            status: WitnessStatus::NotCertified(why),
        }),
        Outcome::Pair { bad, good, direction, steps } => {
            let status = match confirm_pair(e, &bad, &good)? {
                Ok(()) => WitnessStatus::Certified { direction, steps },
                Err(why) => WitnessStatus::NotCertified(why),
            };
            let side = |e: &Engine, params: &Assignment| Side { case: e.case(params), counts: e.fresh_counts(params) };
            found.witnesses.push(Witness { param, first_bad: side(e, &bad), last_good: Some(side(e, &good)), status });
        }
    }
    Ok(Confirmed::Done)
}

/// Raises all integers at their least value at once, several times: where the failure stays each time, none of them
/// matters, for a few failing probes instead of a few for each. Which those are; empty where the failure did not stay.
fn raised_together(e: &mut Engine) -> Result<Vec<usize>, ProbeError> {
    let current = e.current.clone();
    let at_least = |i: &usize| Line::new(e.problem, &current, &[*i], Follow::Held).lowest().is_none();
    let params: Vec<usize> = e.integers(&current).into_iter().filter(at_least).collect();
    if params.len() < 2 {
        return Ok(vec![]);
    }
    for round in 0..TOGETHER {
        let mut values = current.clone();
        for param in &params {
            let p = &e.problem.params[*param];
            let random = (mix(e.options.seed ^ u64::from(round), *param as u64) % 8) as i64;
            let more = [1, 5 + random, 17 + random][round as usize];
            let v = values[*param].saturating_add(more);
            values[*param] = p.round_up(v).unwrap_or(values[*param]);
        }
        let repaired = e.problem.repair(&mut values, |i| follows(e.problem, i) && is_free(e.problem, i));
        let all_moved = params.iter().all(|p| values[*p] > current[*p]);
        if !repaired || !all_moved || e.classify(&values)? != Seen::Bad {
            return Ok(vec![]);
        }
    }
    Ok(params)
}

/// A multiple of every tile and unroll in use: where only remainders fail, this passes.
const WHOLE: i64 = 256;

/// Whether the failure stays with the parameter at a multiple of [`WHOLE`], everything else held; also where that is no case.
fn whole_tiles(e: &mut Engine, param: usize) -> Result<bool, ProbeError> {
    let line = Line::new(e.problem, &e.current.clone(), &[param], Follow::Held);
    let Some(case) = line.round_up(whole(line.value())).and_then(|v| line.at(v)) else { return Ok(true) };
    Ok(!matches!(e.classify(&case)?, Seen::Pass | Seen::Other))
}

fn whole(value: i64) -> i64 {
    (value / WHOLE + 1).saturating_mul(WHOLE)
}

enum Outcome {
    /// A neighbour fails and is smaller: it is the current case now.
    Smaller,
    Pair {
        bad: Assignment,
        good: Assignment,
        direction: Direction,
        steps: u32,
    },
    Irrelevant(u32),
    /// Constraints leave it this value alone while everything else is held: there is nothing to say of it.
    Fixed,
    Unknown(String),
}

/// The nearest smaller values: the first that passes is last good.
fn down(e: &mut Engine, line: &Line) -> Result<Outcome, ProbeError> {
    let bad = e.current.clone();
    let (mut why, mut nearest) = (String::from("no smaller value makes a case"), None);
    let mut v = line.value();
    for steps in 1..=NEIGHBOURS {
        let Some(next) = v.checked_sub(1).and_then(|v| line.round_down(v)) else { break };
        v = next;
        let Some(good) = line.at(v) else { continue };
        match e.step(&good, "witness")? {
            Seen::Bad if e.current == good => return Ok(Outcome::Smaller),
            Seen::Bad => return Ok(Outcome::Unknown(format!("{v} fails too, but moves another parameter up"))),
            Seen::Pass => return Ok(Outcome::Pair { bad, good, direction: Direction::Down, steps }),
            // What lies between the pair must have said nothing: a neighbour that fails otherwise ends the line.
            Seen::Other => return Ok(Outcome::Unknown(otherwise(e, v, &good))),
            Seen::Nothing => why = nearest.get_or_insert(not_run(e, v, &good)).clone(),
            Seen::Invalid => {}
        }
    }
    Ok(Outcome::Unknown(why))
}

/// How a case fails that does not fail in the way followed.
fn otherwise(e: &Engine, value: i64, case: &Assignment) -> String {
    match e.observations.all(case).bad.into_iter().max_by_key(|b| b.runs) {
        Some(bad) => format!("{value} fails in another way ({}: {})", bad.verdict.word(), bad.signature),
        None => format!("{value} fails in another way"),
    }
}

fn not_run(e: &Engine, value: i64, case: &Assignment) -> String {
    let tally = e.observations.all(case);
    match tally.why_not {
        Some(why) => format!("{value} was not run ({why})"),
        None => format!("{value} passed {} times, too few for a failure this rare", tally.passes),
    }
}

/// A parameter at its least value: does raising it, everything else held, end the failure?
fn up(e: &mut Engine, line: &Line) -> Result<Outcome, ProbeError> {
    let low = line.value();
    let random = mix(e.options.seed, line.params()[0] as u64);
    let far = low.saturating_add(17 + (random % 64) as i64);
    let mut values: Vec<i64> = [low.saturating_add(1), low.saturating_mul(2).saturating_add(2), far, whole(low)]
        .into_iter()
        .filter_map(|v| line.round_up(v).filter(|v| *v > low))
        .collect();
    values.sort_unstable();
    values.dedup();
    if values.iter().all(|v| line.at(*v).is_none()) {
        return Ok(Outcome::Fixed);
    }
    let (mut tried, mut bad, mut why) = (0, low, String::new());
    for v in values {
        let Some(case) = line.at(v) else { continue };
        match e.classify(&case)? {
            Seen::Bad => (tried, bad) = (tried + 1, v),
            Seen::Pass => return edge_up(e, line, bad, v),
            Seen::Other => return Ok(Outcome::Unknown(otherwise(e, v, &case))),
            Seen::Nothing => why = not_run(e, v, &case),
            Seen::Invalid => {}
        }
    }
    Ok(if tried > 0 { Outcome::Irrelevant(tried) } else { Outcome::Unknown(why) })
}

/// The adjacent pair between a failing value and a passing one above it.
fn edge_up(e: &mut Engine, line: &Line, bad: i64, good: i64) -> Result<Outcome, ProbeError> {
    let (bad, good) = close(e, line, bad, good)?;
    Ok(match (line.at(bad), line.at(good)) {
        (Some(bad), Some(good)) => Outcome::Pair { bad, good, direction: Direction::Up, steps: 1 },
        _ => Outcome::Unknown(format!("no case between {bad} and {good}")),
    })
}

/// Halves the distance between a failing value and a passing one above it.
fn close(e: &mut Engine, line: &Line, mut bad: i64, mut good: i64) -> Result<(i64, i64), ProbeError> {
    for _ in 0..EDGE {
        let Some(v) = line.round_down(bad + (good - bad) / 2) else { break };
        let v = if v > bad { v } else { line.round_up(bad.saturating_add(1)).unwrap_or(good) };
        if v >= good {
            break;
        }
        let seen = match line.at(v) {
            Some(case) => e.classify(&case)?,
            None => Seen::Invalid,
        };
        match seen {
            Seen::Bad => bad = v,
            Seen::Pass => good = v,
            _ => break,
        }
    }
    Ok((bad, good))
}

/// Runs both sides of a pair in fresh processes; a sentence where one does not behave.
fn confirm_pair(e: &mut Engine, bad: &Assignment, good: &Assignment) -> Result<Result<(), String>, ProbeError> {
    let passes = e.options.confirm.max(e.repeats);
    let fresh = run_fresh(e, good, passes)?;
    if fresh.passes < fresh.runs || fresh.runs == 0 {
        let failed = fresh.bad + fresh.other;
        return Ok(Err(format!("last good failed {failed} of {} runs in fresh processes", fresh.runs)));
    }
    if fresh.weak > 0 {
        return Ok(Err("last good passed without its extreme offsets being run".into()));
    }
    let fresh = run_fresh(e, bad, passes)?;
    let steady = fresh.bad == fresh.runs;
    if fresh.bad == 0 || e.repeats == 1 && !steady {
        return Ok(Err(format!("first bad failed {} of {} runs in fresh processes", fresh.bad, fresh.runs)));
    }
    Ok(Ok(()))
}

fn run_fresh(e: &mut Engine, case: &Assignment, runs: u32) -> Result<Counts, ProbeError> {
    while e.fresh_counts(case).runs < runs {
        e.probe(case, Freshness::Fresh)?;
    }
    Ok(e.fresh_counts(case))
}

fn choices(e: &mut Engine, found: &mut Found, param: usize) -> Result<(), ProbeError> {
    let current = e.current.clone();
    for value in e.problem.params[param].choices() {
        if value == current[param] {
            continue;
        }
        let line = Line::new(e.problem, &current, &[param], Follow::Held);
        let effect = match line.at(value) {
            None => ChoiceEffect::NotRun("no case with everything else held".into()),
            Some(case) => match e.classify(&case)? {
                Seen::Pass => ChoiceEffect::Passes,
                Seen::Bad => ChoiceEffect::Same,
                Seen::Other => match e.observations.all(&case).bad.into_iter().next() {
                    Some(bad) => ChoiceEffect::FailsOtherwise(bad.signature),
                    None => ChoiceEffect::NotRun("undecided".into()),
                },
                Seen::Nothing | Seen::Invalid => ChoiceEffect::NotRun(not_run(e, value, &case)),
            },
        };
        found.choices.push(Choice { param, value, effect });
    }
    Ok(())
}

/// Parameters with a certified pair below, the one with the largest value first.
fn leading(e: &Engine, found: &Found) -> Vec<usize> {
    let below = |w: &&Witness| matches!(w.status, WitnessStatus::Certified { direction: Direction::Down, .. });
    let mut params: Vec<usize> = found.witnesses.iter().filter(below).map(|w| w.param).collect();
    params.sort_by_key(|p| std::cmp::Reverse(e.current[*p]));
    params
}

/// Raises a leading parameter by half, or by another comfortable amount, to a case that fails k of k.
fn far(e: &mut Engine, found: &mut Found) -> Result<(), ProbeError> {
    let current = e.current.clone();
    for param in leading(e, found) {
        let line = Line::new(e.problem, &current, &[param], Follow::Held);
        let v = line.value();
        for more in [v / 2, v / 4, v, v / 8] {
            let Some(case) = line.round_up(v.saturating_add(more.max(1))).and_then(|v| line.at(v)) else { continue };
            if e.classify(&case)? != Seen::Bad {
                continue;
            }
            let counts = run_fresh(e, &case, e.options.confirm)?;
            if counts.bad == counts.runs || e.repeats > 1 && counts.bad > 0 {
                found.far = Some((param, Side { case: e.case(&case), counts }));
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Looks at seeded places above every certified boundary for values that pass again.
fn above(e: &mut Engine, found: &mut Found) -> Result<(), ProbeError> {
    let current = e.current.clone();
    for param in leading(e, found) {
        let line = Line::new(e.problem, &current, &[param], Follow::Held);
        let v = line.value();
        let top = e.start_value(param).max(v.saturating_mul(2)).min(e.problem.params[param].most());
        let look = |i: u64| {
            let random = mix(e.options.seed ^ i, param as u64);
            // Half of them near the boundary, half of them anywhere.
            let anywhere = v + 1 + (random % (top - v).max(1) as u64) as i64;
            if i.is_multiple_of(2) { spread(v, top, random) } else { Some(anywhere) }
        };
        let mut values: Vec<i64> =
            (0..LOOKS).filter_map(|i| look(i).and_then(|v| line.round_down(v))).filter(|w| *w > v).collect();
        values.sort_unstable();
        values.dedup();
        island(e, found, &line, &values)?;
    }
    Ok(())
}

fn island(e: &mut Engine, found: &mut Found, line: &Line, values: &[i64]) -> Result<(), ProbeError> {
    let (mut bad, mut good) = (line.value(), None);
    for v in values {
        let Some(case) = line.at(*v) else { continue };
        match (e.classify(&case)?, good.take()) {
            (Seen::Pass, None) => good = Some((*v, case)),
            (Seen::Bad, None) => bad = *v,
            (Seen::Bad, Some((at, case))) => {
                let (_, from) = close(e, line, bad, at)?;
                let param = line.params()[0];
                found.islands.push(Island { param, case: e.case(&case), from, bad_again: Some(*v) });
                return Ok(());
            }
            (_, before) => good = before,
        }
    }
    if let Some((at, case)) = good {
        let (_, from) = close(e, line, bad, at)?;
        found.islands.push(Island { param: line.params()[0], case: e.case(&case), from, bad_again: None });
    }
    Ok(())
}
