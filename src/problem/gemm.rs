//! D = alpha * op(A) * op(B) + beta * C, batched with strides, column-major as in BLAS.

use super::builder::Builder;
use super::contents::{Contents, hash, small_nonzero};
use super::description::Problem;
use super::dtype::Dtype;
use super::expr::ParseError;
use super::instance::Instance;
use super::operand::{Gaps, Use};
use super::param::Role;

/// Largest extent; libraries with 32-bit integers narrow it.
const EXTENT: i64 = 1 << 34;
/// Largest leading dimension, in elements.
const LEADING: i64 = 1 << 34;
/// Largest batch stride, in elements.
const BATCH_STRIDE: i64 = 1 << 36;

/// Operand indices, in declaration order.
pub const A: usize = 0;
pub const B: usize = 1;
pub const C: usize = 2;
pub const D: usize = 3;

/// The description. Offsets of the elements of A, B and C (D), in elements from the base pointers:
/// `offA + i*1 + l*lda` (N) or `offA + l*1 + i*lda` (T), `offB + l*1 + j*ldb` (N) or `offB + j*1 + l*ldb` (T),
/// `offC + i + j*ldc`, each plus `batch * stride`. Source: the reference BLAS, and the strided batched calls of cuBLAS and rocBLAS.
pub fn problem() -> Result<Problem, ParseError> {
    let mut b = Builder::new("gemm");
    b.choice("transA", &["N", "T"], "whether A is stored transposed")
        .choice("transB", &["N", "T"], "whether B is stored transposed")
        .integer("m", Role::Size, 1, EXTENT, "rows of op(A) and of C")
        .integer("n", Role::Size, 1, EXTENT, "columns of op(B) and of C")
        .integer("k", Role::Size, 1, EXTENT, "columns of op(A), rows of op(B)")
        .integer("lda", Role::Stride, 1, LEADING, "leading dimension of A, elements")
        .integer("ldb", Role::Stride, 1, LEADING, "leading dimension of B, elements")
        .integer("ldc", Role::Stride, 1, LEADING, "leading dimension of C, elements")
        .choice("out", &["C", "D"], "operand that receives the result: C in place, or a separate D")
        .integer("ldd", Role::Stride, 1, LEADING, "leading dimension of D, elements")
        .only_when("out == 'D'")?
        .integer("batch", Role::Count, 1, 1 << 31, "number of products")
        .integer("strideA", Role::Stride, 0, BATCH_STRIDE, "distance between two A, elements")
        .only_when("batch > 1")?
        .integer("strideB", Role::Stride, 0, BATCH_STRIDE, "distance between two B, elements")
        .only_when("batch > 1")?
        .integer("strideC", Role::Stride, 0, BATCH_STRIDE, "distance between two C, elements")
        .only_when("batch > 1")?
        .integer("strideD", Role::Stride, 0, BATCH_STRIDE, "distance between two D, elements")
        .only_when("batch > 1 and out == 'D'")?
        .choice("dtype", &["f32", "f64", "f16", "bf16"], "element type of all operands")
        .choice("alpha", &["1", "-2"], "factor of the product")
        .choice("beta", &["0", "1", "-1"], "factor of C; 0 means C is not read")
        .integer("offA", Role::Offset, 0, LEADING, "elements before the first element of A")
        .integer("offB", Role::Offset, 0, LEADING, "elements before the first element of B")
        .integer("offC", Role::Offset, 0, LEADING, "elements before the first element of C");
    b.constraint("lda >= if(transA == 'T', k, m)")?
        .constraint("ldb >= if(transB == 'T', n, k)")?
        .constraint("ldc >= m")?
        .constraint("ldd >= if(out == 'D', m, 1)")?
        .constraint("strideC >= if(batch > 1, (n - 1) * ldc + m, 0)")?
        .constraint("strideD >= if(batch > 1 and out == 'D', (n - 1) * ldd + m, 0)")?
        .work("m * n * k * batch")?;
    b.operand(
        "A",
        Use::Read,
        &[("m", "if(transA == 'T', lda, 1)"), ("k", "if(transA == 'T', 1, lda)"), ("batch", "strideA")],
    )?
    .with(|b, o| {
        o.offset = Some(b.expr("offA")?);
        o.gaps = Gaps::Read;
        Ok(())
    })?
    .operand(
        "B",
        Use::Read,
        &[("k", "if(transB == 'T', ldb, 1)"), ("n", "if(transB == 'T', 1, ldb)"), ("batch", "strideB")],
    )?
    .with(|b, o| {
        o.offset = Some(b.expr("offB")?);
        o.gaps = Gaps::Read;
        Ok(())
    })?
    .operand("C", Use::ReadWrite, &[("m", "1"), ("n", "ldc"), ("batch", "strideC")])?
    .with(|b, o| {
        o.offset = Some(b.expr("offC")?);
        o.gaps = Gaps::Read;
        o.defined_when = Some(b.condition("beta != '0'")?);
        o.read_only_when = Some(b.condition("out == 'D'")?);
        Ok(())
    })?
    .operand("D", Use::Write, &[("m", "1"), ("n", "ldd"), ("batch", "strideD")])?
    .with(|b, o| {
        o.gaps = Gaps::Read;
        o.when = Some(b.condition("out == 'D'")?);
        Ok(())
    })?;
    Ok(b.finish())
}

