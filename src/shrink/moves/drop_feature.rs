use super::super::engine::Engine;
use super::super::line::{Follow, Line, is_free};
use super::super::order::features;
use super::Move;
use crate::exec::ProbeError;
use crate::problem::{Assignment, Domain, Role};

/// Takes a feature away: a choice to a plainer value, a count to its least, an offset to zero.
///
/// A transpose exchanges the extents that a stride multiplies, so each drop is also tried with two sizes exchanged; and
/// with the strides as they are as well as derived again.
///
/// Before: `transB=T m=1 n=1 k=2 ldb=2147483648`. After: `m=1 n=2 k=1 ldb=2147483648`.
pub struct DropFeature;

impl Move for DropFeature {
    fn name(&self) -> &'static str {
        "drop feature"
    }

    fn run(&self, e: &mut Engine) -> Result<bool, ProbeError> {
        let before = e.ladder.len();
        for param in features(e.problem, &e.current) {
            let plainer: Vec<i64> = match e.problem.params[param].domain {
                Domain::Choice { .. } => {
                    e.problem.params[param].choices().into_iter().filter(|v| *v < e.current[param]).collect()
                }
                Domain::Integer { .. } => vec![e.problem.params[param].least()],
            };
            'values: for value in plainer {
                for candidate in candidates(e, param, value) {
                    if e.consider(&candidate, self.name())? {
                        break 'values;
                    }
                }
            }
        }
        Ok(e.ladder.len() > before)
    }
}

fn candidates(e: &Engine, param: usize, value: i64) -> Vec<Assignment> {
    let sizes: Vec<usize> =
        e.integers(&e.current).into_iter().filter(|i| e.problem.params[*i].role == Role::Size).collect();
    let mut bases = vec![e.current.clone()];
    for (i, a) in sizes.iter().enumerate() {
        for b in &sizes[i + 1..] {
            let mut swapped = e.current.clone();
            swapped.0.swap(*a, *b);
            bases.push(swapped);
        }
    }
    let mut out = vec![];
    for base in bases {
        for follow in [Follow::Packed, Follow::Held] {
            out.extend(with(e, &base, param, value, follow));
        }
    }
    out.dedup();
    out
}

/// `base` with one value changed and what depends on it repaired; `base` itself need not be valid.
fn with(e: &Engine, base: &Assignment, param: usize, value: i64, follow: Follow) -> Option<Assignment> {
    Line::new(e.problem, base, &[param], follow).at(value).or_else(|| {
        let mut values = base.clone();
        values[param] = value;
        let free = |i: usize| i != param && is_free(e.problem, i) && !e.problem.params[i].is_choice();
        e.problem.repair(&mut values, free).then_some(values)
    })
}
