//! Which hypotheses still agree with what was observed, and where they expect the line.

use super::line::Line;
use crate::hypothesis::{self, Hypothesis};
use crate::problem::{Assignment, Problem};
use std::collections::{BTreeMap, BTreeSet};

/// How far a hypothesis may disagree with what was observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    /// Every failing case crosses its line, no passing one does.
    Full,
    /// Up to two passing cases cross it: the fault may end again, or be silent by chance.
    Mostly,
    /// Every failing case crosses its line; passing ones may, too: only some shapes may take the kernel that fails.
    Unrefuted,
}

const TOLERATED: u32 = 2;
/// Cases beyond its line that failed in another way, after which a hypothesis no longer says where to probe: each of
/// them cost a process.
const ELSEWHERE: u32 = 6;

/// How a case went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Bad,
    Good,
    /// Failed in another way.
    Elsewhere,
}

/// One line of a quantity, and how often observations spoke against it.
#[derive(Debug, Clone)]
struct Threshold {
    at: i128,
    bad_below: u32,
    good_above: u32,
    /// Cases above the line that failed in another way.
    elsewhere: u32,
}

impl Threshold {
    fn agrees(&self, agreement: Agreement) -> bool {
        let tolerated = match agreement {
            Agreement::Full => 0,
            Agreement::Mostly => TOLERATED,
            Agreement::Unrefuted => u32::MAX,
        };
        self.bad_below == 0 && self.good_above <= tolerated && self.elsewhere <= ELSEWHERE
    }
}

/// Hypotheses with one quantity, which is computed once for all of them.
#[derive(Debug, Clone)]
struct Group {
    quantity: Hypothesis,
    thresholds: Vec<Threshold>,
}

/// Names a hypothesis: group and threshold.
pub type Id = (usize, usize);

/// The hypotheses that the start case, which failed, crosses.
#[derive(Debug, Clone, Default)]
pub struct Beliefs {
    groups: Vec<Group>,
}

impl Beliefs {
    pub fn new(problem: &Problem, start: &Assignment) -> Beliefs {
        let mut groups: BTreeMap<Hypothesis, Vec<Threshold>> = BTreeMap::new();
        for h in hypothesis::enumerate(problem) {
            if h.crosses(problem, start) == Some(true) {
                let threshold = Threshold { at: h.threshold(), bad_below: 0, good_above: 0, elsewhere: 0 };
                groups.entry(Hypothesis { bits: 0, ..h }).or_default().push(threshold);
            }
        }
        let groups = groups.into_iter().map(|(quantity, thresholds)| Group { quantity, thresholds });
        Beliefs { groups: groups.collect() }
    }

    /// Counts a case for or against every hypothesis.
    pub fn observe(&mut self, problem: &Problem, values: &Assignment, outcome: Outcome) {
        for group in &mut self.groups {
            let q = group.quantity.quantity(problem, values);
            for t in &mut group.thresholds {
                match (q.is_some_and(|q| q >= t.at), outcome) {
                    (false, Outcome::Bad) => t.bad_below += 1,
                    (true, Outcome::Good) => t.good_above += 1,
                    (true, Outcome::Elsewhere) => t.elsewhere += 1,
                    _ => {}
                }
            }
        }
    }

    pub fn agrees(&self, id: Id, agreement: Agreement) -> bool {
        self.groups[id.0].thresholds[id.1].agrees(agreement)
    }

    /// Where along a line the hypotheses that agree expect the first failure, within `low < v <= high`: value, and who
    /// says so.
    pub fn crossings(&self, problem: &Problem, line: &Line, low: i64, high: i64, agreement: Agreement) -> Crossings {
        let mut found: BTreeMap<i64, Vec<Id>> = BTreeMap::new();
        let Some(walk) = Walk::new(line, low, high) else { return found };
        // Quantities that are equal at three places of the line are one function of it (extents of 1 drop out).
        let mut known: BTreeMap<[i128; 3], BTreeMap<i128, i64>> = BTreeMap::new();
        let mut empty = BTreeSet::new();
        for (g, group) in self.groups.iter().enumerate() {
            let live: Vec<usize> =
                (0..group.thresholds.len()).filter(|t| group.thresholds[*t].agrees(agreement)).collect();
            let quantity = |case: &Assignment| group.quantity.quantity(problem, case);
            let shape = walk.ends.each_ref().map(|case| quantity(case).unwrap_or(i128::MIN));
            if live.is_empty() || shape[0] >= shape[2] || empty.contains(&shape) {
                continue;
            }
            for t in live {
                let at = group.thresholds[t].at;
                let solved = known.entry(shape).or_default().get(&at).copied();
                let Some(v) = solved.or_else(|| walk.solve(line, &shape, at, quantity)) else { continue };
                known.entry(shape).or_default().insert(at, v);
                found.entry(v).or_default().push((g, t));
            }
            if known.get(&shape).is_none_or(BTreeMap::is_empty) {
                empty.insert(shape);
            }
        }
        found
    }
}