/// Largest factor of A, B and C, and of alpha.
const LARGEST: i64 = 2;
/// Dense copies of op(A) and op(B) are kept up to this many elements together.
const DENSE: i64 = 1 << 24;

struct Gemm {
    seed: u64,
    k: i64,
    alpha: i64,
    beta: i64,
    out: usize,
    /// Strides of op(A) along (row, k, batch) and of op(B) along (k, column, batch).
    a_steps: [i64; 3],
    b_steps: [i64; 3],
    /// op(A) is zero but where its line (see [`line`](Self::line)) is `phase` modulo `step`: keeps every partial sum exact
    /// in the element type.
    step: i64,
    phase: i64,
    /// Rows, columns and products of op(A) and op(B) in `i8`, where they are small: (m, n, a, b).
    dense: Option<(i64, i64, Vec<i8>, Vec<i8>)>,
}

fn offset(steps: &[i64; 3], at: [i64; 3]) -> i64 {
    steps.iter().zip(at).map(|(s, i)| s * i).sum()
}

impl Gemm {
    /// Counts on by one with every step along k, whatever row and batch.
    fn line(&self, offset: i64) -> i64 {
        offset / self.a_steps[1]
    }

    // Values of A and B depend on where an element lies, because batches may share elements (a batch stride of 0).
    fn a(&self, i: i64, l: i64, batch: i64) -> i64 {
        let at = offset(&self.a_steps, [i, l, batch]);
        if self.line(at) % self.step == self.phase { small_nonzero(hash(self.seed, A, 0, &[at])) } else { 0 }
    }

    fn b(&self, l: i64, j: i64, batch: i64) -> i64 {
        small_nonzero(hash(self.seed, B, 0, &[offset(&self.b_steps, [l, j, batch])]))
    }

    fn c(&self, i: i64, j: i64, batch: i64) -> i64 {
        small_nonzero(hash(self.seed, C, 0, &[i, j, batch]))
    }

    /// The steps along k at which op(A) is not zero.
    fn terms(&self, i: i64, batch: i64) -> impl Iterator<Item = i64> {
        let first = (self.phase - self.line(offset(&self.a_steps, [i, 0, batch]))).rem_euclid(self.step);
        (first..self.k).step_by(self.step as usize)
    }
}

/// Values of one GEMM case.
pub fn contents(instance: &Instance, seed: u64) -> Box<dyn Contents> {
    let mut gemm = values(instance, seed);
    let (m, n, k, batch) = (instance.get("m"), instance.get("n"), gemm.k, instance.get("batch"));
    let size = |x: i64| i128::from(x) * i128::from(k) * i128::from(batch);
    if size(m) + size(n) <= i128::from(DENSE) {
        let mut a = Vec::with_capacity((m * k * batch) as usize);
        let mut b = Vec::with_capacity((n * k * batch) as usize);
        for z in 0..batch {
            for i in 0..m {
                a.extend((0..k).map(|l| gemm.a(i, l, z) as i8));
            }
            for j in 0..n {
                b.extend((0..k).map(|l| gemm.b(l, j, z) as i8));
            }
        }
        gemm.dense = Some((m, n, a, b));
    }
    Box::new(gemm)
}

fn values(instance: &Instance, seed: u64) -> Gemm {
    let out = if instance.word("out") == "D" { D } else { C };
    let dtype = instance.view(out).and_then(|v| v.dtype).unwrap_or(Dtype::F32);
    let number = |name: &str| instance.word(name).parse::<i64>().unwrap_or(1);
    let steps = |operand| {
        let dims = instance.view(operand).map(|v| v.dims.as_slice()).unwrap_or_default();
        std::array::from_fn(|d| dims.get(d).map_or(1, |dim| dim.stride))
    };
    let k = instance.get("k");
    let exact = 1i64 << dtype.exact_bits().min(40);
    let terms = ((exact - LARGEST) / (LARGEST * LARGEST * LARGEST)).max(1);
    let step = (k - 1) / terms + 1;
    let phase = (hash(seed, D, 0, &[k]) % step as u64) as i64;
    let (a_steps, b_steps) = (steps(A), steps(B));
    Gemm { seed, k, alpha: number("alpha"), beta: number("beta"), out, a_steps, b_steps, step, phase, dense: None }
}

