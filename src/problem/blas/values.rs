//! Values of the routines of BLAS: small integers, real or complex, and results computed at once.

use crate::problem::complex::pack;
use crate::problem::contents::{Along, Contents, by_rows, hash, small_nonzero};
use crate::problem::{Dtype, Instance};

/// Largest entry of an operand, and of alpha.
const LARGEST: i64 = 2;
/// In place of an operand, where a number belongs to none.
const SUMS: usize = 1 << 16;

/// A transposition, named as the parameters `trans` are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    N,
    T,
    C,
}

impl Op {
    /// The value of a parameter.
    pub fn of(instance: &Instance, param: &str) -> Op {
        match instance.word(param).as_str() {
            "N" => Op::N,
            "T" => Op::T,
            _ => Op::C,
        }
    }
}

/// A matrix of small integers by columns, `rows` of them each. A vector has one column.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    pub rows: usize,
    pub columns: usize,
    re: Vec<f64>,
    /// Empty where all entries are real.
    im: Vec<f64>,
}

impl Matrix {
    /// Entries by row and column, as real and imaginary part.
    pub fn new(rows: i64, columns: i64, complex: bool, mut entry: impl FnMut(i64, i64) -> (f64, f64)) -> Matrix {
        let size = (rows * columns) as usize;
        let mut m = Matrix { rows: rows as usize, columns: columns as usize, re: Vec::with_capacity(size), im: vec![] };
        for j in 0..columns {
            for i in 0..rows {
                let (re, im) = entry(i, j);
                m.re.push(re);
                if complex {
                    m.im.push(im);
                }
            }
        }
        m
    }

    fn place(&self, i: i64, j: i64) -> usize {
        j as usize * self.rows + i as usize
    }

    pub fn at(&self, i: i64, j: i64) -> (f64, f64) {
        let at = self.place(i, j);
        (self.re[at], self.im.get(at).copied().unwrap_or(0.0))
    }

    pub fn is_complex(&self) -> bool {
        !self.im.is_empty()
    }

    /// The matrix, its transpose, or its conjugate transpose.
    pub fn op(&self, op: Op) -> Matrix {
        if op == Op::N {
            return self.clone();
        }
        Matrix::new(self.columns as i64, self.rows as i64, self.is_complex(), |i, j| {
            let (re, im) = self.at(j, i);
            (re, if op == Op::C { -im } else { im })
        })
    }

    /// The entries where `keep` holds, elsewhere 0.
    pub fn only(&self, keep: impl Fn(i64, i64) -> bool) -> Matrix {
        let (rows, columns) = (self.rows as i64, self.columns as i64);
        Matrix::new(rows, columns, self.is_complex(), |i, j| if keep(i, j) { self.at(i, j) } else { (0.0, 0.0) })
    }

    /// `self * other`.
    pub fn times(&self, other: &Matrix) -> Matrix {
        let size = self.rows * other.columns;
        let mut out = Matrix { rows: self.rows, columns: other.columns, re: vec![0.0; size], im: vec![] };
        accumulate(&mut out.re, &self.re, &other.re, self.rows, 1.0);
        if self.is_complex() {
            accumulate(&mut out.re, &self.im, &other.im, self.rows, -1.0);
            out.im = vec![0.0; size];
            accumulate(&mut out.im, &self.re, &other.im, self.rows, 1.0);
            accumulate(&mut out.im, &self.im, &other.re, self.rows, 1.0);
        }
        out
    }

    /// `factor * self + other_factor * other`, entry by entry.
    pub fn combined(&self, factor: f64, other: &Matrix, other_factor: f64) -> Matrix {
        let sum = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| factor * a + other_factor * b).collect();
        Matrix { rows: self.rows, columns: self.columns, re: sum(&self.re, &other.re), im: sum(&self.im, &other.im) }
    }

    /// As the values of an operand.
    pub fn packed(&self) -> Vec<f64> {
        match self.im.is_empty() {
            true => self.re.clone(),
            false => self.re.iter().zip(&self.im).map(|(re, im)| pack(*re, *im)).collect(),
        }
    }
}

/// `out += sign * a * b`, all by columns; `a` and `out` have `rows` rows.
fn accumulate(out: &mut [f64], a: &[f64], b: &[f64], rows: usize, sign: f64) {
    let (inner, columns) = (a.len() / rows, out.len() / rows);
    for j in 0..columns {
        let out = &mut out[j * rows..][..rows];
        if let [out] = out {
            *out += sign * a.iter().zip(&b[j * inner..]).map(|(a, b)| a * b).sum::<f64>();
            continue;
        }
        for (l, factor) in b[j * inner..][..inner].iter().enumerate().filter(|f| *f.1 != 0.0) {
            let factor = sign * factor;
            out.iter_mut().zip(&a[l * rows..][..rows]).for_each(|(out, a)| *out += factor * a);
        }
    }
}

/// What the values of a case are made from.
pub struct Source<'a> {
    instance: &'a Instance,
    seed: u64,
    pub complex: bool,
    /// Sums of so many products of three entries are exact in the element type.
    terms: i64,
}

