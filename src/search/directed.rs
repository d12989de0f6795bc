//! Cases around the lines of the hypothesis grammar: solve for the parameter that crosses, step around it.

use super::aliasing;
use super::draw::Draw;
use super::space::{Comb, Profile, Space, Views};
use crate::hypothesis::{Hypothesis, enumerate};
use crate::problem::{Assignment, Placement, Problem, Role};

/// A hypothesis and the parameter that is moved to its line.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    pub hypothesis: Hypothesis,
    pub param: usize,
}

/// Largest extent of the dimensions of a directed case.
pub(super) const EXTENT: i64 = 12;
/// Draws of a line before giving up on this kind of group.
const ATTEMPTS: usize = 8;

/// Every hypothesis with every free integer it depends on, weighted: strides first, because with a huge stride a few
/// elements reach the line; then sizes that strides are computed from, offsets, and extents. 32-bit lines count most.
pub(super) fn lines(space: &Space) -> Vec<(u32, Line)> {
    let problem = &space.problem;
    let mut out = vec![];
    let hypotheses = enumerate(problem);
    for h in &hypotheses {
        let operand = &problem.operands[h.operand];
        let dims = || operand.dims.iter().enumerate().filter(|(d, _)| h.dims & (1 << d) != 0).map(|(_, d)| d);
        let offset = || operand.offset.iter().filter(|_| h.offset).flat_map(|o| o.params());
        let in_stride: Vec<usize> = dims().flat_map(|d| d.stride.params()).chain(offset()).collect();
        let in_extent: Vec<usize> = dims().flat_map(|d| d.extent.params()).collect();
        let width = match h.bits {
            31 => 6,
            32 => 4,
            _ => 1,
        };
        for (i, p) in problem.params.iter().enumerate() {
            if p.is_choice() || p.least() == p.most() || (space.follows() && problem.is_held(i)) {
                continue;
            }
            let role = match p.role {
                Role::Stride if in_stride.contains(&i) => 24,
                Role::Offset if in_stride.contains(&i) => 4,
                _ if in_stride.contains(&i) => 6,
                Role::Ranks if in_extent.contains(&i) => 1,
                _ if in_extent.contains(&i) => 2,
                _ => continue,
            };
            out.push((role * width, Line { hypothesis: *h, param: i }));
        }
    }
    even_out(problem, &mut out);
    out
}

/// Gives every operand the same share, however many dimensions it has.
fn even_out(problem: &Problem, lines: &mut [(u32, Line)]) {
    let mut totals = vec![0u64; problem.operands.len()];
    for (w, line) in lines.iter() {
        totals[line.hypothesis.operand] += u64::from(*w);
    }
    for (w, line) in lines {
        *w = (u64::from(*w) * 10_000_000 / totals[line.hypothesis.operand].max(1)).max(1) as u32;
    }
}

/// A case near a line, with strides of its own; `None` where none was found within a few draws.
pub(super) fn base(space: &Space, draw: &mut Draw<'_>, placement: Placement) -> Option<Assignment> {
    let total: u64 = space.line_weight();
    for attempt in 0..ATTEMPTS {
        let line = space.line_at(draw.below(total))?;
        let mut values = template(space, draw, &line, attempt > 0);
        let comb = if space.follows() { Comb::Follow } else { Comb::Free };
        if space.settle(&mut values, comb).is_none() || !space.problem.is_active(line.param, &values.0) {
            continue;
        }
        let times = if draw.chance(3, 4) { 1 } else { draw.between(2, 5) };
        let Some(at) = solve(space, &line, &values, i128::from(times) << line.hypothesis.bits) else { continue };
        let moved = step(space, draw, &line, &values, at);
        place(space, &mut values, line.param, moved);
        if !space.follows() && draw.chance(7, 8) {
            nudge(space, draw, &mut values, line.param, placement);
        }
        let wanted = values[line.param];
        let small = |v: &Views, values: &Assignment| space.options.limits.allow(&space.problem, values, v);
        if space.settle(&mut values, comb).is_some_and(|v| small(&v, &values)) && values[line.param] == wanted {
            return Some(values);
        }
    }
    None
}

