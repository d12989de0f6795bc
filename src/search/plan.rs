//! From a kind to a group: a base case that fixes the layout, and variations on it.

use super::aliasing;
use super::directed::{self, EXTENT};
use super::draw::Draw;
use super::edges::{self, Sizes};
use super::group::{Group, Origin, Planned};
use super::mutate;
use super::placing;
use super::space::{Comb, Space};
use crate::problem::{Assignment, Case, Knobs, Placement};

/// How the cases after the first one of a group are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Vary {
    /// Sizes stay, move by one, or are drawn anew up to 12; choices flip.
    Step,
    /// Sizes and choices are drawn anew.
    Redraw(Sizes),
    /// One or two changes.
    Mutate,
}

/// The base case of a group, and what its variations may do.
struct Plan {
    origin: Origin,
    base: Assignment,
    comb: Comb,
    vary: Vary,
    placement: Placement,
    knobs: Knobs,
}

/// Draws one group of up to `size` cases. `corpus` is what mutation starts from.
pub(super) fn group(space: &Space, draw: &mut Draw<'_>, corpus: &[Case], number: u64, size: usize) -> Group {
    let w = &space.options.weights;
    let mutation = if corpus.is_empty() { 0 } else { w.mutation };
    let directed = if space.line_weight() == 0 { 0 } else { w.directed };
    let table = [
        (directed, Origin::Directed),
        (w.edge, Origin::Edge),
        (w.random, Origin::Random),
        (mutation, Origin::Mutation),
    ];
    let origin = draw.weighted(&table).unwrap_or(Origin::Random);
    let placement = space.options.placement.unwrap_or_else(|| placing::draw(draw));
    let knobs = knobs(space, draw);
    let plan = match origin {
        Origin::Directed => directed::base(space, draw, placement).map(|base| {
            let comb = if space.follows() { Comb::Follow } else { Comb::Fixed };
            Plan { origin, base, comb, vary: Vary::Step, placement, knobs: knobs.clone() }
        }),
        Origin::Mutation => draw.pick(corpus).and_then(|entry| mutation_of(space, draw, entry, placement, &knobs)),
        _ => None,
    };
    let plan = plan.unwrap_or_else(|| drawn(space, draw, origin, placement, knobs));
    finish(space, draw, plan, number, size)
}

/// The group of a seed case: the case itself, or what of it fits the caps, and changes of it.
pub(super) fn seed_group(
    space: &Space,
    draw: &mut Draw<'_>,
    seed: &Case,
    index: usize,
    number: u64,
    size: usize,
) -> Group {
    let placement = space.options.placement.unwrap_or(seed.placement);
    let mut base = seed.params.clone();
    let knobs = known_knobs(space, &seed.knobs, knobs(space, draw));
    if space.settle(&mut base, Comb::Free).is_none() {
        base = space.plainest().clone();
    }
    let comb = comb_of(space, &base);
    let whole = base.clone();
    if space.fit(&mut base, if comb == Comb::Follow { comb } else { Comb::Free }).is_none() {
        base = space.plainest().clone();
    }
    let origin = Origin::Seed { index, fitted: base != whole };
    finish(space, draw, Plan { origin, base, comb, vary: Vary::Mutate, placement, knobs }, number, size)
}

/// Packed cases keep their strides packed, others keep their strides.
fn comb_of(space: &Space, values: &Assignment) -> Comb {
    let mut packed = values.clone();
    if space.follows() || (space.settle(&mut packed, Comb::Follow).is_some() && packed == *values) {
        Comb::Follow
    } else {
        Comb::Fixed
    }
}

/// A base around an edge, or of any magnitude.
fn drawn(space: &Space, draw: &mut Draw<'_>, origin: Origin, placement: Placement, knobs: Knobs) -> Plan {
    let origin = if origin == Origin::Edge { origin } else { Origin::Random };
    let sizes = match origin {
        Origin::Edge => Sizes::Edge,
        _ => *draw.pick(&[Sizes::Cube, Sizes::Thin, Sizes::Thin, Sizes::Tiny]).unwrap_or(&Sizes::Cube),
    };
    let packed = match origin {
        Origin::Edge => draw.chance(2, 3),
        _ => sizes != Sizes::Tiny && draw.chance(1, 2),
    };
    let comb = if space.follows() || packed { Comb::Follow } else { Comb::Free };
    let mut base = space.plainest().clone();
    edges::redraw(space, draw, &mut base, sizes);
    if comb == Comb::Free && space.settle(&mut base, comb).is_some() {
        edges::redraw_strides(space, draw, &mut base, origin == Origin::Edge);
    }
    if space.fit(&mut base, comb).is_none() {
        base = space.plainest().clone();
    }
    let comb = if comb == Comb::Follow { comb } else { Comb::Fixed };
    Plan { origin, base, comb, vary: Vary::Redraw(sizes), placement, knobs }
}

