//! The gemm kernel: a macro tile of the result per work-group, a K loop in steps of the unroll, panels in local memory.
//!
//! Every method of [`Kernel`] has the right arithmetic as its default; a model overrides the piece that it gets wrong.

use super::shape::Shape;
use crate::target::sim::element::{Element, load, store};
use crate::target::sim::grid::{Groups, tiles};

/// The arithmetic of a kernel. Indices are logical: (i, l, z) of op(A), (l, j, z) of op(B), (i, j, z) of the result.
pub trait Kernel {
    /// What the launcher checks before it launches.
    fn check(&self, _s: &Shape) {}

    /// Whether the grid, as the launcher computes it, includes this work-group.
    #[inline(always)]
    fn runs(&self, _s: &Shape, _group: u64) -> bool {
        true
    }

    /// The K block after this one.
    #[inline(always)]
    fn next_block(&self, block: i64) -> i64 {
        block + 1
    }

    /// Rows of A loaded for the tile that starts at row `first`.
    #[inline(always)]
    fn rows_loaded(&self, s: &Shape, first: i64) -> i64 {
        s.rows(first)
    }

    /// Columns of B loaded for the tile that starts at column `first`.
    #[inline(always)]
    fn columns_loaded(&self, s: &Shape, first: i64) -> i64 {
        s.columns(first)
    }

    /// Steps of K loaded of A for the block that starts at `first`.
    #[inline(always)]
    fn depth_of_a(&self, s: &Shape, first: i64) -> i64 {
        s.depth(first)
    }

    /// Steps of K loaded of B for the block that starts at `first`.
    #[inline(always)]
    fn depth_of_b(&self, s: &Shape, first: i64) -> i64 {
        s.depth(first)
    }

    /// Columns stored for the tile that starts at column `first`.
    #[inline(always)]
    fn columns_stored(&self, s: &Shape, first: i64) -> i64 {
        s.columns(first)
    }

    /// Offset of an element of A, elements from the base pointer.
    #[inline(always)]
    fn a(&self, s: &Shape, at: [i64; 3]) -> i64 {
        s.a.at(at)
    }

    /// Offset of an element of B.
    #[inline(always)]
    fn b(&self, s: &Shape, at: [i64; 3]) -> i64 {
        s.b.at(at)
    }

    /// Offset at which an element of the result is stored; `None` where the store is masked or dropped.
    #[inline(always)]
    fn d(&self, s: &Shape, at: [i64; 3]) -> Option<i64> {
        Some(s.d.at(at))
    }
}

/// Base addresses of one launch; `d` is that of C where the result goes to C.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    pub a: *mut u8,
    pub b: *mut u8,
    pub c: *mut u8,
    pub d: *mut u8,
}

/// Local memory of a work-group, column-major: A panel by K step, B panel by column, accumulators by column.
#[derive(Debug, Default)]
pub struct Local {
    a: Vec<f64>,
    b: Vec<f64>,
    sums: Vec<f64>,
}

impl Local {
    fn fit(&mut self, s: &Shape) {
        let (m, n, unroll) = (s.tile.m as usize, s.tile.n as usize, s.tile.unroll as usize);
        self.a.resize(m * unroll, 0.0);
        self.b.resize(n * unroll, 0.0);
        self.sums.resize(m * n, 0.0);
    }
}

/// Runs the work-groups one after another.
///
/// # Safety
/// The base addresses are aligned for `T`; what the groups of a right kernel touch is mapped. A wrong kernel may end the
/// process.
pub unsafe fn run<T: Element, K: Kernel>(kernel: &K, s: &Shape, memory: Memory, groups: Groups, local: &mut Local) {
    kernel.check(s);
    local.fit(s);
    let grid = s.grid();
    groups.each(&mut |id| {
        if kernel.runs(s, id) {
            // SAFETY: passed on from the caller.
            unsafe { work_group::<T, K>(kernel, s, memory, grid.group(id), local) }
        }
    });
}

