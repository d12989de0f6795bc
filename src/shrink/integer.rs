//! The least value of one integer that still fails in the same way.
//!
//! A probe that fails costs a process, one that passes does not. So the places where a hypothesis expects the line come
//! first, lowest first: each one that passes is cheap and rules out its hypothesis, the first that fails is checked from
//! below. Only then comes a bisection, biased so that it approaches from the passing side. Nothing is assumed monotone:
//! the search keeps to the failing value's remainder by 64 before it crosses to others, and looks again at a few places
//! below what it found.

use super::Strategy;
use super::beliefs::Agreement;
use super::engine::{Engine, Seen};
use super::line::Line;
use crate::exec::ProbeError;
use crate::problem::contents::mix;

/// Kernels are built for multiples of 16 to 64 and treat the rest apart: keep the remainder by this while it is possible.
const CLASS: i64 = 64;
/// Usual periods of tiles, unrolled loops and vectors.
const PERIODS: [i64; 10] = [4, 8, 16, 32, 48, 64, 96, 128, 192, 256];
/// Seeded looks below a boundary.
const LOOKS: u64 = 4;

/// Lowers the line's value as far as the failure stays; whether anything was accepted.
pub fn lower(e: &mut Engine, line: &Line, by: &'static str) -> Result<bool, ProbeError> {
    let high = line.value();
    let (true, Some(low)) = (line.is_distinct(), line.lowest()) else { return Ok(false) };
    let before = e.ladder.len();
    if probe(e, line, low, by)? != Seen::Bad {
        match e.options.strategy {
            Strategy::PlainBisection => {
                bisect(e, line, Range { low, high, stride: line.step() }, by)?;
            }
            Strategy::HintFirst => hint_first(e, line, low, high, by)?,
        }
    }
    Ok(e.ladder.len() > before)
}

fn probe(e: &mut Engine, line: &Line, v: i64, by: &'static str) -> Result<Seen, ProbeError> {
    match line.at(v) {
        Some(case) => e.step(&case, by),
        None => Ok(Seen::Invalid),
    }
}

fn hint_first(e: &mut Engine, line: &Line, low: i64, high: i64, by: &'static str) -> Result<(), ProbeError> {
    let (mut good, mut bad) = hints(e, line, low, high, by)?;
    for round in 0..4 {
        bad = narrow(e, line, good, bad, by)?;
        let Some(lower) = look_below(e, line, low, bad, round, by)? else { break };
        (good, bad) = (low, lower);
    }
    Ok(())
}

/// Probes the expected places from below; a value taken as passing and the least failing one.
fn hints(e: &mut Engine, line: &Line, low: i64, high: i64, by: &'static str) -> Result<(i64, i64), ProbeError> {
    let crossings = e.beliefs.crossings(e.problem, line, low, high, Agreement::Full);
    let mut places: Vec<i64> = (1..4).map(|i| low.saturating_add(i)).collect();
    for t in PERIODS {
        places.extend([high.rem_euclid(t), high.rem_euclid(t) + t]);
    }
    places.extend(crossings.keys());
    places.retain(|v| *v > low && *v < high && line.round_down(*v) == Some(*v));
    places.sort_unstable();
    places.dedup();
    let mut good = low;
    for v in places {
        if let Some(ids) = crossings.get(&v)
            && !ids.iter().any(|id| e.beliefs.agrees(*id, Agreement::Full))
        {
            continue;
        }
        match probe(e, line, v, by)? {
            Seen::Bad => return Ok((neighbour(e, line, good, v, by)?, v)),
            Seen::Pass | Seen::Other => good = v,
            Seen::Nothing | Seen::Invalid => {}
        }
    }
    // Where only some shapes take the kernel that fails, every hypothesis has cases beyond its line that pass.
    let others = e.beliefs.crossings(e.problem, line, good, high, Agreement::Unrefuted);
    for v in others.keys().copied().filter(|v| *v < high && !crossings.contains_key(v)) {
        match probe(e, line, v, by)? {
            Seen::Bad => return Ok((neighbour(e, line, good, v, by)?, v)),
            Seen::Pass | Seen::Other => good = good.max(v),
            Seen::Nothing | Seen::Invalid => {}
        }
    }
    // The failing value is the end of the range; often it already sits on its line.
    let on_line = crossings.contains_key(&high) || others.contains_key(&high);
    if on_line {
        good = neighbour(e, line, good, high, by)?;
    }
    Ok((good, high))
}

/// A hint that is right has its passing neighbour: one cheap probe ends the search. The value that is taken as passing.
fn neighbour(e: &mut Engine, line: &Line, good: i64, bad: i64, by: &'static str) -> Result<i64, ProbeError> {
    match line.round_down(bad - 1).filter(|below| *below > good) {
        Some(below) if matches!(probe(e, line, below, by)?, Seen::Pass | Seen::Other) => Ok(below),
        _ => Ok(good),
    }
}

/// Boundary inside the failing value's class, then in single steps within the last window.
fn narrow(e: &mut Engine, line: &Line, good: i64, bad: i64, by: &'static str) -> Result<i64, ProbeError> {
    let step = line.step();
    let class = step.saturating_mul(CLASS);
    let mut range = Range { low: good, high: bad, stride: class };
    if bad - good > class {
        range = bisect(e, line, range, by)?;
    }
    let low = range.low.max(range.high.saturating_sub(class));
    Ok(bisect(e, line, Range { low, high: range.high, stride: step }, by)?.high)
}

