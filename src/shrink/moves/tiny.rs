//! All cases of very little work, each with one integer raised to where a hypothesis expects the line.

use super::super::beliefs::{Agreement, Id};
use super::super::engine::Engine;
use super::super::line::{Follow, Line, follows, is_free};
use super::super::order::{Key, can_be_feature, features};
use crate::exec::ProbeError;
use crate::problem::{Assignment, Problem, Role};
use std::collections::BTreeMap;

/// Values of one size that are combined.
const VALUES: usize = 8;
/// Combinations of sizes looked at for one set of features.
const COMBINATIONS: usize = 2000;

/// Which integers are solved for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Solve {
    /// Strides and offsets: the work stays tiny.
    Strides,
    /// Sizes, counts and ranks: for problems whose strides are not free.
    Sizes,
}

/// What to enumerate.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Largest work, in multiples of the least.
    pub work: i128,
    pub agreement: Agreement,
    pub solve: Solve,
}

struct Candidate {
    case: Assignment,
    /// The integer solved for, and the hypotheses that expect the line there; none for a packed case.
    solved: Option<(usize, Vec<Id>)>,
}

/// Tries the tiny cases of a plan, smallest first; stops at the first that is accepted.
pub fn try_all(e: &mut Engine, plan: Plan, by: &'static str) -> Result<bool, ProbeError> {
    for kept in subsets(&features(e.problem, &e.current)) {
        let Some(base) = base(e, &kept) else { continue };
        for (_, sizes) in combinations(e.problem, &base, plan.work) {
            for (_, candidate) in candidates(e, &sizes, plan) {
                let accepted = match &candidate.solved {
                    None => e.consider(&candidate.case, by)?,
                    Some((param, ids)) => {
                        ids.iter().any(|id| e.beliefs.agrees(*id, plan.agreement))
                            && e.consider_solved(&candidate.case, *param, by)?
                    }
                };
                if accepted {
                    return Ok(true);
                }
            }
        }
    }
    Ok(false)
}

/// Which features to keep: all subsets of up to three, else none, each alone, and all.
fn subsets(features: &[usize]) -> Vec<Vec<usize>> {
    if features.len() > 3 {
        let single = features.iter().map(|f| vec![*f]);
        return [vec![]].into_iter().chain(single).chain([features.to_vec()]).collect();
    }
    let pick = |mask: u32| features.iter().enumerate().filter(|(i, _)| mask & (1 << i) != 0).map(|(_, f)| *f).collect();
    let mut all: Vec<Vec<usize>> = (0..1 << features.len()).map(pick).collect();
    all.sort_by_key(Vec::len);
    all
}

/// The current case with the other features dropped, sizes at their least and strides packed. A count that is kept is
/// one step above its least: it would be no feature otherwise.
fn base(e: &Engine, kept: &[usize]) -> Option<Assignment> {
    let mut values = e.current.clone();
    for (i, p) in e.problem.params.iter().enumerate() {
        if !can_be_feature(e.problem, i) || !kept.contains(&i) {
            values[i] = p.least();
        } else if p.role == Role::Count && !p.is_choice() {
            values[i] = p.round_up(p.least().saturating_add(1))?;
        }
    }
    let free = |i: usize| is_free(e.problem, i) && !e.problem.params[i].is_choice();
    e.problem.repair(&mut values, free).then_some(values)
}

/// Small values of all sizes (and kept counts) together, by work.
fn combinations(problem: &Problem, base: &Assignment, factor: i128) -> BTreeMap<i128, Vec<Assignment>> {
    let limit = problem.work(base).max(1).saturating_mul(factor);
    let axes: Vec<usize> = (0..problem.params.len())
        .filter(|i| {
            let p = &problem.params[*i];
            let kept = p.role == Role::Count && base[*i] > p.least();
            !p.is_choice() && is_free(problem, *i) && (matches!(p.role, Role::Size | Role::Ranks) || kept)
        })
        .collect();
    let mut all = vec![base.clone()];
    for axis in axes {
        let mut wider = vec![];
        for values in &all {
            let line = Line::new(problem, values, &[axis], Follow::Packed);
            let mut at = Some(line.value());
            for _ in 0..VALUES {
                let Some(v) = at else { break };
                let Some(case) = line.at(v) else { break };
                if problem.work(&case) > limit || wider.len() >= COMBINATIONS {
                    break;
                }
                wider.push(case);
                at = line.round_up(v.saturating_add(1));
            }
        }
        all = wider;
    }
    let mut by_work: BTreeMap<i128, Vec<Assignment>> = BTreeMap::new();
    for values in all {
        by_work.entry(problem.work(&values)).or_default().push(values);
    }
    by_work
}

/// The packed cases and those with one integer solved for, smaller than the current case, in order.
fn candidates(e: &Engine, sizes: &[Assignment], plan: Plan) -> BTreeMap<Key, Candidate> {
    let mut out = BTreeMap::new();
    for base in sizes {
        insert(e, &mut out, base.clone(), None);
        for param in e.integers(base) {
            let p = &e.problem.params[param];
            let wanted = match plan.solve {
                Solve::Strides => follows(e.problem, param) || p.role == Role::Offset && base[param] > p.least(),
                Solve::Sizes => {
                    matches!(p.role, Role::Size | Role::Ranks) || p.role == Role::Count && base[param] > p.least()
                }
            };
            if !wanted {
                continue;
            }
            let follow = if plan.solve == Solve::Strides { Follow::Held } else { Follow::Packed };
            let line = Line::new(e.problem, base, &[param], follow);
            let low = if p.role == Role::Offset { p.least() } else { line.value() };
            for (v, ids) in e.beliefs.crossings(e.problem, &line, low, p.most(), plan.agreement) {
                if let Some(case) = line.at(v) {
                    insert(e, &mut out, case, Some((param, ids)));
                }
            }
        }
    }
    out
}

fn insert(e: &Engine, out: &mut BTreeMap<Key, Candidate>, case: Assignment, solved: Option<(usize, Vec<Id>)>) {
    let key = Key::of(e.problem, &case);
    if key < *e.key() {
        out.entry(key).or_insert(Candidate { case, solved });
    }
}
