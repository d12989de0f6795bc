//! Where the line of one parameter lies now.

use super::observe::Watch;
use super::outcome::{Lead, Says};
use crate::exec::ProbeError;
use crate::finding::{Certified, Facts};
use crate::problem::{Case, Problem};
use crate::shrink::line::{Follow, Line};

/// A line before and now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boundary {
    /// Index of the parameter.
    pub param: usize,
    /// Stored last good and first bad value in the file.
    pub old: (i64, i64),
    /// The same, one legal step apart and run again in fresh processes; or a sentence why there is none.
    pub new: Result<(i64, i64), String>,
    /// The minimal case at the new first bad value, or the nearest to it that is known to fail.
    pub bad: Option<Case>,
}

/// Steps of a search by doubling; one of an i64 has fewer.
const DOUBLINGS: u32 = 64;

/// What a value of the parameter does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Fails,
    Passes,
    Silent,
}

/// Stored last good and first bad value of every certified pair.
pub fn pairs(facts: &Facts) -> impl Iterator<Item = (usize, (i64, i64))> + '_ {
    let certified = facts.witnesses.iter().filter(|w| matches!(w.certified, Certified::Yes { .. }));
    certified.filter_map(|w| Some((w.param, (w.good?.0, w.bad.0))))
}

/// Looks for the line that a lead says has moved. `problem` is narrowed to what the target supports, the finding's pins
/// and its profile; `fails` says whether the minimal case does. `None` where no single parameter leads to it.
///
/// # Errors
/// Where no verdict can be had any more.
pub fn search(
    watch: &mut Watch<'_>,
    problem: &Problem,
    lead: Lead,
    fails: bool,
) -> Result<Option<Boundary>, ProbeError> {
    let facts = watch.facts();
    let minimal = &facts.minimal.params;
    let mut known: Vec<(usize, (i64, i64))> = pairs(facts).collect();
    // The parameter with the largest value is the one that an offset depends on most.
    known.sort_by_key(|(param, _)| std::cmp::Reverse(minimal[*param]));
    for (param, old) in known {
        let mut s = Search { watch: &mut *watch, line: Line::new(problem, minimal, &[param], Follow::Held) };
        let bracket = match lead {
            Lead::Good(p) | Lead::Bad(p) if p != param => None,
            Lead::Good(_) if !fails => Some((s.line.value(), old.0)),
            Lead::Bad(_) if !fails => Some((s.line.value(), old.1)),
            Lead::Good(_) => s.gallop(old.0, old.0 < old.1, Side::Passes)?.map(|(bad, good)| (good, bad)),
            Lead::Bad(_) => Some((old.1, s.line.value())),
            Lead::Far => facts.far.as_ref().and_then(|far| {
                let value = far.params[param];
                let alone = value != s.line.value() && s.line.at(value).as_ref() == Some(&far.params);
                alone.then_some((s.line.value(), value))
            }),
            Lead::Original => s.gallop(s.line.value(), old.0 > old.1, Side::Fails)?,
        };
        match (bracket, lead) {
            (Some(bracket), _) => return s.close(old, bracket).map(Some),
            (None, Lead::Good(p)) if p == param => return Ok(Some(s.lost(old))),
            (None, _) => {}
        }
    }
    Ok(None)
}

struct Search<'w, 'a, 'p> {
    watch: &'w mut Watch<'a>,
    line: Line<'p>,
}

impl Search<'_, '_, '_> {
    fn case(&self, value: i64) -> Option<Case> {
        Some(self.watch.facts().minimal.with_params(self.line.at(value)?))
    }

    fn side(&mut self, value: i64) -> Result<Side, ProbeError> {
        let Some(case) = self.case(value) else { return Ok(Side::Silent) };
        let (seen, needed) = self.watch.look(&case)?;
        Ok(match seen.says(needed) {
            Says::Fails => Side::Fails,
            Says::Passes => Side::Passes,
            Says::Otherwise(_) | Says::Nothing(_) => Side::Silent,
        })
    }

    /// From a value in ever longer steps, down or up, to one of the side that is wanted: the last value that is not, and
    /// that one.
    fn gallop(&mut self, from: i64, down: bool, wanted: Side) -> Result<Option<(i64, i64)>, ProbeError> {
        let lowest = self.line.lowest().unwrap_or_else(|| self.line.value());
        let (mut last, mut step) = (from, self.line.step().max(1));
        for _ in 0..DOUBLINGS {
            let next = if down {
                self.line.round_down(from.saturating_sub(step)).map(|v| v.max(lowest)).filter(|v| *v < last)
            } else {
                self.line.round_up(from.saturating_add(step)).filter(|v| *v > last)
            };
            let Some(next) = next else { return Ok(None) };
            match self.side(next)? {
                side if side == wanted => return Ok(Some((last, next))),
                Side::Silent => return Ok(None),
                _ => (last, step) = (next, step.saturating_mul(2)),
            }
        }
        Ok(None)
    }

    /// Halves the distance between a value that passes and one that fails, and runs both ends again.
    fn close(&mut self, old: (i64, i64), (mut good, mut bad): (i64, i64)) -> Result<Boundary, ProbeError> {
        let mut apart = None;
        while let Some(middle) = self.between(good, bad) {
            match self.side(middle)? {
                Side::Fails => bad = middle,
                Side::Passes => good = middle,
                Side::Silent => {
                    apart = Some(format!("between {good} and {bad}, and {middle} says nothing"));
                    break;
                }
            }
        }
        let new = match apart {
            Some(why) => Err(why),
            None => self.confirmed(good, bad)?,
        };
        let param = self.line.params()[0];
        Ok(Boundary { param, old, new, bad: self.case(bad) })
    }

    /// An allowed value strictly between two.
    fn between(&self, a: i64, b: i64) -> Option<i64> {
        let (low, high) = (a.min(b), a.max(b));
        let middle = self.line.round_down(low + (high - low) / 2).filter(|v| *v > low);
        let middle = middle.or_else(|| self.line.round_up(low + 1))?;
        (low < middle && middle < high).then_some(middle)
    }

    fn confirmed(&mut self, good: i64, bad: i64) -> Result<Result<(i64, i64), String>, ProbeError> {
        for (value, wanted) in [(good, Says::Passes), (bad, Says::Fails)] {
            let Some(case) = self.case(value) else { return Ok(Err(format!("{value} makes no case"))) };
            let seen = self.watch.watch(&case)?;
            if seen.says(self.watch.needed()) != wanted {
                return Ok(Err(format!("near {bad}; {value} does not answer alike every time ({})", seen.rate())));
            }
        }
        Ok(Ok((good, bad)))
    }

    /// The last good value fails, and nothing beyond it passes.
    fn lost(&self, old: (i64, i64)) -> Boundary {
        let why = "no value that passes was found".to_owned();
        Boundary { param: self.line.params()[0], old, new: Err(why), bad: self.case(old.0) }
    }
}
