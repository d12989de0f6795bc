//! Values of a GEMM, real or complex.

use super::plane::Plane;
use super::product::{Factors, Shape, padded};
use super::{A, B, C, D};
use crate::problem::complex::pack;
use crate::problem::contents::{Along, Contents, by_rows, hash, run};
use crate::problem::{Dtype, Instance};
use multiversion::multiversion;
use std::cell::RefCell;
use std::ops::Range;

/// Largest factor of A, B and C, and of alpha.
const LARGEST: i64 = 2;
/// Elements of the result that are computed together, and multiply-adds of them.
const BLOCK: i64 = 1 << 14;
const BLOCK_WORK: i64 = 1 << 20;
/// Rows of op(A), and columns of op(B), are kept up to this many elements.
const PANEL: i64 = 1 << 24;
/// Values of an operand that are made at once.
const PIECE: usize = 256;

/// Elements of A, B and C are a function of their offset from the first one, not of their index: with a small batch stride
/// one element belongs to several products.
struct Gemm {
    /// Values of A, B and C: real parts, imaginary parts.
    planes: [[Plane; 2]; 3],
    complex: bool,
    /// Whether op(A), op(B) is conjugated.
    conjugated: [bool; 2],
    m: i64,
    n: i64,
    k: i64,
    batch: i64,
    alpha: i64,
    beta: i64,
    out: usize,
    /// Strides of A by row, column and batch, of B and of C.
    strides: [[i64; 3]; 3],
    /// op(A) is zero but at every `step`-th place along k: keeps every partial sum exact in the element type.
    step: i64,
    phase: i64,
    block: RefCell<Block>,
}

/// A part of the result, and the rows of op(A) that it comes from.
#[derive(Default)]
struct Block {
    z: i64,
    rows: Range<i64>,
    columns: Range<i64>,
    /// By columns.
    values: Vec<f64>,
    /// Imaginary parts on their way into `values`.
    imaginary: Vec<f64>,
    /// Rows, product and shape of `a`.
    held: Option<(Range<i64>, i64, Shape)>,
    a: Factors,
    b: Factors,
}

/// Some elements of an operand: offset of the first, then distance and number along two dimensions, the first one fastest
/// and followed by zeros up to `pitch`.
#[derive(Clone, Copy)]
struct Plate {
    first: i64,
    inner: (i64, i64),
    outer: (i64, i64),
    pitch: usize,
}

/// Values of one case.
pub(super) fn contents(instance: &Instance, seed: u64) -> Box<dyn Contents> {
    let out = if instance.word("out") == "D" { D } else { C };
    let dtype = instance.view(out).and_then(|v| v.dtype).unwrap_or(Dtype::F32);
    let complex = dtype.is_complex();
    let number = |name: &str| instance.word(name).parse::<i64>().unwrap_or(1);
    let k = instance.get("k");
    // The multipliers of a Hopper add the products of 8-bit floats in 14 bits (arXiv:2412.19437, section 3.3).
    let short = instance.view(A).and_then(|v| v.dtype).is_some_and(|a| matches!(a, Dtype::F8e4m3 | Dtype::F8e5m2));
    let exact = 1i64 << dtype.exact_bits().min(if short { 12 } else { 40 });
    // A part of a complex product is the sum of two real ones.
    let largest = LARGEST * LARGEST * LARGEST * if complex { 2 } else { 1 };
    let step = (k - 1) / ((exact - LARGEST) / largest).max(1) + 1;
    let phase = (hash(seed, D, 0, &[k]) % step as u64) as i64;
    let strides = [A, B, C].map(|o| {
        let mut strides = [1; 3];
        let dims = instance.view(o).into_iter().flat_map(|v| &v.dims);
        strides.iter_mut().zip(dims).for_each(|(s, d)| *s = d.stride);
        strides
    });
    Box::new(Gemm {
        planes: [A, B, C].map(|o| [0, 1].map(|part| Plane(hash(seed, o, part, &[])))),
        complex,
        conjugated: ["transA", "transB"].map(|trans| complex && instance.word(trans) == "C"),
        m: instance.get("m"),
        n: instance.get("n"),
        k,
        batch: instance.get("batch"),
        alpha: number("alpha"),
        beta: number("beta"),
        out,
        strides,
        step,
        phase,
        block: RefCell::default(),
    })
}

