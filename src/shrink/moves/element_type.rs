use super::super::engine::Engine;
use super::super::line::{Follow, Line, is_free};
use super::Move;
use crate::exec::ProbeError;
use crate::problem::{self, Assignment};

/// Changes the element type to a plainer one at constant bytes: what counts bytes keeps its offsets, in other elements.
///
/// Before: `dtype=f64 n=2 ldb=268435456`. After: `dtype=f32 n=2 ldb=536870912`.
pub struct ElementType;

impl Move for ElementType {
    fn name(&self) -> &'static str {
        "change element type"
    }

    fn run(&self, e: &mut Engine) -> Result<bool, ProbeError> {
        let before = e.ladder.len();
        for param in types(e) {
            for value in e.problem.params[param].choices() {
                if value >= e.current[param] {
                    break;
                }
                for candidate in scaled(e, param, value) {
                    if e.consider(&candidate, self.name())? {
                        break;
                    }
                }
            }
        }
        Ok(e.ladder.len() > before)
    }
}

/// Free choices that name an operand's element type.
fn types(e: &Engine) -> Vec<usize> {
    let mut params: Vec<usize> = e
        .problem
        .operands
        .iter()
        .filter_map(|o| match &o.element {
            problem::ElementType::Param { param, .. } => Some(*param),
            _ => None,
        })
        .filter(|p| is_free(e.problem, *p))
        .collect();
    params.sort_unstable();
    params.dedup();
    params
}

/// The case with the new type and one integer scaled to the same bytes; then all strides scaled.
fn scaled(e: &Engine, param: usize, value: i64) -> Vec<Assignment> {
    let mut plain = e.current.clone();
    plain[param] = value;
    let Some(operand) = e
        .problem
        .operands
        .iter()
        .position(|o| matches!(&o.element, problem::ElementType::Param { param: p, .. } if *p == param))
    else {
        return vec![];
    };
    let old = i128::from(e.problem.element_bytes(operand, &e.current.0));
    let new = i128::from(e.problem.element_bytes(operand, &plain.0));
    let scale = |v: i64| i64::try_from((i128::from(v) * old + new - 1) / new).ok();
    let mut out = vec![];
    let mut all = plain.clone();
    for i in e.integers(&e.current) {
        let line = Line::new(e.problem, &plain, &[i], Follow::Packed);
        if let Some(v) = scale(e.current[i]).filter(|v| *v != e.current[i]) {
            out.extend(line.round_up(v).and_then(|v| line.at(v)));
            if super::super::line::follows(e.problem, i) {
                all[i] = v;
            }
        }
    }
    let free = |i: usize| super::super::line::follows(e.problem, i) && is_free(e.problem, i);
    if e.problem.repair(&mut all, free) {
        out.push(all);
    }
    out
}
