//! Which work-groups of a gemm run under the caps, and which elements those touch.

use super::shape::Shape;
use crate::exec::verdict::Sample;
use crate::problem::Instance;
use crate::problem::gemm::{A, B, C, D};
use crate::target::sim::sample::{Cost, pick, worthwhile};
use crate::target::sim::seed_of;
use crate::target::{Caps, Footprint, IndexBox};
use std::collections::BTreeSet;

pub fn footprint(instance: &Instance, s: &Shape, caps: &Caps) -> Footprint {
    let bytes = s.dtype.bytes() as i64;
    let boxes = |ranges: &Ranges| -> Cost { ranges.list(s).iter().map(|(o, r)| cost_of(s, *o, r, bytes)).sum() };
    let whole = Ranges { i: (0, s.m), j: (0, s.n), l: (0, s.k), z: (0, s.batch) };
    let work = instance.problem.work(&instance.case.params);
    if (Cost { work, ..boxes(&whole) }).is_cheap(caps) {
        return Footprint::Whole;
    }
    let grid = s.grid();
    let cost = |at| {
        let r = Ranges::of(s, at);
        let multiplied = i128::from(r.i.1 - r.i.0) * i128::from(r.j.1 - r.j.0) * i128::from(s.k);
        Cost { work: multiplied, ..boxes(&r) }
    };
    // Strides are not negative: the extreme offsets of every operand are those of the first and the last group.
    let needed = [grid.last(), [0; 3]];
    match pick(&grid, &needed, &worthwhile(&grid, seed_of(instance)), caps, cost) {
        Err(why) => Footprint::Skipped(why),
        Ok(groups) => {
            let sample = Sample { groups: groups.len() as u64, of: grid.total(), extremes: true };
            Footprint::Part { sample, boxes: boxes_of(s, &groups), groups }
        }
    }
}

/// Logical indices that a work-group covers, first and one past the last.
#[derive(Clone, Copy)]
struct Ranges {
    i: (i64, i64),
    j: (i64, i64),
    l: (i64, i64),
    z: (i64, i64),
}

impl Ranges {
    fn of(s: &Shape, at: [i64; 3]) -> Ranges {
        let (i, j, z) = (at[0] * s.tile.m, at[1] * s.tile.n, at[2]);
        Ranges { i: (i, i + s.rows(i)), j: (j, j + s.columns(j)), l: (0, s.k), z: (z, z + 1) }
    }

    /// What is read and written, by operand.
    fn list(&self, s: &Shape) -> Vec<(usize, [(i64, i64); 3])> {
        let result = [self.i, self.j, self.z];
        let mut list = vec![(A, [self.i, self.l, self.z]), (B, [self.l, self.j, self.z])];
        if !s.separate_d || s.beta != 0.0 {
            list.push((C, result));
        }
        if s.separate_d {
            list.push((D, result));
        }
        list
    }
}

fn cost_of(s: &Shape, operand: usize, ranges: &[(i64, i64); 3], bytes: i64) -> Cost {
    let steps = match operand {
        A => s.a.steps,
        B => s.b.steps,
        C => s.c.steps,
        _ => s.d.steps,
    };
    let dims: [(i64, i64); 3] = std::array::from_fn(|d| (ranges[d].1 - ranges[d].0, steps[d]));
    Cost::of_box(&dims, bytes)
}

/// Groups that share a panel of A or B name it once, so boxes of an operand are disjoint.
fn boxes_of(s: &Shape, groups: &[u64]) -> Vec<IndexBox> {
    let grid = s.grid();
    let all: BTreeSet<(usize, [(i64, i64); 3])> =
        groups.iter().flat_map(|id| Ranges::of(s, grid.group(*id)).list(s)).collect();
    all.into_iter().map(|(operand, ranges)| IndexBox { operand, copy: 0, ranges: ranges.to_vec() }).collect()
}