impl Gemm {
    fn offset(&self, operand: usize, index: [i64; 3]) -> i64 {
        self.strides[operand].iter().zip(index).map(|(stride, at)| stride * at).sum()
    }

    /// Whether an element of A may be other than 0: consecutive places along k lie one column apart, so the quotient counts
    /// them.
    fn counts(&self, offset: i64) -> bool {
        self.step == 1 || offset / self.strides[A][1] % self.step == self.phase
    }

    /// Real and imaginary part of an element.
    fn element(&self, operand: usize, offset: i64) -> (i64, i64) {
        if operand == A && !self.counts(offset) {
            return (0, 0);
        }
        let [re, im] = self.planes[operand];
        (re.at(offset).into(), if self.complex { im.at(offset).into() } else { 0 })
    }

    /// One part of the elements at consecutive offsets.
    fn consecutive(&self, operand: usize, part: usize, offset: i64, out: &mut [i16]) {
        self.planes[operand][part].run(offset, out);
        if operand != A || self.step == 1 {
            return;
        }
        let (mut at, mut rest) = (offset, out);
        while !rest.is_empty() {
            // Up to the end of a column.
            let column = self.strides[A][1];
            let count = (column - at % column).min(rest.len() as i64);
            let (now, later) = rest.split_at_mut(count as usize);
            if !self.counts(at) {
                now.fill(0);
            }
            (at, rest) = (at + count, later);
        }
    }

    /// One part of the elements of a plate.
    fn plate(&self, operand: usize, part: usize, plate: Plate, out: &mut Vec<i16>) {
        let Plate { first, inner: (near, count), outer: (far, turns), pitch } = plate;
        let width = count as usize;
        out.clear();
        out.resize(pitch * turns as usize, 0);
        if near == 1 && pitch == width && (far == count || turns == 1) {
            self.consecutive(operand, part, first, out);
        } else if near == 1 {
            let columns = out.chunks_mut(pitch);
            (0..)
                .zip(columns)
                .for_each(|(turn, out)| self.consecutive(operand, part, first + turn * far, &mut out[..width]));
        } else if far == 1 {
            let mut piece = [0; PIECE];
            for turn in (0..turns as usize).step_by(PIECE) {
                let piece = &mut piece[..PIECE.min(turns as usize - turn)];
                for at in 0..width {
                    self.consecutive(operand, part, first + at as i64 * near + turn as i64, piece);
                    let places = out[turn * pitch + at..].iter_mut().step_by(pitch);
                    places.zip(&*piece).for_each(|(out, value)| *out = *value);
                }
            }
        } else {
            let plane = self.planes[operand][part];
            for (turn, out) in (0..).zip(out.chunks_mut(pitch)) {
                for (at, out) in (0..count).zip(out) {
                    let offset = first + turn * far + at * near;
                    *out = if operand == A && !self.counts(offset) { 0 } else { plane.at(offset) };
                }
            }
        }
    }

    /// A plate of op(A) or op(B), conjugated where it is to be.
    fn factors(&self, operand: usize, plate: Plate, out: &mut Factors) {
        self.plate(operand, 0, plate, &mut out.re);
        if self.complex {
            self.plate(operand, 1, plate, &mut out.im);
            if self.conjugated[operand] {
                out.im.iter_mut().for_each(|im| *im = -*im);
            }
        }
    }

    /// The value of an element of the result whose product is known.
    fn combine(&self, product: (i64, i64), old: (i64, i64)) -> f64 {
        let part = |product: i64, old: i64| (self.alpha * product + self.beta * old) as f64;
        if self.complex { pack(part(product.0, old.0), part(product.1, old.1)) } else { part(product.0, old.0) }
    }

