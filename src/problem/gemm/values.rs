//! Values of a real GEMM.

use super::{A, B, C, D};
use crate::problem::contents::{Contents, hash, mix, run, small_nonzero};
use crate::problem::{Dtype, Instance};
use std::cell::RefCell;

/// Largest factor of A, B and C, and of alpha.
const LARGEST: i64 = 2;
/// Dense copies of op(A) and op(B) are kept up to this many elements together: some 3 ms to make. Of larger factors, whose
/// cases may run in part only, the rows in use are kept.
const DENSE: i64 = 1 << 20;
/// Rows of op(A) are kept up to this many elements.
const PANEL: i64 = 1 << 24;

/// Elements of A and B are a function of their offset from the first one, not of their index: with a small batch stride
/// one element belongs to several products.
pub(super) struct Gemm {
    /// Start of the hash, by operand.
    keys: [u64; 3],
    k: i64,
    alpha: i64,
    beta: i64,
    out: usize,
    /// Strides of A by row, column and batch, and those of B.
    strides: [[i64; 3]; 2],
    /// op(A) is zero but at every `step`-th place along k: keeps every partial sum exact in the element type.
    step: i64,
    phase: i64,
    /// op(A) and op(B), where they are small.
    dense: Option<Dense>,
    /// Where they are not: the rows of op(A) and the column of op(B) used last.
    panel: RefCell<Panel>,
}

/// A block of rows of one op(A), and one column of op(B): what the elements of a run of the result need.
struct Panel {
    /// First row and product of the rows that `dense` holds.
    at: Option<(i64, i64)>,
    dense: Dense,
}

/// Columns of op(A) and of op(B), one product after the other.
struct Dense {
    m: i64,
    n: i64,
    k: i64,
    /// 16 bits: eight at a time in the plainest vector instructions.
    a: Vec<i16>,
    b: Vec<i16>,
}

/// Rows whose sums are formed side by side.
const LANES: usize = 128;
/// So many products, of at most 4 each, fit the 16 bits of a sum.
const TERMS: usize = i16::MAX as usize / (LARGEST * LARGEST) as usize;

impl Dense {
    fn a_at(&self, i: i64, l: i64, z: i64) -> usize {
        ((z * self.k + l) * self.m + i) as usize
    }

    fn b_at(&self, l: i64, j: i64, z: i64) -> usize {
        ((z * self.n + j) * self.k + l) as usize
    }

    fn dot(&self, i: i64, j: i64, z: i64) -> i64 {
        let row = self.a[self.a_at(i, 0, z)..].iter().step_by(self.m as usize);
        let column = &self.b[self.b_at(0, j, z)..][..self.k as usize];
        column.iter().zip(row).map(|(x, y)| i64::from(*x) * i64::from(*y)).sum()
    }

    /// The dots of the rows from `i` on with column `j`.
    fn dots(&self, i: i64, j: i64, z: i64, out: &mut [f64]) {
        let column = &self.b[self.b_at(0, j, z)..][..self.k as usize];
        for (chunk, out) in out.chunks_mut(LANES).enumerate() {
            out.fill(0.0);
            let first = self.a_at(i, 0, z) + chunk * LANES;
            for (part, terms) in column.chunks(TERMS).enumerate() {
                let mut sums = [0i16; LANES];
                let sums = &mut sums[..out.len()];
                for (l, factor) in terms.iter().enumerate() {
                    let at = first + (part * TERMS + l) * self.m as usize;
                    let rows = &self.a[at..at + sums.len()];
                    // Fits, by TERMS; unchecked sums are what the compiler does eight at a time.
                    sums.iter_mut().zip(rows).for_each(|(sum, a)| *sum = sum.wrapping_add(a.wrapping_mul(*factor)));
                }
                out.iter_mut().zip(sums).for_each(|(out, sum)| *out += f64::from(*sum));
            }
        }
    }
}