impl Contents for Gemm {
    fn input(&self, operand: usize, _copy: u32, index: &[i64]) -> f64 {
        let (x, y, z) = (index[0], index[1], index[2]);
        let value = match operand {
            A => match &self.dense {
                Some((m, _, a, _)) => i64::from(a[((z * m + x) * self.k + y) as usize]),
                None => self.a(x, y, z),
            },
            B => match &self.dense {
                Some((_, n, _, b)) => i64::from(b[((z * n + y) * self.k + x) as usize]),
                None => self.b(x, y, z),
            },
            _ => self.c(x, y, z),
        };
        value as f64
    }

    fn expected(&self, operand: usize, _copy: u32, index: &[i64]) -> f64 {
        let (i, j, z) = (index[0], index[1], index[2]);
        debug_assert_eq!(operand, self.out);
        let sum = match &self.dense {
            Some((m, n, a, b)) => {
                let row = ((z * m + i) * self.k) as usize;
                let column = ((z * n + j) * self.k) as usize;
                let k = self.k as usize;
                let pairs = a[row..row + k].iter().zip(&b[column..column + k]);
                pairs.map(|(x, y)| i64::from(i32::from(*x) * i32::from(*y))).sum::<i64>()
            }
            None => self.terms(i, z).map(|l| self.a(i, l, z) * self.b(l, j, z)).sum(),
        };
        let old = if self.beta == 0 { 0 } else { self.beta * self.c(i, j, z) };
        (self.alpha * sum + old) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Case, Placement, Value};
    use std::sync::Arc;

    fn instance(pairs: &[(&str, Value)]) -> Instance {
        let problem = Arc::new(problem().unwrap());
        let named = pairs.iter().map(|(n, v)| ((*n).to_owned(), v.clone())).collect();
        let params = problem.complete(&named).unwrap();
        problem.instance(Case { params, knobs: Default::default(), placement: Placement::END }).unwrap()
    }

    #[test]
    fn unnamed_leading_dimensions_are_packed() {
        let i = instance(&[("m", 608.into()), ("n", 5376.into()), ("k", 21504.into()), ("transB", "T".into())]);
        assert_eq!((i.get("lda"), i.get("ldb"), i.get("ldc")), (608, 5376, 608));
        assert_eq!(i.view(B).unwrap().highest(0), 5376 * 21504 - 1);
        assert!(i.view(D).is_none());
    }

    #[test]
    fn sums_stay_exact_in_bf16_for_any_k() {
        for k in [1, 30, 31, 32, 33, 1000, 21504] {
            let i = instance(&[("m", 2.into()), ("n", 2.into()), ("k", k.into()), ("dtype", "bf16".into())]);
            let c = contents(&i, 7);
            let size: f64 = (0..k).map(|l| (c.input(A, 0, &[0, l, 0]) * c.input(B, 0, &[l, 1, 0])).abs()).sum();
            assert!(size > 0.0 && size * 2.0 + 2.0 <= 256.0, "k = {k}: {size}");
            let sum: f64 = (0..k).map(|l| c.input(A, 0, &[0, l, 0]) * c.input(B, 0, &[l, 1, 0])).sum();
            assert_eq!(c.expected(C, 0, &[0, 1, 0]), sum);
        }
    }

    #[test]
    fn the_sparse_form_gives_the_same_values_as_the_dense_one() {
        let i = instance(&[("m", 5.into()), ("n", 4.into()), ("k", 9.into()), ("beta", "-1".into())]);
        let dense = contents(&i, 3);
        let sparse = values(&i, 3);
        for x in 0..5 {
            for y in 0..4 {
                assert_eq!(dense.expected(C, 0, &[x, y, 0]), sparse.expected(C, 0, &[x, y, 0]));
            }
        }
    }

    #[test]
    fn elements_that_batches_share_have_one_value_and_thinning_keeps_to_them() {
        for (trans, stride) in [("N", 0), ("T", 0), ("N", 7), ("T", 7), ("N", 3), ("T", 40)] {
            let i = instance(&[
                ("m", 3.into()),
                ("k", 40.into()),
                ("transA", trans.into()),
                ("batch", 4.into()),
                ("strideA", stride.into()),
                ("strideB", stride.into()),
                ("dtype", "bf16".into()),
            ]);
            let (c, sparse) = (contents(&i, 5), values(&i, 5));
            for operand in [A, B] {
                let view = i.view(operand).unwrap();
                let mut seen = std::collections::BTreeMap::new();
                for z in 0..4 {
                    for x in 0..view.dims[0].extent {
                        for y in 0..view.dims[1].extent {
                            let value = c.input(operand, 0, &[x, y, z]);
                            assert_eq!(*seen.entry(view.offset_of(0, &[x, y, z])).or_insert(value), value);
                        }
                    }
                }
            }
            for (x, z) in [(0, 0), (2, 1), (1, 3)] {
                let used = (0..40).filter(|l| c.input(A, 0, &[x, *l, z]) != 0.0).count();
                assert!((1..=31).contains(&used), "{used} terms in bf16");
                assert_eq!(c.expected(C, 0, &[x, 0, z]), sparse.expected(C, 0, &[x, 0, z]));
            }
        }
    }
}