    /// Computes a part of the result; false where that takes too much memory.
    fn compute(&self, block: &mut Block, z: i64, rows: Range<i64>, columns: Range<i64>) -> bool {
        let (height, width) = (rows.end - rows.start, columns.end - columns.start);
        if height.max(width).checked_mul(self.k).is_none_or(|elements| elements > PANEL) {
            return false;
        }
        let shape = Shape::of(height as usize, width as usize);
        let by_place = |operand: usize, index, side: (i64, i64), wide: bool| {
            let along = (self.strides[operand][1 - operand], self.k);
            let (inner, outer) = if wide { (side, along) } else { (along, side) };
            let pitch = if wide { padded(inner.1 as usize) } else { inner.1 as usize };
            Plate { first: self.offset(operand, index), inner, outer, pitch }
        };
        if block.held != Some((rows.clone(), z, shape)) {
            let side = (self.strides[A][0], height);
            self.factors(A, by_place(A, [rows.start, 0, z], side, shape == Shape::Rows), &mut block.a);
            block.held = Some((rows.clone(), z, shape));
        }
        let side = (self.strides[B][1], width);
        self.factors(B, by_place(B, [0, columns.start, z], side, shape == Shape::Columns), &mut block.b);
        let [re, im] = shape.product(height as usize, width as usize, self.k as usize, &block.a, &block.b);
        let mut old = [vec![], vec![]];
        if self.beta != 0 {
            let first = self.offset(C, [rows.start, columns.start, z]);
            let (inner, outer) = ((self.strides[C][0], height), (self.strides[C][1], width));
            let plate = Plate { first, inner, outer, pitch: height as usize };
            (0..=usize::from(self.complex)).for_each(|part| self.plate(C, part, plate, &mut old[part]));
        }
        results((self.alpha, &re), (self.beta, &old[0]), &mut block.values);
        if self.complex {
            results((self.alpha, &im), (self.beta, &old[1]), &mut block.imaginary);
            let parts = block.values.iter_mut().zip(&block.imaginary);
            parts.for_each(|(value, im)| *value = pack(*value, *im));
        }
        (block.z, block.rows, block.columns) = (z, rows, columns);
        true
    }

    /// Whole columns from (0, j) of product `z` on, as many as are computed together; false where that is none.
    fn whole_columns(&self, block: &mut Block, j: i64, z: i64) -> bool {
        if block.z == z && block.rows == (0..self.m) && block.columns.contains(&j) {
            return true;
        }
        let work = self.m.saturating_mul(self.k);
        let width = (BLOCK / self.m).min(BLOCK_WORK / work).min(PANEL / self.k).clamp(1, self.n - j);
        self.compute(block, z, 0..self.m, j..j + width)
    }

    /// Elements of the result in the order of memory, where every column is whole; false where that takes too much memory.
    fn columns(&self, index: [i64; 3], out: &mut [f64]) -> bool {
        let [mut i, mut j, mut z] = index;
        let block = &mut *self.block.borrow_mut();
        let mut rest = out;
        while !rest.is_empty() {
            if !self.whole_columns(block, j, z) {
                return false;
            }
            let first = (j - block.columns.start) * self.m + i;
            let found = &block.values[first as usize..];
            let (now, later) = rest.split_at_mut(found.len().min(rest.len()));
            now.copy_from_slice(&found[..now.len()]);
            let next = i + now.len() as i64;
            (i, j, rest) = (next % self.m, j + next / self.m, later);
            if j == self.n {
                (j, z) = (0, z + 1);
            }
        }
        true
    }

    /// Elements of one column or row of the result.
    fn line(&self, index: &mut [i64], dim: usize, out: &mut [f64]) {
        let (i, j, z) = (index[0], index[1], index[2]);
        let count = out.len() as i64;
        let block = &mut *self.block.borrow_mut();
        let made = match dim {
            0 => self.compute(block, z, i..i + count, j..j + 1),
            1 => self.compute(block, z, i..i + 1, j..j + count),
            _ => false,
        };
        match made {
            true => out.copy_from_slice(&block.values),
            false => run(index, dim, out, |index| self.expected(self.out, 0, index)),
        }
    }
}

