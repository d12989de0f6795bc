//! Changes of one parameter of a case.

use super::draw::Draw;
use super::edges;
use super::space::Space;
use crate::problem::{Assignment, Param, Role};

/// Changes one size or choice; the strides stay.
pub(super) fn size_or_choice(space: &Space, draw: &mut Draw<'_>, values: &mut Assignment) {
    let total = (space.sizes.len() + space.choices.len()) as u64;
    let at = draw.below(total) as usize;
    if let Some(&c) = at.checked_sub(space.sizes.len()).and_then(|i| space.choices.get(i)) {
        values[c] = draw.pick(&space.problem.params[c].choices()).copied().unwrap_or(values[c]);
        return;
    }
    let Some(&s) = space.sizes.get(at) else { return };
    let p = &space.problem.params[s];
    match draw.below(8) {
        0 => {
            if let Some(&other) = draw.pick(&space.sizes) {
                (values[s], values[other]) = (values[other], values[s]);
            }
        }
        1 => {
            if let Some(&other) = draw.pick(&space.sizes) {
                values[s] = values[other];
            }
        }
        2 => values[s] = fitting(p, edges::near_tile(draw)),
        3 => values[s] = p.default.unwrap_or(p.least()),
        _ => values[s] = fitting(p, nearby(draw, values[s])),
    }
}

/// Changes one stride or offset: near where it is, to its packed value, or to what another one is.
pub(super) fn stride(space: &Space, draw: &mut Draw<'_>, values: &mut Assignment) {
    let total = (space.strides.len() + space.offsets.len()) as u64;
    let at = draw.below(total) as usize;
    let Some(&s) = space.strides.iter().chain(&space.offsets).nth(at) else { return };
    let p = &space.problem.params[s];
    let (low, high) = space.problem.bounds(s, &values.0);
    let wanted = match draw.below(8) {
        0 | 1 => low,
        2 => draw.log(low, high),
        3 if p.role == Role::Stride => draw.pick(&space.strides).map_or(low, |other| values[*other]),
        _ => nearby(draw, values[s]),
    };
    values[s] = fitting(p, wanted.clamp(low.min(high), high));
}

/// Doubled, halved, one or 64 up or down.
fn nearby(draw: &mut Draw<'_>, value: i64) -> i64 {
    match draw.below(6) {
        0 => value.saturating_mul(2),
        1 => value / 2,
        2 => value.saturating_add(1),
        3 => value.saturating_sub(1),
        4 => value.saturating_add(64),
        _ => value.saturating_sub(64),
    }
}

/// The allowed value closest from below, else from above.
fn fitting(p: &Param, value: i64) -> i64 {
    p.round_down(value).or_else(|| p.round_up(value)).unwrap_or(p.least())
}
