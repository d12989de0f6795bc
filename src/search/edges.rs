//! Sizes worth trying without any hypothesis: around multiples of tile sizes, small, and of any magnitude.

use super::directed::EXTENT;
use super::draw::Draw;
use super::space::Space;
use crate::problem::{Assignment, Param, Role};

/// Widths of tiles, vectors and unrolled loops of real kernels.
pub(super) const TILES: [i64; 8] = [16, 32, 48, 64, 96, 128, 192, 256];
/// Largest extent of the small packed shapes.
const SMALL: i64 = 40;
/// Largest extent of the shapes that still run in an instant.
const MEDIUM: i64 = 300;
/// Largest number of copies or repetitions of an edge case.
const FEW: i64 = 8;

/// A case that is run whole costs what its size is: of the sizes that might reach up to the work cap one in so many may.
const FULL: u64 = 16;
/// The longest size of a thin case in the others: this part of the cap.
const THIN_PART: i64 = 16;

/// A size around a multiple of a tile, a small one, or a medium one.
pub(super) fn edge_size(draw: &mut Draw<'_>) -> i64 {
    match draw.below(10) {
        0..=3 => near_tile(draw),
        4..=6 => draw.between(1, SMALL),
        _ => draw.between(1, MEDIUM),
    }
}

/// A multiple of a tile size, most often one off.
pub(super) fn near_tile(draw: &mut Draw<'_>) -> i64 {
    let tile = draw.pick(&TILES).copied().unwrap_or(64);
    let off = match draw.below(8) {
        0 | 1 => 0,
        2 | 3 => 1,
        4 | 5 => -1,
        _ => draw.between(-8, 8),
    };
    (tile * draw.between(1, 4) + off).max(1)
}

/// How the sizes of one group are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sizes {
    /// Around edges.
    Edge,
    /// All of about the same magnitude.
    Cube,
    /// One long, the others tiny.
    Thin,
    /// Up to [`EXTENT`].
    Tiny,
}

/// One size parameter, drawn anew.
pub(super) fn size(space: &Space, draw: &mut Draw<'_>, p: &Param, sizes: Sizes, long: bool) -> i64 {
    let limits = &space.options.limits;
    let work = i64::try_from(limits.work).unwrap_or(i64::MAX);
    let (cube, thin) = match limits.sampled || draw.chance(1, FULL) {
        true => (work, work),
        // Two such sizes make a case of the largest work; three are cut.
        false => (work.isqrt().max(1), (work / THIN_PART).max(1)),
    };
    // What runs as a sample may be of any length: launch limits lie far above what can be run whole.
    let longest = if limits.sampled && draw.chance(1, 2) { p.most() } else { thin.min(p.most()) };
    let wanted = match (p.role, sizes) {
        (Role::Count, Sizes::Thin) if long => draw.log(1, longest),
        (Role::Count, _) => {
            if draw.chance(2, 3) {
                1
            } else {
                draw.between(1, FEW)
            }
        }
        (Role::Ranks, _) => draw.between(1, FEW),
        (_, Sizes::Edge) => edge_size(draw),
        (_, Sizes::Cube) => draw.log(1, cube.min(p.most())),
        (_, Sizes::Thin) => {
            if long {
                draw.log(1, longest)
            } else {
                draw.between(1, 4)
            }
        }
        (_, Sizes::Tiny) => draw.between(1, EXTENT),
    };
    p.round_up(wanted).unwrap_or_else(|| p.most())
}

/// Draws all sizes, and every choice with a lean to the plainest.
pub(super) fn redraw(space: &Space, draw: &mut Draw<'_>, values: &mut Assignment, sizes: Sizes) {
    let long = draw.pick(&space.sizes).copied();
    for &s in &space.sizes {
        values[s] = size(space, draw, &space.problem.params[s], sizes, Some(s) == long);
    }
    for &c in &space.choices {
        let p = &space.problem.params[c];
        values[c] = if draw.chance(1, 2) { draw.pick(&p.choices()).copied().unwrap_or(values[c]) } else { p.least() };
    }
}

/// Draws the strides of a case whose sizes are drawn: packed, padded a little, or of any magnitude; offsets mostly 0.
pub(super) fn redraw_strides(space: &Space, draw: &mut Draw<'_>, values: &mut Assignment, padded_only: bool) {
    for &s in &space.strides {
        let p = &space.problem.params[s];
        let (low, high) = space.problem.bounds(s, &values.0);
        let wanted = match draw.below(if padded_only { 6 } else { 10 }) {
            0..=2 => low,
            3 | 4 => low.saturating_add(draw.between(1, 8)),
            5 => low.saturating_add(draw.pick(&TILES).copied().unwrap_or(64)),
            _ => draw.log(low, high),
        };
        values[s] = p.round_up(wanted).or_else(|| p.round_down(wanted)).unwrap_or(values[s]);
    }
    for &o in &space.offsets {
        let p = &space.problem.params[o];
        let wanted = match draw.below(8) {
            0 if !padded_only => draw.log(p.least(), p.most()),
            1 => p.least().saturating_add(draw.between(1, 64)),
            _ => p.least(),
        };
        values[o] = p.round_down(wanted).unwrap_or(values[o]);
    }
}