unsafe fn work_group<T: Element, K: Kernel>(kernel: &K, s: &Shape, memory: Memory, at: [i64; 3], local: &mut Local) {
    let [i0, j0, z] = [at[0] * s.tile.m, at[1] * s.tile.n, at[2]];
    let (rows, columns) = (s.rows(i0), s.columns(j0));
    for sums in local.sums.chunks_exact_mut(s.tile.m as usize).take(kernel.columns_stored(s, j0) as usize) {
        sums[..rows as usize].fill(0.0);
    }
    let blocks = tiles(s.k, s.tile.unroll);
    let mut block = 0;
    while block != blocks {
        let l0 = block * s.tile.unroll;
        let depth = s.depth(l0);
        let (free, steps) = (Lanes::new(i0, kernel.rows_loaded(s, i0), rows), kernel.depth_of_a(s, l0));
        let panel = Panel { base: memory.a, free, steps: Lanes::new(l0, steps, depth), pitch: [1, s.tile.m] };
        // SAFETY: passed on from the caller.
        unsafe { panel.load::<T>(s.a.steps[0] <= s.a.steps[1], &mut local.a, |i, l| kernel.a(s, [i, l, z])) };
        let (free, steps) = (Lanes::new(j0, kernel.columns_loaded(s, j0), columns), kernel.depth_of_b(s, l0));
        let panel = Panel { base: memory.b, free, steps: Lanes::new(l0, steps, depth), pitch: [s.tile.unroll, 1] };
        // SAFETY: passed on from the caller.
        unsafe { panel.load::<T>(s.b.steps[1] <= s.b.steps[0], &mut local.b, |j, l| kernel.b(s, [l, j, z])) };
        multiply(local, s, [rows as usize, columns as usize, depth as usize]);
        block = kernel.next_block(block);
    }
    // SAFETY: passed on from the caller.
    unsafe { epilogue::<T, K>(kernel, s, memory, [i0, j0, z], local) }
}

/// Neighbouring indices along one dimension of a panel.
#[derive(Clone, Copy)]
struct Lanes {
    first: i64,
    /// How many are loaded.
    loaded: i64,
    /// How many of those are part of the operand: the values of the others are discarded.
    kept: i64,
}

impl Lanes {
    fn new(first: i64, loaded: i64, kept: i64) -> Lanes {
        Lanes { first, loaded, kept }
    }
}

/// A block of an operand on its way into local memory.
struct Panel {
    base: *mut u8,
    /// Along m or n.
    free: Lanes,
    /// Along k.
    steps: Lanes,
    /// Distance in local memory along `free` and along `steps`.
    pitch: [i64; 2],
}

impl Panel {
    /// Loads every lane, the one with the smaller stride innermost.
    #[inline(always)]
    unsafe fn load<T: Element>(&self, free_inside: bool, to: &mut [f64], offset: impl Fn(i64, i64) -> i64) {
        let mut lane = |x: i64, y: i64| {
            // SAFETY: passed on from the caller.
            let value: T = unsafe { load(self.base, offset(self.free.first + x, self.steps.first + y)) };
            if x < self.free.kept && y < self.steps.kept {
                to[(x * self.pitch[0] + y * self.pitch[1]) as usize] = value.wide();
            }
        };
        if free_inside {
            (0..self.steps.loaded).for_each(|y| (0..self.free.loaded).for_each(|x| lane(x, y)));
        } else {
            (0..self.free.loaded).for_each(|x| (0..self.steps.loaded).for_each(|y| lane(x, y)));
        }
    }
}

/// Adds the product of the two panels to the sums, four steps of K at a time.
fn multiply(local: &mut Local, s: &Shape, [rows, columns, depth]: [usize; 3]) {
    let (pitch, unroll) = (s.tile.m as usize, s.tile.unroll as usize);
    for (sums, b) in local.sums.chunks_exact_mut(pitch).zip(local.b.chunks_exact(unroll)).take(columns) {
        let sums = &mut sums[..rows];
        let mut panel = local.a.chunks_exact(pitch).map(|a| &a[..rows]);
        let mut steps = b[..depth].chunks_exact(4);
        for b in &mut steps {
            let (Some(a0), Some(a1), Some(a2), Some(a3)) = (panel.next(), panel.next(), panel.next(), panel.next())
            else {
                break;
            };
            for (sum, (((a0, a1), a2), a3)) in sums.iter_mut().zip(a0.iter().zip(a1).zip(a2).zip(a3)) {
                *sum += a0 * b[0] + a1 * b[1] + a2 * b[2] + a3 * b[3];
            }
        }
        for (a, b) in panel.zip(steps.remainder()) {
            for (sum, a) in sums.iter_mut().zip(a) {
                *sum += a * b;
            }
        }
    }
}

/// Stores `alpha * sums + beta * C`.
unsafe fn epilogue<T: Element, K: Kernel>(kernel: &K, s: &Shape, memory: Memory, at: [i64; 3], local: &Local) {
    let [i0, j0, z] = at;
    for j in 0..kernel.columns_stored(s, j0) {
        for i in 0..s.rows(i0) {
            let at = [i0 + i, j0 + j, z];
            let mut value = s.alpha * local.sums[(j * s.tile.m + i) as usize];
            if s.beta != 0.0 && at[1] < s.n {
                // SAFETY: passed on from the caller.
                value += s.beta * unsafe { load::<T>(memory.c, s.c.at(at)) }.wide();
            }
            if let Some(offset) = kernel.d(s, at) {
                // SAFETY: passed on from the caller.
                unsafe { store(memory.d, offset, T::narrow(value)) };
            }
        }
    }
}