impl Gemm {
    fn a(&self, i: i64, l: i64, batch: i64) -> i64 {
        let [row, column, stride] = self.strides[A];
        let at = i * row + l * column + batch * stride;
        if self.step == 1 || at / column % self.step == self.phase {
            small_nonzero(mix(self.keys[A], at as u64))
        } else {
            0
        }
    }

    /// The `l` at which row `i` of op(A) is not zero: consecutive `l` lie `column` elements apart, so the quotient above
    /// counts them, and at most every `step`-th is taken.
    fn places(&self, i: i64, batch: i64) -> impl Iterator<Item = i64> + use<> {
        let [row, column, stride] = self.strides[A];
        let first = (self.phase - (i * row + batch * stride) / column).rem_euclid(self.step);
        (first..self.k).step_by(self.step as usize)
    }

    /// The dots of the rows from `i` on with column `j`, from values that are made for them; false where that takes too
    /// much memory.
    fn panel_dots(&self, i: i64, j: i64, z: i64, out: &mut [f64]) -> bool {
        let rows = out.len() as i64;
        if rows.checked_mul(self.k).is_none_or(|elements| elements > PANEL) {
            return false;
        }
        let mut panel = self.panel.borrow_mut();
        let Panel { at, dense } = &mut *panel;
        if *at != Some((i, z)) || dense.m != rows {
            (*at, dense.m) = (Some((i, z)), rows);
            dense.a.clear();
            for l in 0..self.k {
                dense.a.extend((i..i + rows).map(|i| self.a(i, l, z) as i16));
            }
        }
        dense.b.clear();
        dense.b.extend((0..self.k).map(|l| self.b(l, j, z) as i16));
        dense.dots(0, 0, 0, out);
        true
    }

    fn b(&self, l: i64, j: i64, batch: i64) -> i64 {
        let [row, column, stride] = self.strides[B];
        small_nonzero(mix(self.keys[B], (l * row + j * column + batch * stride) as u64))
    }

    fn c(&self, i: i64, j: i64, batch: i64) -> i64 {
        let index = [i, j, batch];
        small_nonzero(index.iter().fold(self.keys[C], |h, x| mix(h, *x as u64)))
    }
}

/// Values of one case.
pub(super) fn contents(instance: &Instance, seed: u64) -> Box<dyn Contents> {
    let (m, n, batch) = (instance.get("m"), instance.get("n"), instance.get("batch"));
    let mut gemm = sparse(instance, seed);
    let size = |x: i64| i128::from(x) * i128::from(gemm.k) * i128::from(batch);
    if size(m) + size(n) <= i128::from(DENSE) {
        let k = gemm.k;
        let mut a = Vec::with_capacity((m * k * batch) as usize);
        let mut b = Vec::with_capacity((n * k * batch) as usize);
        for z in 0..batch {
            for l in 0..k {
                a.extend((0..m).map(|i| gemm.a(i, l, z) as i16));
            }
            for j in 0..n {
                b.extend((0..k).map(|l| gemm.b(l, j, z) as i16));
            }
        }
        gemm.dense = Some(Dense { m, n, k, a, b });
    }
    Box::new(gemm)
}

/// Values that are computed one by one.
pub(super) fn sparse(instance: &Instance, seed: u64) -> Gemm {
    let out = if instance.word("out") == "D" { D } else { C };
    let dtype = instance.view(out).and_then(|v| v.dtype).unwrap_or(Dtype::F32);
    let number = |name: &str| instance.word(name).parse::<i64>().unwrap_or(1);
    let k = instance.get("k");
    // The multipliers of a Hopper add the products of 8-bit floats in 14 bits (arXiv:2412.19437, section 3.3).
    let short = instance.view(A).and_then(|v| v.dtype).is_some_and(|a| matches!(a, Dtype::F8e4m3 | Dtype::F8e5m2));
    let exact = 1i64 << dtype.exact_bits().min(if short { 12 } else { 40 });
    let terms = ((exact - LARGEST) / (LARGEST * LARGEST * LARGEST)).max(1);
    let step = (k - 1) / terms + 1;
    let phase = (hash(seed, D, 0, &[k]) % step as u64) as i64;
    let strides = [A, B].map(|o| {
        let mut strides = [1; 3];
        let dims = instance.view(o).into_iter().flat_map(|v| &v.dims);
        strides.iter_mut().zip(dims).for_each(|(s, d)| *s = d.stride);
        strides
    });
    let keys = [A, B, C].map(|o| hash(seed, o, 0, &[]));
    let panel = RefCell::new(Panel { at: None, dense: Dense { m: 0, n: 1, k, a: vec![], b: vec![] } });
    Gemm { keys, k, alpha: number("alpha"), beta: number("beta"), out, strides, step, phase, dense: None, panel }
}

