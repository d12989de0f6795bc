//! One finding, run again.

use super::boundary::{self, Boundary};
use super::comparable;
use super::observe::Watch;
use super::outcome::{Lead, Observed, Outcome, PairSeen, Says, Seen, conclude};
use crate::exec::ProbeError;
use crate::exec::blame::GapRule;
use crate::exec::pool::Pool;
use crate::finding::{Environment, Facts};
use crate::problem::{Case, Problem};

/// How findings are replayed.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Runs of every case, each in a fresh process.
    pub confirm: u32,
    pub gap_rule: GapRule,
}

/// What became of a finding.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub outcome: Outcome,
    pub observed: Observed,
    /// Where the line lies now, where it moved and one parameter leads there.
    pub boundary: Option<Boundary>,
    /// Beside the outcome, a fragment of a sentence each.
    pub notes: Vec<String>,
    /// A case that is known to fail, where the line moved: what shrinking starts from.
    pub failing: Option<Case>,
}

/// Runs a finding's cases on a pool of its target, or of another one, and concludes.
///
/// # Errors
/// Where no verdict can be had any more, or the device is unhealthy.
pub fn replay(pool: &Pool, facts: &Facts, now: &Environment, options: Options) -> Result<Answer, ProbeError> {
    if let Some(why) = pool.lacks(&facts.minimal)? {
        return Ok(Answer::of(Outcome::Skipped(why)));
    }
    let narrowed = match narrowed(pool, facts) {
        Ok(problem) => problem,
        Err(why) => {
            let why = format!("the target does not have what the finding pins: {why}");
            return Ok(Answer::of(Outcome::Skipped(why)));
        }
    };
    let mut watch = Watch::new(pool, facts, options.confirm, options.gap_rule);
    let observed = observe(&mut watch, &narrowed)?;
    let differences = comparable::differences(&facts.environment, now);
    let outcome = conclude(&observed, &differences);
    let (mut boundary, mut failing) = (None, None);
    if let Outcome::Moved(lead) = outcome {
        let fails = observed.minimal.says(observed.needed) == Says::Fails;
        boundary = boundary::search(&mut watch, &narrowed, lead, fails)?;
        failing = boundary.as_ref().and_then(|b| b.bad.clone()).or_else(|| leading(facts, &narrowed, lead, fails));
    }
    let notes = notes(&watch, &observed, &outcome, now, &differences);
    Ok(Answer { outcome, boundary, notes, observed, failing })
}

impl Answer {
    /// An answer for which nothing was run.
    pub fn of(outcome: Outcome) -> Answer {
        Answer { outcome, observed: Observed::default(), boundary: None, notes: vec![], failing: None }
    }
}

/// The problem as the target limits it and the finding narrows it: decides what a change of one parameter drags along.
///
/// # Errors
/// A sentence, where the target does not have what the finding pins.
pub fn narrowed(pool: &Pool, facts: &Facts) -> Result<Problem, String> {
    let limited = facts.problem.narrowed(&pool.hello().description.limits)?;
    Facts { problem: std::sync::Arc::new(limited), ..facts.clone() }.narrowed()
}

/// The minimal case first; what else is run depends on it.
fn observe(watch: &mut Watch<'_>, narrowed: &Problem) -> Result<Observed, ProbeError> {
    let facts = watch.facts();
    let minimal = watch.watch(&facts.minimal)?;
    let mut all = Observed { needed: watch.needed(), minimal, ..Observed::default() };
    match all.minimal.says(all.needed) {
        Says::Otherwise(_) | Says::Nothing(_) => return Ok(all),
        Says::Fails if facts.history.is_some() => all.alone = Some(watch.alone(&facts.minimal)?),
        Says::Fails => {}
        Says::Passes => {
            if let Some(far) = &facts.far {
                all.far = Some(watch.watch(&facts.minimal.with_params(far.params.clone()))?);
            }
            if facts.original != facts.minimal {
                all.original = Some(watch.watch(&facts.original)?);
            }
        }
    }
    for (param, (good, bad)) in boundary::pairs(facts) {
        all.pairs.push(PairSeen {
            param,
            name: facts.problem.params[param].name.clone(),
            good: side(watch, narrowed, param, good)?,
            bad: match bad == facts.minimal.params[param] {
                true => None,
                false => Some(side(watch, narrowed, param, bad)?),
            },
        });
    }
    Ok(all)
}

fn side(watch: &mut Watch<'_>, narrowed: &Problem, param: usize, value: i64) -> Result<Seen, ProbeError> {
    match at(watch.facts(), narrowed, param, value) {
        Some(case) => watch.watch(&case),
        None => Ok(Seen { nothing: Some("no case of this target".to_owned()), ..Seen::default() }),
    }
}

/// The minimal case with another value of one parameter.
fn at(facts: &Facts, narrowed: &Problem, param: usize, value: i64) -> Option<Case> {
    let mut params = facts.minimal.params.clone();
    params[param] = value;
    Some(facts.minimal.with_params(narrowed.follow(&params, |i| i == param)?))
}

/// A case that fails where the line moved.
fn leading(facts: &Facts, narrowed: &Problem, lead: Lead, fails: bool) -> Option<Case> {
    let pair = |param: usize| boundary::pairs(facts).find(|(p, _)| *p == param).map(|(_, pair)| pair);
    match lead {
        Lead::Good(param) => at(facts, narrowed, param, pair(param)?.0),
        Lead::Bad(_) if fails => Some(facts.minimal.clone()),
        Lead::Bad(param) => at(facts, narrowed, param, pair(param)?.1),
        Lead::Far => facts.far.as_ref().map(|far| facts.minimal.with_params(far.params.clone())),
        Lead::Original => Some(facts.original.clone()),
    }
}

fn notes(
    watch: &Watch<'_>,
    observed: &Observed,
    outcome: &Outcome,
    now: &Environment,
    differences: &[String],
) -> Vec<String> {
    let facts = watch.facts();
    let mut notes = vec![];
    if let Some(verdict) = watch.verdict.as_ref().filter(|v| v.word() != facts.verdict.word()) {
        notes.push(format!("{}, filed as {}", verdict.word(), facts.verdict.word()));
    }
    let filed = facts.confirmation.bad;
    if observed.minimal.same > 0 && observed.minimal.passes > 0 && filed.failed == filed.runs {
        notes.push(format!("{} of {} failed when it was filed", filed.failed, filed.runs));
    }
    if *outcome == Outcome::Reproduced {
        for pair in &observed.pairs {
            if let Says::Nothing(why) = pair.good.says(observed.needed) {
                notes.push(format!("the last good value of {} says nothing: {why}", pair.name));
            }
        }
    }
    if !matches!(outcome, Outcome::NotComparable(_) | Outcome::Skipped(_)) {
        notes.extend(differences.iter().cloned());
        notes.extend(comparable::changes(&facts.environment, now));
    }
    notes
}