/// Small sizes, plain strides; the sizes of the hypothesis's dimensions at least 2.
fn template(space: &Space, draw: &mut Draw<'_>, line: &Line, any_choice: bool) -> Assignment {
    let problem = &space.problem;
    let mut values = space.plainest().clone();
    for &c in &space.choices {
        if any_choice || draw.chance(1, 2) {
            values[c] = draw.pick(&problem.params[c].choices()).copied().unwrap_or(values[c]);
        }
    }
    let operand = &problem.operands[line.hypothesis.operand];
    let dims = operand.dims.iter().enumerate().filter(|(d, _)| line.hypothesis.dims & (1 << d) != 0);
    let mut involved = 0u64;
    for p in dims.flat_map(|(_, d)| d.extent.params()).filter(|p| *p < 64) {
        involved |= 1 << p;
    }
    for &s in &space.sizes {
        let p = &problem.params[s];
        let wanted = match p.role {
            _ if s < 64 && involved & (1 << s) != 0 => draw.between(2, EXTENT),
            Role::Count => {
                if draw.chance(3, 4) {
                    p.least()
                } else {
                    draw.between(1, 4)
                }
            }
            _ if space.sticky[s] && space.follows() => draw.log(1, 1 << 14),
            _ => draw.between(1, EXTENT),
        };
        values[s] = p.round_up(wanted).unwrap_or_else(|| p.most());
    }
    // Another stride now and then, so that no operand is packed in every directed case.
    for &s in space.strides.iter().filter(|s| **s != line.param) {
        if draw.chance(1, 6) {
            let p = &problem.params[s];
            values[s] = p.round_down(draw.log(p.least(), p.most())).unwrap_or(values[s]);
        }
    }
    if !space.follows() {
        pick_apart(space, draw, &mut values, line);
    }
    values
}

/// Where the line is crossed by a size, its strides must be large enough for a small one to get there.
fn pick_apart(space: &Space, draw: &mut Draw<'_>, values: &mut Assignment, line: &Line) {
    let problem = &space.problem;
    if problem.params[line.param].role == Role::Stride {
        return;
    }
    let operand = &problem.operands[line.hypothesis.operand];
    let dims = operand.dims.iter().enumerate().filter(|(d, _)| line.hypothesis.dims & (1 << d) != 0);
    for p in dims.flat_map(|(_, d)| d.stride.params()) {
        if problem.params[p].role == Role::Stride && space.strides.contains(&p) {
            let reach = (1i64 << line.hypothesis.bits) / draw.between(1, 64);
            values[p] = problem.params[p].round_down(draw.between(reach / 2, reach)).unwrap_or(values[p]);
        }
    }
}

/// The least value of the line's parameter at which the hypothesis's quantity reaches `target`, strides raised or packed
/// with it as the constraints demand.
///
/// The quantity is taken to grow with the parameter. Interpolation finds the crossing of a linear quantity in two or
/// three evaluations; every third step halves, so that any other one is found too.
fn solve(space: &Space, line: &Line, values: &Assignment, target: i128) -> Option<i64> {
    let p = &space.problem.params[line.param];
    let (low, high) = match space.options.profile {
        Profile::Strided => space.problem.bounds(line.param, &values.0),
        Profile::Packed => (p.least(), p.most()),
    };
    let mut at = values.clone();
    let mut quantity = |v: i64| {
        at.0.copy_from_slice(&values.0);
        place(space, &mut at, line.param, v);
        line.hypothesis.quantity(&space.problem, &at)
    };
    let (mut good, mut bad) = (p.round_up(low)?, p.round_down(high)?);
    if good >= bad {
        return None;
    }
    let (mut below, mut above) = (quantity(good)?, quantity(bad)?);
    if below >= target || above < target {
        return None;
    }
    for turn in 1.. {
        let width = i128::from(bad) - i128::from(good);
        if width <= i128::from(p.step()) {
            break;
        }
        let part = if turn % 3 == 0 { 0.5 } else { (target - below) as f64 / (above - below) as f64 };
        let guess = i128::from(good) + ((width as f64 * part).ceil() as i128).clamp(1, width - 1);
        let guess = p.round_down(guess as i64).filter(|g| *g > good).or_else(|| p.round_up(guess as i64))?;
        if guess >= bad {
            break;
        }
        let q = quantity(guess)?;
        if q >= target {
            (bad, above) = (guess, q);
        } else {
            (good, below) = (guess, q);
        }
    }
    Some(bad)
}

