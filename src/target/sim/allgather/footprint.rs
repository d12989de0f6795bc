//! Which tiles of an all-gather are pushed under the caps, and which elements those touch.

use super::kernel::Shape;
use crate::exec::verdict::Sample;
use crate::problem::allgather::{IN, OUT, OWN};
use crate::target::sim::sample::{Cost, pick, worthwhile};
use crate::target::{Caps, Footprint, IndexBox};

/// Footprint of playing every rank, or `only` one.
pub fn footprint(s: &Shape, only: Option<i64>, seed: u64, caps: &Caps) -> Footprint {
    let all = [(0, s.rows), (0, s.columns)];
    match only {
        None if cost_of(s, all).times(s.ranks).is_cheap(caps) => Footprint::Whole,
        None => sampled(s, 0..s.ranks, seed, caps),
        Some(rank) if cost_of(s, all).is_cheap(caps) => {
            let grid = s.grid();
            let groups: Vec<u64> = (grid.id([0, 0, rank])..grid.id([0, 0, rank + 1])).collect();
            let count = groups.len() as u64;
            let sample = Sample { groups: count, of: count, extremes: true };
            Footprint::Part { sample, boxes: boxes_of(s, rank, all), groups }
        }
        Some(rank) => sampled(s, rank..rank + 1, seed, caps),
    }
}

/// The lowest offsets lie in the first tile of the first rank that plays, the highest in the last tile of the last one.
fn sampled(s: &Shape, ranks: std::ops::Range<i64>, seed: u64, caps: &Caps) -> Footprint {
    let grid = s.grid();
    let [last_m, last_n, _] = grid.last();
    let needed = [[last_m, last_n, ranks.end - 1], [0, 0, ranks.start]];
    let mut wished: Vec<[i64; 3]> = ranks.clone().rev().map(|r| [last_m, last_n, r]).collect();
    wished.extend(ranks.clone().map(|r| [0, 0, r]));
    wished.extend(worthwhile(&grid, seed).into_iter().filter(|at| ranks.contains(&at[2])));
    match pick(&grid, &needed, &wished, caps, |at| cost_of(s, s.tile_at(at))) {
        Err(why) => Footprint::Skipped(why),
        Ok(groups) => {
            let of = grid.total() / s.ranks as u64 * (ranks.end - ranks.start) as u64;
            let sample = Sample { groups: groups.len() as u64, of, extremes: true };
            let tile = |id: &u64| {
                let at = grid.group(*id);
                boxes_of(s, at[2], s.tile_at(at))
            };
            Footprint::Part { sample, boxes: groups.iter().flat_map(tile).collect(), groups }
        }
    }
}

/// Cost of pushing a rectangle of one rank's rows to every rank.
fn cost_of(s: &Shape, [rows, columns]: [(i64, i64); 2]) -> Cost {
    let (m, n) = (rows.1 - rows.0, columns.1 - columns.0);
    let memory = |stride| Cost::of_box(&[(m, stride), (n, 1)], s.element_bytes);
    let input = if s.in_place { Cost::default() } else { memory(s.stride_in) };
    let work = i128::from(m) * i128::from(n) * i128::from(s.ranks);
    Cost { work, ..input + memory(s.stride_out).times(s.ranks) }
}

/// The elements that a rectangle of one rank's rows is read from and written to.
fn boxes_of(s: &Shape, rank: i64, tile: [(i64, i64); 2]) -> Vec<IndexBox> {
    let input = if s.in_place { OWN } else { IN };
    let mut boxes = vec![IndexBox { operand: input, copy: rank as u32, ranges: tile.to_vec() }];
    for copy in 0..s.ranks as u32 {
        boxes.push(IndexBox { operand: OUT, copy, ranges: vec![(rank, rank + 1), tile[0], tile[1]] });
    }
    boxes
}
