//! The gemm models: each overrides the one piece of the kernel that it gets wrong.

use super::kernel::Kernel;
use super::shape::Shape;
use crate::target::sim::grid::round_up;
use std::num::Wrapping;

type I32 = Wrapping<i32>;

/// The operand whose handling is wrong; C means the stores of the result, to C or to D.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    A,
    B,
    C,
}

/// Everything in 64 bits, every edge masked.
pub struct Clean;

impl Kernel for Clean {}

/// All stride terms of one operand multiplied and summed in 32 bits.
pub struct I32Sum(pub Operand);

impl Kernel for I32Sum {
    #[inline(always)]
    fn a(&self, s: &Shape, at: [i64; 3]) -> i64 {
        if self.0 == Operand::A { s.a.narrow_sum::<I32>(at) } else { s.a.at(at) }
    }

    #[inline(always)]
    fn b(&self, s: &Shape, at: [i64; 3]) -> i64 {
        if self.0 == Operand::B { s.b.narrow_sum::<I32>(at) } else { s.b.at(at) }
    }

    #[inline(always)]
    fn d(&self, s: &Shape, at: [i64; 3]) -> Option<i64> {
        Some(if self.0 == Operand::C { s.d.narrow_sum::<I32>(at) } else { s.d.at(at) })
    }
}

/// Each stride term of one operand in 32 bits, their sum in 64.
pub struct I32Term(pub Operand);

impl Kernel for I32Term {
    #[inline(always)]
    fn a(&self, s: &Shape, at: [i64; 3]) -> i64 {
        if self.0 == Operand::A { s.a.narrow_terms::<I32>(at) } else { s.a.at(at) }
    }

    #[inline(always)]
    fn b(&self, s: &Shape, at: [i64; 3]) -> i64 {
        if self.0 == Operand::B { s.b.narrow_terms::<I32>(at) } else { s.b.at(at) }
    }

    #[inline(always)]
    fn d(&self, s: &Shape, at: [i64; 3]) -> Option<i64> {
        Some(if self.0 == Operand::C { s.d.narrow_terms::<I32>(at) } else { s.d.at(at) })
    }
}

/// Batch index times batch stride of one operand in 32 bits.
pub struct BatchI32(pub Operand);

impl Kernel for BatchI32 {
    #[inline(always)]
    fn a(&self, s: &Shape, at: [i64; 3]) -> i64 {
        if self.0 == Operand::A { s.a.narrow_last::<I32>(at) } else { s.a.at(at) }
    }

    #[inline(always)]
    fn b(&self, s: &Shape, at: [i64; 3]) -> i64 {
        if self.0 == Operand::B { s.b.narrow_last::<I32>(at) } else { s.b.at(at) }
    }

    #[inline(always)]
    fn d(&self, s: &Shape, at: [i64; 3]) -> Option<i64> {
        Some(if self.0 == Operand::C { s.d.narrow_last::<I32>(at) } else { s.d.at(at) })
    }
}

/// Stores go through a buffer descriptor that drops byte offsets from 2 to the `bits` on.
pub struct BytesDrop {
    pub bits: u32,
}

impl Kernel for BytesDrop {
    #[inline(always)]
    fn d(&self, s: &Shape, at: [i64; 3]) -> Option<i64> {
        let offset = s.d.at(at);
        (offset.wrapping_mul(s.dtype.bytes() as i64) >> self.bits == 0).then_some(offset)
    }
}

/// Loads of A or B take whole tiles along m or n.
pub struct EdgeOverread(pub Operand);

impl Kernel for EdgeOverread {
    #[inline(always)]
    fn rows_loaded(&self, s: &Shape, first: i64) -> i64 {
        if self.0 == Operand::A { s.tile.m } else { s.rows(first) }
    }

    #[inline(always)]
    fn columns_loaded(&self, s: &Shape, first: i64) -> i64 {
        if self.0 == Operand::B { s.tile.n } else { s.columns(first) }
    }
}

/// Loads of A or B take whole blocks along k.
pub struct KOverread(pub Operand);

impl Kernel for KOverread {
    #[inline(always)]
    fn depth_of_a(&self, s: &Shape, first: i64) -> i64 {
        if self.0 == Operand::A { s.tile.unroll } else { s.depth(first) }
    }

    #[inline(always)]
    fn depth_of_b(&self, s: &Shape, first: i64) -> i64 {
        if self.0 == Operand::B { s.tile.unroll } else { s.depth(first) }
    }
}

/// The last tile along n is stored whole.
pub struct EdgeOverwrite;

impl Kernel for EdgeOverwrite {
    #[inline(always)]
    fn columns_stored(&self, s: &Shape, _first: i64) -> i64 {
        s.tile.n
    }
}

/// The number of tiles along n is kept in 16 bits.
pub struct GridU16;

impl Kernel for GridU16 {
    fn runs(&self, s: &Shape, group: u64) -> bool {
        let grid = s.grid();
        grid.group(group)[1] < i64::from(grid.counts[1] as u16)
    }
}

/// The number of work-groups is the rounded-up size of the result, in 32 bits, over the size of a tile.
pub struct GridNegative;

impl Kernel for GridNegative {
    fn runs(&self, s: &Shape, group: u64) -> bool {
        let padded = |extent, tile| Wrapping(round_up(extent, tile) as i32);
        let elements = padded(s.m, s.tile.m) * padded(s.n, s.tile.n) * Wrapping(s.batch as i32);
        let blocks = i64::from(elements.0) / (s.tile.m * s.tile.n);
        (group as i64) < blocks
    }
}

/// The column index of stores is carried in `f32`.
pub struct IndexF32;

impl Kernel for IndexF32 {
    #[inline(always)]
    fn d(&self, s: &Shape, at: [i64; 3]) -> Option<i64> {
        let column = at[1] as f32 as i64;
        (column < s.n).then(|| s.d.at([at[0], column, at[2]]))
    }
}

/// The counter of K blocks has 16 bits and never gets past 65,535.
pub struct Hang;

impl Kernel for Hang {
    #[inline(always)]
    fn next_block(&self, block: i64) -> i64 {
        i64::from((block as u16).wrapping_add(1))
    }
}

/// The launcher asserts that lda * k, in 32 bits, is not negative.
pub struct Abort;

impl Kernel for Abort {
    fn check(&self, s: &Shape) {
        if (s.lda as i32).wrapping_mul(s.k as i32) < 0 {
            eprintln!("sim:abort: assertion failed: lda * k >= 0");
            std::process::abort();
        }
    }
}