/// One part of elements of the result: a factor times products, plus a factor times what was there; `old` is empty where
/// that is not read.
#[multiversion(targets("x86_64+avx2"))]
fn results((alpha, products): (i64, &[i32]), (beta, old): (i64, &[i16]), out: &mut Vec<f64>) {
    let (alpha, beta) = (alpha as f64, beta as f64);
    out.clear();
    out.extend(products.iter().map(|product| alpha * f64::from(*product)));
    out.iter_mut().zip(old).for_each(|(out, old)| *out += beta * f64::from(*old));
}

#[multiversion(targets("x86_64+avx2"))]
fn widen(values: &[i16], out: &mut [f64]) {
    out.iter_mut().zip(values).for_each(|(out, value)| *out = f64::from(*value));
}

#[multiversion(targets("x86_64+avx2"))]
fn pack_all(re: &[i16], im: &[i16], out: &mut [f64]) {
    out.iter_mut().zip(re.iter().zip(im)).for_each(|(out, (re, im))| *out = pack(f64::from(*re), f64::from(*im)));
}

impl Contents for Gemm {
    fn input(&self, operand: usize, _copy: u32, index: &[i64]) -> f64 {
        let (re, im) = self.element(operand, self.offset(operand, [index[0], index[1], index[2]]));
        if self.complex { pack(re as f64, im as f64) } else { re as f64 }
    }

    fn expected(&self, operand: usize, _copy: u32, index: &[i64]) -> f64 {
        let (i, j, z) = (index[0], index[1], index[2]);
        debug_assert_eq!(operand, self.out);
        let [row, column, stride] = self.strides[A];
        // At most every `step`-th place counts, see `counts`.
        let first = (self.phase - (i * row + z * stride) / column).rem_euclid(self.step);
        let mut sum = (0, 0);
        for l in (first..self.k).step_by(self.step as usize) {
            let (ar, mut ai) = self.element(A, self.offset(A, [i, l, z]));
            let (br, mut bi) = self.element(B, self.offset(B, [l, j, z]));
            ai = if self.conjugated[A] { -ai } else { ai };
            bi = if self.conjugated[B] { -bi } else { bi };
            sum = (sum.0 + ar * br - ai * bi, sum.1 + ar * bi + ai * br);
        }
        let old = if self.beta == 0 { (0, 0) } else { self.element(C, self.offset(C, [i, j, z])) };
        self.combine(sum, old)
    }

    fn input_run(&self, operand: usize, _copy: u32, index: &mut [i64], along: &[Along], out: &mut [f64]) {
        let first = self.offset(operand, [index[0], index[1], index[2]]);
        let distance = along.first().map_or(1, |a| self.strides[operand][a.dim]);
        let mut parts = [[0; PIECE]; 2];
        for (piece, out) in out.chunks_mut(PIECE).enumerate() {
            let first = first + (piece * PIECE) as i64 * distance;
            if distance != 1 {
                for (at, out) in (0..).zip(out) {
                    let (re, im) = self.element(operand, first + at * distance);
                    *out = if self.complex { pack(re as f64, im as f64) } else { re as f64 };
                }
                continue;
            }
            let [re, im] = &mut parts;
            self.consecutive(operand, 0, first, &mut re[..out.len()]);
            if self.complex {
                self.consecutive(operand, 1, first, &mut im[..out.len()]);
                pack_all(re, im, out);
            } else {
                widen(re, out);
            }
        }
    }

    fn expected_run(&self, _operand: usize, _copy: u32, index: &mut [i64], along: &[Along], out: &mut [f64]) {
        // The walk is that of memory: rows, columns, products, without those that there is one of.
        let walked = [(0, self.m), (1, self.n), (2, self.batch)].into_iter().filter(|(_, extent)| *extent > 1);
        let last = along.len().saturating_sub(1);
        let ordered = !along.is_empty()
            && along.iter().zip(walked.map(Some).chain([None; 3])).enumerate().all(|(at, (a, side))| {
                let whole = |extent| (a.first, a.extent) == (0, extent);
                side.is_some_and(|(dim, extent)| a.dim == dim && (at == last && dim > 0 || whole(extent)))
            });
        if ordered && self.columns([index[0], index[1], index[2]], out) {
            return;
        }
        by_rows(index, along, out, |index, dim, out| self.line(index, dim, out));
    }
}
