use super::super::beliefs::Agreement;
use super::super::engine::{Engine, Seen};
use super::super::line::{Follow, Line};
use super::Move;
use crate::exec::ProbeError;
use crate::problem::{Assignment, Role};

/// Keeps a product constant while it moves from one parameter to another: less work, or shorter numbers, for the same
/// offset. Of no use to a shrinker that lowers one integer at a time, which stops at the ratio it started from.
///
/// Before: `m=1000 n=1001`. After: `m=1 n=1001000`.
/// Before: `n=9 ldb=268435456`. After: `n=2 ldb=2147483648`.
/// Before: `n=11 ldc=214748365` (fails where n is odd). After: `n=3 ldc=1073741824`.
pub struct Trade;

impl Move for Trade {
    fn name(&self) -> &'static str {
        "trade"
    }

    fn run(&self, e: &mut Engine) -> Result<bool, ProbeError> {
        let before = e.ladder.len();
        for from in e.integers(&e.current) {
            if e.problem.params[from].role == Role::Stride {
                continue;
            }
            for to in e.integers(&e.current) {
                if to != from {
                    pair(e, from, to, self.name())?;
                }
            }
        }
        Ok(e.ladder.len() > before)
    }
}

/// Periods of unrolled loops: often only one remainder fails.
const PERIODS: [i64; 4] = [2, 3, 4, 8];

/// Lowers `from` to its least, the next, the least values that keep its remainder by usual periods, half, and the value
/// below; at each, raises `to` to what makes up for it, smallest first.
fn pair(e: &mut Engine, from: usize, to: usize, by: &'static str) -> Result<(), ProbeError> {
    let old = e.current[from];
    let least = e.problem.params[from].least();
    let p = &e.problem.params[from];
    let alike = PERIODS.iter().flat_map(|t| [0, *t].map(|more| least + more + (old - least).rem_euclid(*t)));
    let mut lower: Vec<i64> = [
        Some(least),
        p.round_up(least.saturating_add(1)),
        p.round_down(least + (old - least) / 2),
        p.round_down(old - 1),
    ]
    .into_iter()
    .flatten()
    .chain(alike.filter(|v| p.round_down(*v) == Some(*v)))
    .collect();
    lower.sort_unstable();
    lower.dedup();
    for new in lower {
        if new >= e.current[from] || e.current[from] != old {
            continue;
        }
        for follow in [Follow::Packed, Follow::Held] {
            let line = Line::new(e.problem, &e.current, &[from], follow);
            let Some(base) = line.at(new).filter(|_| line.is_distinct()) else { continue };
            for candidate in raised(e, &base, (old, new), to) {
                if e.is_smaller(&candidate) && e.step(&candidate, by)? == Seen::Bad {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

fn raised(e: &Engine, base: &Assignment, (old, new): (i64, i64), to: usize) -> Vec<Assignment> {
    let line = Line::new(e.problem, base, &[to], Follow::Packed);
    let (value, most) = (i128::from(e.current[to]), e.problem.params[to].most());
    // The same product of the values, and of the last index (one less than an extent) with the value.
    let keep = |a: i64, b: i64| (b > 0).then(|| (value * i128::from(a) + i128::from(b) - 1) / i128::from(b));
    let products = [keep(old, new), keep(old - 1, new - 1)].into_iter().flatten();
    let mut values: Vec<i64> = products.filter_map(|v| i64::try_from(v).ok()).collect();
    values.extend(e.beliefs.crossings(e.problem, &line, line.value(), most, Agreement::Full).keys());
    values.retain(|v| *v > line.value());
    values.sort_unstable();
    values.dedup();
    values.into_iter().filter_map(|v| line.at(line.round_up(v)?)).collect()
}