/// Sets the parameter and what follows from it.
fn place(space: &Space, values: &mut Assignment, param: usize, value: i64) {
    values[param] = value;
    space.raise(values, param);
}

/// A value near the line, or comfortably past it.
fn step(space: &Space, draw: &mut Draw<'_>, line: &Line, values: &Assignment, at: i64) -> i64 {
    let p = &space.problem.params[line.param];
    let wanted = if draw.chance(1, 4) {
        let high = space.problem.bounds(line.param, &values.0).1;
        draw.between(at, at.saturating_mul(4).min(high))
    } else {
        let steps = draw.weighted(&[(3, 0), (3, 1), (2, -1), (1, 2), (1, -2)]).unwrap_or(0);
        at.saturating_add(p.step().saturating_mul(steps))
    };
    p.round_down(wanted).or_else(|| p.round_up(wanted)).unwrap_or(at)
}

/// Moves a stride on by a few pages where a wrapped offset would otherwise land on pages that the case maps.
fn nudge(space: &Space, draw: &mut Draw<'_>, values: &mut Assignment, param: usize, placement: Placement) {
    let problem = &space.problem;
    let p = &problem.params[param];
    let page = space.options.limits.page_bytes;
    if p.role != Role::Stride {
        return;
    }
    for pages in [0, 1, 2, 5, 11, 23] {
        let mut at = values.clone();
        if pages > 0 {
            let by = pages * page + 2 * draw.between(0, 7) + 1;
            let Some(v) = p.round_down(values[param].saturating_add(by)) else { return };
            place(space, &mut at, param, v);
        }
        if problem.views(&at).is_ok_and(|v| !aliasing::can_be_silent(&v, placement, page)) {
            *values = at;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Builtin;
    use crate::search::Options;
    use proptest::test_runner::{RngAlgorithm, TestRng};
    use std::sync::Arc;

    #[test]
    fn the_solver_agrees_with_the_bisection_of_the_grammar() {
        for name in ["gemm", "allgather"] {
            let problem = Builtin::find(name).unwrap().problem();
            let space = Space::new(Arc::clone(&problem), Options::default()).unwrap();
            let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[3; 32]);
            let mut draw = Draw::new(&mut rng);
            let mut solved = 0;
            for _ in 0..20_000 {
                let line = space.line_at(draw.below(space.line_weight())).unwrap();
                let mut values = template(&space, &mut draw, &line, true);
                if space.settle(&mut values, Comb::Free).is_none() {
                    continue;
                }
                let (low, high) = problem.bounds(line.param, &values.0);
                let Some(at) = solve(&space, &line, &values, line.hypothesis.threshold()) else { continue };
                // Batch strides follow a leading dimension in the solver; the grammar keeps all others.
                let mut followed = values.clone();
                place(&space, &mut followed, line.param, at);
                followed[line.param] = values[line.param];
                if followed != values {
                    continue;
                }
                solved += 1;
                assert_eq!(line.hypothesis.first_crossing(&problem, &values, line.param, low, high), Some(at));
            }
            assert!(solved > 2_000, "{name}: {solved}");
        }
    }
}
