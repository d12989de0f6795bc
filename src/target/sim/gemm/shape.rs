//! What a gemm launcher reads from its arguments.

use crate::problem::{Dtype, Instance};
use crate::target::sim::grid::{Grid, tiles};
use crate::target::sim::index::Strides;

/// Macro tile of a work-group and depth of one step of its K loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tile {
    pub m: i64,
    pub n: i64,
    pub unroll: i64,
}

/// One call. Element (i, l, z) of op(A) lies at `a.at([i, l, z])`, (l, j, z) of op(B) at `b.at([l, j, z])`,
/// (i, j, z) of C and of the result at `c` and `d`.
#[derive(Debug, Clone)]
pub struct Shape {
    pub m: i64,
    pub n: i64,
    pub k: i64,
    pub batch: i64,
    pub lda: i64,
    pub a: Strides,
    pub b: Strides,
    pub c: Strides,
    /// Of the result: as `c` where the result goes to C.
    pub d: Strides,
    pub separate_d: bool,
    pub alpha: f64,
    pub beta: f64,
    pub dtype: Dtype,
    pub tile: Tile,
}

impl Shape {
    pub fn of(instance: &Instance, tile: Tile) -> Shape {
        let get = |name| instance.get(name);
        let is = |name, word: &str| instance.word(name) == word;
        let number = |name| instance.word(name).parse().unwrap_or(f64::NAN);
        let (lda, ldb, ldc) = (get("lda"), get("ldb"), get("ldc"));
        let (along_m, along_k) = if is("transA", "T") { (lda, 1) } else { (1, lda) };
        let (down_k, along_n) = if is("transB", "T") { (ldb, 1) } else { (1, ldb) };
        let c = Strides { offset: get("offC"), steps: [1, ldc, get("strideC")] };
        let separate_d = is("out", "D");
        let d = if separate_d { Strides { offset: 0, steps: [1, get("ldd"), get("strideD")] } } else { c };
        Shape {
            m: get("m"),
            n: get("n"),
            k: get("k"),
            batch: get("batch"),
            lda,
            a: Strides { offset: get("offA"), steps: [along_m, along_k, get("strideA")] },
            b: Strides { offset: get("offB"), steps: [down_k, along_n, get("strideB")] },
            c,
            d,
            separate_d,
            alpha: number("alpha"),
            beta: number("beta"),
            dtype: Dtype::from_name(&instance.word("dtype")).unwrap_or(Dtype::F32),
            tile,
        }
    }

    /// One work-group per macro tile of each product.
    pub fn grid(&self) -> Grid {
        Grid { counts: [tiles(self.m, self.tile.m), tiles(self.n, self.tile.n), self.batch] }
    }

    /// Rows of the tile that starts at row `first`, masked at the edge.
    pub fn rows(&self, first: i64) -> i64 {
        self.tile.m.min(self.m - first)
    }

    /// Columns of the tile that starts at column `first`, masked at the edge.
    pub fn columns(&self, first: i64) -> i64 {
        self.tile.n.min(self.n - first)
    }

    /// Steps of K from `first` on within one unrolled block, masked at the tail.
    pub fn depth(&self, first: i64) -> i64 {
        self.tile.unroll.min(self.k - first)
    }
}