impl Source<'_> {
    pub fn new(instance: &Instance, seed: u64) -> Source<'_> {
        let dtype = instance.views.iter().flatten().find_map(|v| v.dtype).unwrap_or(Dtype::F32);
        // A real or imaginary part of a product of three is at most 16; rank-2k updates add two of them.
        let terms = ((1i64 << dtype.exact_bits().min(40)) / 32 - 1).max(1);
        Source { instance, seed, complex: dtype.is_complex(), terms }
    }

    /// Entry of an operand at an index: parts of -2, -1, 1 or 2.
    pub fn entry(&self, operand: usize, index: &[i64]) -> (f64, f64) {
        let bits = hash(self.seed, operand, 0, index);
        (small_nonzero(bits) as f64, if self.complex { small_nonzero(bits << 2) as f64 } else { 0.0 })
    }

    /// A matrix of such entries.
    pub fn matrix(&self, operand: usize, rows: i64, columns: i64) -> Matrix {
        Matrix::new(rows, columns, self.complex, |i, j| self.entry(operand, &[i, j]))
    }

    /// Which of the places along a sum of `length` products may be other than 0, so that it stays exact.
    pub fn summed(&self, length: i64) -> impl Fn(i64) -> bool + use<> {
        let step = (length - 1) / self.terms + 1;
        let phase = (hash(self.seed, SUMS, 0, &[length]) % step as u64) as i64;
        move |at| at % step == phase
    }

    /// A choice of one among `count`, by the seed and a number.
    pub fn pick(&self, of: i64, count: i64) -> i64 {
        (hash(self.seed, SUMS, 1, &[of]) % count.max(1) as u64) as i64
    }

    /// alpha or beta.
    pub fn factor(&self, name: &str) -> f64 {
        let value = self.instance.word(name).parse().unwrap_or(1.0);
        debug_assert!(f64::abs(value) <= LARGEST as f64);
        value
    }
}

/// Values of every operand, by the order of its dimensions: the first runs fastest.
#[derive(Debug, Default)]
pub struct Tables(Vec<Option<Table>>);

#[derive(Debug)]
struct Table {
    steps: Vec<usize>,
    input: Vec<f64>,
    expected: Vec<f64>,
}

impl Tables {
    pub fn new(instance: &Instance) -> Tables {
        Tables(instance.views.iter().map(|_| None).collect())
    }

    /// Sets what an operand holds before the run and, where it is written, after it. Values count along the dimensions of
    /// the operand, the first one fastest.
    pub fn set(mut self, instance: &Instance, operand: usize, input: Vec<f64>, expected: Vec<f64>) -> Tables {
        if let Some(view) = instance.view(operand) {
            let mut size = 1usize;
            let mut steps = vec![];
            for dim in &view.dims {
                steps.push(size);
                size *= dim.extent as usize;
            }
            debug_assert!(input.is_empty() || input.len() == size);
            debug_assert!(expected.is_empty() || expected.len() == size);
            self.0[operand] = Some(Table { steps, input, expected });
        }
        self
    }

    fn at(&self, operand: usize, index: &[i64], of: fn(&Table) -> &[f64]) -> (&[f64], usize) {
        match &self.0[operand] {
            Some(t) => (of(t), t.steps.iter().zip(index).map(|(s, i)| s * *i as usize).sum()),
            None => (&[], 0),
        }
    }

    fn one(&self, operand: usize, index: &[i64], of: fn(&Table) -> &[f64]) -> f64 {
        let (values, at) = self.at(operand, index, of);
        values.get(at).copied().unwrap_or(f64::NAN)
    }

    fn run(&self, operand: usize, index: &[i64], dim: usize, out: &mut [f64], of: fn(&Table) -> &[f64]) {
        let (values, first) = self.at(operand, index, of);
        let step = self.0[operand].as_ref().and_then(|t| t.steps.get(dim)).copied().unwrap_or(1);
        let places = (first..).step_by(step);
        out.iter_mut().zip(places).for_each(|(out, at)| *out = values.get(at).copied().unwrap_or(f64::NAN));
    }
}

impl Contents for Tables {
    fn input(&self, operand: usize, _copy: u32, index: &[i64]) -> f64 {
        self.one(operand, index, |t| &t.input)
    }

    fn expected(&self, operand: usize, _copy: u32, index: &[i64]) -> f64 {
        self.one(operand, index, |t| &t.expected)
    }

    fn input_run(&self, operand: usize, _copy: u32, index: &mut [i64], along: &[Along], out: &mut [f64]) {
        by_rows(index, along, out, |index, dim, out| self.run(operand, index, dim, out, |t| &t.input));
    }

    fn expected_run(&self, operand: usize, _copy: u32, index: &mut [i64], along: &[Along], out: &mut [f64]) {
        by_rows(index, along, out, |index, dim, out| self.run(operand, index, dim, out, |t| &t.expected));
    }
}