/// Expected first failures along a line, lowest first.
pub type Crossings = BTreeMap<i64, Vec<Id>>;

/// A stretch of a line and its cases at the low end, one step above it, and the high end.
struct Walk {
    low: i64,
    high: i64,
    step: i64,
    ends: [Assignment; 3],
}

impl Walk {
    fn new(line: &Line, low: i64, high: i64) -> Option<Walk> {
        let (step, high) = (line.step(), line.round_down(high)?);
        let next = low.checked_add(step).filter(|n| *n <= high)?;
        let ends = [line.at(low)?, line.at(next)?, line.at(high)?];
        Some(Walk { low, high, step, ends })
    }

    /// The first value at which the quantity reaches `target`: by the slope at the low end, checked on both sides, else by
    /// bisection.
    fn solve(
        &self,
        line: &Line,
        shape: &[i128; 3],
        target: i128,
        quantity: impl Fn(&Assignment) -> Option<i128>,
    ) -> Option<i64> {
        let reaches = |steps: i128| {
            let v = i64::try_from(i128::from(self.low) + steps * i128::from(self.step)).ok()?;
            quantity(&line.at(v)?).map(|q| q >= target)
        };
        if shape[0] >= target || shape[2] < target {
            return None;
        }
        let last = (i128::from(self.high) - i128::from(self.low)) / i128::from(self.step);
        let slope = shape[1] - shape[0];
        let mut found = None;
        if slope > 0 {
            let guess = (target - shape[0] + slope - 1) / slope;
            if guess <= last && reaches(guess) == Some(true) && reaches(guess - 1) == Some(false) {
                found = Some(guess);
            }
        }
        let steps = match found {
            Some(steps) => steps,
            None => {
                let (mut below, mut above) = (0, last);
                while above - below > 1 {
                    let middle = below + (above - below) / 2;
                    if reaches(middle)? { above = middle } else { below = middle }
                }
                above
            }
        };
        i64::try_from(i128::from(self.low) + steps * i128::from(self.step)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::Follow;
    use super::*;
    use crate::problem::{Builtin, Value};

    #[test]
    fn the_line_is_expected_where_a_product_reaches_a_power_of_two() {
        let problem = Builtin::find("gemm").unwrap().problem();
        let named = [("n", 5), ("ldb", 3_000_000_000)].map(|(n, v)| (n.to_owned(), Value::Int(v))).into();
        let start = problem.complete(&named).unwrap();
        let mut beliefs = Beliefs::new(&problem, &start);
        let ldb = problem.param("ldb").unwrap();
        let line = Line::new(&problem, &start, &[ldb], Follow::Held);
        let expected = |b: &Beliefs| -> Vec<i64> {
            b.crossings(&problem, &line, 1, 3_000_000_000, Agreement::Full).into_keys().collect()
        };
        // (n - 1) * ldb = 4 * ldb reaches 2^16, 2^24, 2^31, 2^32 elements of 4 bytes.
        let (elements, bytes) = ([14, 22, 29, 30], [12, 20, 27, 28]);
        let mut all: Vec<i64> = elements.iter().chain(&bytes).map(|b| 1i64 << b).collect();
        all.sort_unstable();
        assert_eq!(expected(&beliefs), all);
        beliefs.observe(&problem, &line.at((1 << 29) - 1).unwrap(), Outcome::Good);
        assert_eq!(expected(&beliefs), [1 << 29, 1 << 30]);
        beliefs.observe(&problem, &line.at(1 << 29).unwrap(), Outcome::Bad);
        assert_eq!(expected(&beliefs), [1 << 29]);
    }
}