impl Contents for Gemm {
    fn input(&self, operand: usize, _copy: u32, index: &[i64]) -> f64 {
        let (x, y, z) = (index[0], index[1], index[2]);
        let value = match (operand, &self.dense) {
            (A, Some(d)) => d.a[d.a_at(x, y, z)].into(),
            (B, Some(d)) => d.b[d.b_at(x, y, z)].into(),
            (A, None) => self.a(x, y, z),
            (B, None) => self.b(x, y, z),
            _ => self.c(x, y, z),
        };
        value as f64
    }

    fn expected(&self, operand: usize, _copy: u32, index: &[i64]) -> f64 {
        let (i, j, z) = (index[0], index[1], index[2]);
        debug_assert_eq!(operand, self.out);
        let sum = match &self.dense {
            Some(d) => d.dot(i, j, z),
            None => self.places(i, z).map(|l| self.a(i, l, z) * self.b(l, j, z)).sum(),
        };
        let old = if self.beta == 0 { 0 } else { self.beta * self.c(i, j, z) };
        (self.alpha * sum + old) as f64
    }

    fn input_run(&self, operand: usize, _copy: u32, index: &mut [i64], dim: usize, out: &mut [f64]) {
        let (x, y, z) = (index[0], index[1], index[2]);
        let Some(d) = &self.dense else {
            return run(index, dim, out, |index| self.input(operand, 0, index));
        };
        // From one element to the next along the first two dimensions.
        let (values, first, steps) = match operand {
            A => (&d.a, d.a_at(x, y, z), [1, d.m]),
            B => (&d.b, d.b_at(x, y, z), [1, d.k]),
            _ => return run(index, dim, out, |index| self.input(operand, 0, index)),
        };
        match steps.get(dim) {
            Some(1) => {
                let values = &values[first..][..out.len()];
                out.iter_mut().zip(values).for_each(|(out, value)| *out = f64::from(*value));
            }
            Some(step) => {
                let values = values[first..].iter().step_by(*step as usize);
                out.iter_mut().zip(values).for_each(|(out, value)| *out = f64::from(*value));
            }
            None => run(index, dim, out, |index| self.input(operand, 0, index)),
        }
    }

    fn expected_run(&self, operand: usize, _copy: u32, index: &mut [i64], dim: usize, out: &mut [f64]) {
        let (i, j, z) = (index[0], index[1], index[2]);
        let made = match (&self.dense, dim) {
            (Some(d), 0) if out.len() >= 8 => {
                d.dots(i, j, z, out);
                true
            }
            (Some(_), _) => false,
            (None, 0) => self.panel_dots(i, j, z, out),
            (None, 1) => (j..).zip(out.chunks_mut(1)).all(|(j, out)| self.panel_dots(i, j, z, out)),
            _ => false,
        };
        if !made {
            return run(index, dim, out, |index| self.expected(operand, 0, index));
        }
        for (at, out) in out.iter_mut().enumerate() {
            let step = at as i64;
            let (i, j) = if dim == 0 { (i + step, j) } else { (i, j + step) };
            let old = if self.beta == 0 { 0 } else { self.beta * self.c(i, j, z) };
            *out = self.alpha as f64 * *out + old as f64;
        }
    }
}