/// A base one or two changes away from a case of the corpus.
fn mutation_of(space: &Space, draw: &mut Draw<'_>, entry: &Case, drawn: Placement, knobs: &Knobs) -> Option<Plan> {
    let keep = draw.chance(3, 5) && space.options.placement.is_none();
    let placement = if keep { entry.placement } else { drawn };
    let knobs = if draw.chance(1, 2) { known_knobs(space, &entry.knobs, knobs.clone()) } else { knobs.clone() };
    let mut base = entry.params.clone();
    let mut comb = comb_of(space, &base);
    if !space.follows() && draw.chance(1, 2) {
        mutate::stride(space, draw, &mut base);
        comb = Comb::Fixed;
    } else {
        mutate::size_or_choice(space, draw, &mut base);
    }
    let moving = if comb == Comb::Follow { comb } else { Comb::Free };
    space.fit(&mut base, moving)?;
    Some(Plan { origin: Origin::Mutation, base, comb, vary: Vary::Mutate, placement, knobs })
}

/// The base and its variations, each a valid case within the caps, none twice.
fn finish(space: &Space, draw: &mut Draw<'_>, plan: Plan, number: u64, size: usize) -> Group {
    let mut cases: Vec<Planned> = Vec::with_capacity(size);
    let page = space.options.limits.page_bytes;
    for turn in 0..size + size / 2 {
        if cases.len() == size {
            break;
        }
        let mut values = plan.base.clone();
        if turn > 0 {
            vary(space, draw, &mut values, plan.vary, plan.comb);
            if values == plan.base {
                continue;
            }
        }
        let Some(views) = space.fit(&mut values, plan.comb) else { continue };
        if cases.iter().any(|c| c.case.params == values) {
            continue;
        }
        let can_be_silent = aliasing::can_be_silent(&views, plan.placement, page);
        let case = Case { params: values, knobs: plan.knobs.clone(), placement: plan.placement };
        cases.push(Planned { case, can_be_silent });
    }
    if cases.is_empty() {
        let case = Case { params: space.plainest().clone(), knobs: plan.knobs, placement: plan.placement };
        cases.push(Planned { case, can_be_silent: false });
    }
    Group { number, placement: plan.placement, cases, origin: plan.origin }
}

fn vary(space: &Space, draw: &mut Draw<'_>, values: &mut Assignment, how: Vary, comb: Comb) {
    match how {
        Vary::Mutate => {
            for _ in 0..=draw.below(2) {
                mutate::size_or_choice(space, draw, values);
            }
        }
        Vary::Step => {
            for &s in &space.sizes {
                let p = &space.problem.params[s];
                let rare = space.sticky[s] && comb == Comb::Fixed;
                let wanted = match draw.below(if rare { 24 } else { 8 }) {
                    0 => values[s].saturating_add(p.step()),
                    1 => values[s].saturating_sub(p.step()),
                    2 => draw.between(1, EXTENT),
                    _ => continue,
                };
                values[s] = p.round_down(wanted).or_else(|| p.round_up(wanted)).unwrap_or(values[s]);
            }
            flip(space, draw, values, comb);
        }
        Vary::Redraw(sizes) => {
            let long = draw.pick(&space.sizes).copied();
            for &s in &space.sizes {
                if !(space.sticky[s] && comb == Comb::Fixed && draw.chance(3, 4)) {
                    values[s] = edges::size(space, draw, &space.problem.params[s], sizes, Some(s) == long);
                }
            }
            flip(space, draw, values, comb);
        }
    }
}

/// Draws some of the choices anew.
fn flip(space: &Space, draw: &mut Draw<'_>, values: &mut Assignment, comb: Comb) {
    for &c in &space.choices {
        if !space.is_comb(c, comb) && draw.chance(1, 4) {
            values[c] = draw.pick(&space.problem.params[c].choices()).copied().unwrap_or(values[c]);
        }
    }
}

/// One value per knob, the plainest in half of the draws.
fn knobs(space: &Space, draw: &mut Draw<'_>) -> Knobs {
    let mut out = Knobs::new();
    for (name, values) in &space.options.knobs {
        let value = if draw.chance(1, 2) { values.first() } else { draw.pick(values) };
        if let Some(v) = value {
            out.insert(name.clone(), v.clone());
        }
    }
    out
}

/// The knobs of a case where this run has them, else those drawn.
fn known_knobs(space: &Space, of: &Knobs, mut drawn: Knobs) -> Knobs {
    for (name, value) in of {
        if space.options.knobs.get(name).is_some_and(|known| known.contains(value)) {
            drawn.insert(name.clone(), value.clone());
        }
    }
    drawn
}