/// A stretch that is taken to pass at `low` and fails at `high`; the values between are `stride` apart, from `high` down.
#[derive(Debug, Clone, Copy)]
pub struct Range {
    pub low: i64,
    pub high: i64,
    pub stride: i64,
}

impl Range {
    /// How many values lie strictly between.
    fn inside(self) -> i64 {
        (self.high - self.low - 1) / self.stride
    }

    /// The next value to probe. `q` is the probability that the probe should fail; the boundary is taken to be spread
    /// evenly over the logarithm while the ends are far apart, and evenly over the values after that.
    fn pick(self, q: f64) -> i64 {
        let (low, high) = (self.low as f64, self.high as f64);
        let target =
            if self.low > 0 && self.high / 2 > self.low { low * (high / low).powf(q) } else { low + q * (high - low) };
        let steps = ((high - target) / self.stride as f64).floor() as i64;
        self.high - steps.clamp(1, self.inside()) * self.stride
    }
}

/// Closes a range until its failing end has no neighbour left inside it.
pub fn bisect(e: &mut Engine, line: &Line, mut range: Range, by: &'static str) -> Result<Range, ProbeError> {
    let mut elsewhere = false;
    while range.inside() > 0 {
        // Where the other side fails too, in another way, neither side is cheap.
        let q = if elsewhere { 0.5 } else { failing_share(e.cost_ratio()) };
        let v = range.pick(q);
        match probe(e, line, v, by)? {
            Seen::Bad => range.high = v,
            seen => {
                elsewhere = seen == Seen::Other;
                range.low = v;
            }
        }
    }
    Ok(range)
}

/// The share of the remaining interval below a probe that costs least on average, where a failing probe costs `ratio`
/// times a passing one: with x + x^ratio = 1, a pass has probability x and a failure x^ratio (the optimal alphabetic
/// code for letters of unequal cost). 1/2 where both cost the same.
pub fn failing_share(ratio: f64) -> f64 {
    let (mut low, mut high) = (0.5, 1.0);
    for _ in 0..60 {
        let x: f64 = (low + high) / 2.0;
        if x + x.powf(ratio) < 1.0 { low = x } else { high = x }
    }
    1.0 - high
}

/// Looks at seeded places between the least value and the boundary; a failing one, if met.
fn look_below(
    e: &mut Engine,
    line: &Line,
    low: i64,
    bad: i64,
    round: u64,
    by: &'static str,
) -> Result<Option<i64>, ProbeError> {
    for i in 0..LOOKS {
        let random = mix(e.options.seed ^ (round * LOOKS + i), bad as u64 ^ (line.params()[0] as u64) << 56);
        let Some(v) = spread(low, bad, random).and_then(|v| line.round_down(v)).filter(|v| *v > low && *v < bad) else {
            continue;
        };
        if probe(e, line, v, by)? == Seen::Bad {
            return Ok(Some(v));
        }
    }
    Ok(None)
}

/// A value strictly between, spread evenly over the logarithm of the distance from `low`.
pub fn spread(low: i64, high: i64, random: u64) -> Option<i64> {
    let room = high.checked_sub(low)?.checked_sub(1)?;
    if room < 1 {
        return None;
    }
    let share = random as f64 / u64::MAX as f64;
    let distance = (room as f64).powf(share).floor() as i64;
    Some(low + distance.clamp(1, room))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_costs_halve_and_dear_failures_stay_near_the_passing_side() {
        assert!((failing_share(1.0) - 0.5).abs() < 1e-9);
        for ratio in [2.0, 5.0, 40.0, 450.0] {
            let q = failing_share(ratio);
            assert!(((1.0 - q) + (1.0 - q).powf(ratio) - 1.0).abs() < 1e-9, "{ratio}: {q}");
        }
        assert!((0.005..0.02).contains(&failing_share(450.0)));
    }

    /// Mean cost of finding boundaries with one share, a failing probe costing `ratio`.
    fn cost(ratio: f64, q: f64) -> f64 {
        let mut total = 0.0;
        for i in 0..200u64 {
            let boundary = spread(1, 1 << 31, mix(7, i)).unwrap();
            let mut range = Range { low: 1, high: 1 << 31, stride: 1 };
            while range.inside() > 0 {
                let v = range.pick(q);
                assert!(v > range.low && v < range.high);
                if v >= boundary {
                    range.high = v;
                    total += ratio;
                } else {
                    range.low = v;
                    total += 1.0;
                }
            }
            assert!(range.high == boundary || boundary == 1 && range.high == 2);
        }
        total / 200.0
    }

    #[test]
    fn the_biased_share_costs_less_than_halving_and_than_shares_around_it() {
        for ratio in [5.0, 40.0, 450.0] {
            let q = failing_share(ratio);
            let best = cost(ratio, q);
            assert!(best < cost(ratio, 0.5) * 0.85, "{ratio}");
            assert!(best < cost(ratio, (q * 3.0).min(0.5)) && best < cost(ratio, q / 3.0), "{ratio}");
        }
    }

    #[test]
    fn every_pick_keeps_the_class_of_the_failing_end() {
        let range = Range { low: 5, high: 100_003, stride: 64 };
        for q in [0.001, 0.1, 0.5, 0.99] {
            let v = range.pick(q);
            assert!((range.high - v) % 64 == 0 && v > range.low && v < range.high);
        }
    }
}
