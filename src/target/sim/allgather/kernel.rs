//! The all-gather kernels of iris (ROCm/iris, `ccl/triton/all_gather.py`): every rank pushes its rows into its block of every
//! rank's output.
//!
//! The heap is symmetric: a store to a peer computes the pointer against the rank's own output first and then moves it by
//! the distance between the two heaps, so an offset that has wrapped before stays wrapped.

use crate::target::sim::element::{load, store};
use crate::target::sim::grid::{Grid, Groups, tiles};
use crate::target::sim::index::Index;

/// Programs of the persistent kernel (a GPU's communication units): program p takes tiles p, p + 64, ...
const PROGRAMS: u64 = 64;

/// One call: every rank has `rows` x `columns` elements, `stride_in` and `stride_out` elements between rows.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub ranks: i64,
    pub rows: i64,
    pub columns: i64,
    pub stride_in: i64,
    pub stride_out: i64,
    pub in_place: bool,
    pub element_bytes: i64,
    /// Rows and columns of a tile.
    pub tile: [i64; 2],
}

impl Shape {
    /// Tiles along the rows, along the columns, and ranks. A work-group is a tile of one rank, on its way to every rank.
    pub fn grid(&self) -> Grid {
        Grid { counts: [tiles(self.rows, self.tile[0]), tiles(self.columns, self.tile[1]), self.ranks] }
    }

    /// Rows and columns that a tile covers, first and one past the last, masked at the edges.
    pub fn tile_at(&self, at: [i64; 3]) -> [(i64, i64); 2] {
        let (row, column) = (at[0] * self.tile[0], at[1] * self.tile[1]);
        [(row, (row + self.tile[0]).min(self.rows)), (column, (column + self.tile[1]).min(self.columns))]
    }
}

/// `rm_input * stride_in_m + rn`, elements from the rank's input.
#[inline(always)]
pub fn input_offset<I: Index>(s: &Shape, row: i64, column: i64) -> i64 {
    (I::of(row) * I::of(s.stride_in) + I::of(column)).wide()
}

/// `rm_output = rm_input + rank * M`, then `rm_output * stride_out_m + rn * 1`, elements from an output.
#[inline(always)]
pub fn output_offset<I: Index>(s: &Shape, rank: i64, row: i64, column: i64) -> i64 {
    let output_row = I::of(row) + I::of(rank) * I::of(s.rows);
    (output_row * I::of(s.stride_out) + I::of(column) * I::of(1)).wide()
}

/// Addresses of one launch, by rank: the first element that the rank contributes, and its output.
#[derive(Debug)]
pub struct Heap {
    pub inputs: Vec<*mut u8>,
    pub outputs: Vec<*mut u8>,
}

impl Heap {
    /// A pointer into `from`'s output, as the same place in `to`'s.
    fn translate(&self, pointer: *mut u8, from: usize, to: usize) -> *mut u8 {
        let delta = (self.outputs[to] as isize).wrapping_sub(self.outputs[from] as isize);
        pointer.wrapping_offset(delta)
    }
}

/// The persistent kernel: each program loops over tiles and sends a tile to every rank.
///
/// # Safety
/// The base addresses are aligned for `T`; what the groups of a right kernel touch is mapped. A wrong kernel may end the
/// process.
pub unsafe fn persistent<T: Copy, I: Index>(s: &Shape, heap: &Heap, rank: i64, groups: Groups) {
    for program in 0..PROGRAMS {
        let mut tile = |id: u64| {
            for destination in 0..s.ranks {
                // SAFETY: passed on from the caller.
                unsafe { push::<T, I>(s, heap, rank, id, destination) }
            }
        };
        // The tiles of a program in turn, as `for tile in range(pid, tiles, PROGRAMS)` visits them.
        of_program(s, groups, rank, program, &mut tile);
    }
}

/// The partitioned kernel: each group of programs serves one destination and sends it every tile.
///
/// # Safety
/// As for [`persistent`].
pub unsafe fn partitioned<T: Copy, I: Index>(s: &Shape, heap: &Heap, rank: i64, groups: Groups) {
    for destination in 0..s.ranks {
        let mut tile = |id: u64| {
            // SAFETY: passed on from the caller.
            unsafe { push::<T, I>(s, heap, rank, id, destination) }
        };
        of_rank(s, groups, rank, &mut tile);
    }
}

/// Numbers of the work-groups of a rank: from the first to one past the last.
fn range_of(s: &Shape, rank: i64) -> std::ops::Range<u64> {
    let grid = s.grid();
    grid.id([0, 0, rank])..grid.id([0, 0, rank + 1])
}

fn of_rank(s: &Shape, groups: Groups, rank: i64, tile: &mut impl FnMut(u64)) {
    let range = range_of(s, rank);
    match groups {
        Groups::All(_) => range.for_each(tile),
        Groups::Only(list) => list.iter().copied().filter(|id| range.contains(id)).for_each(tile),
    }
}

fn of_program(s: &Shape, groups: Groups, rank: i64, program: u64, tile: &mut impl FnMut(u64)) {
    let range = range_of(s, rank);
    match groups {
        Groups::All(_) => (range.start + program..range.end).step_by(PROGRAMS as usize).for_each(tile),
        Groups::Only(list) => {
            let mine = |id: &u64| range.contains(id) && (id - range.start) % PROGRAMS == program;
            list.iter().copied().filter(mine).for_each(tile);
        }
    }
}

/// Sends one tile to one rank.
unsafe fn push<T: Copy, I: Index>(s: &Shape, heap: &Heap, rank: i64, group: u64, destination: i64) {
    let [rows, columns] = s.tile_at(s.grid().group(group));
    let (from, to) = (rank as usize, destination as usize);
    for row in rows.0..rows.1 {
        for column in columns.0..columns.1 {
            // SAFETY: passed on from the caller.
            let value: T = unsafe { load(heap.inputs[from], input_offset::<I>(s, row, column)) };
            let offset = output_offset::<I>(s, rank, row, column);
            let pointer = heap.outputs[from].cast::<T>().wrapping_offset(offset as isize).cast();
            // SAFETY: passed on from the caller.
            unsafe { store(heap.translate(pointer, from, to), 0, value) };
        }
    }
}
