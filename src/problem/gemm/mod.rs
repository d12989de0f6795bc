//! D = alpha * op(A) * op(B) + beta * C, batched with strides, column-major as in BLAS.

mod plane;
mod product;
#[cfg(test)]
mod tests;
mod values;

use super::builder::Builder;
use super::contents::Contents;
use super::description::Problem;
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

/// Element types, in the order in which a shrink prefers them. `tf32` is `f32` in memory, multiplied in fewer bits.
const DTYPES: [&str; 13] = [
    "f32",
    "f64",
    "f16",
    "bf16",
    "c64",
    "c128",
    "bf16_f32",
    "f16_f32",
    "tf32",
    "i8_i32",
    "f8e4m3_bf16",
    "f8e4m3_f32",
    "f8e5m2_f8e4m3_bf16",
];

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
    b.choice("transA", &["N", "T", "C"], "op(A): A, its transpose, its conjugate transpose")
        .choice("transB", &["N", "T", "C"], "op(B): B, its transpose, its conjugate transpose")
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
        .choice(
            "dtype",
            &DTYPES,
            "element type; in bf16_f32 that of A and B, then that of C and D; of three A, B, then C and D",
        )
        .choice("alpha", &["1", "-2"], "factor of the product")
        .choice("beta", &["0", "1", "-1"], "factor of C; 0 means C is not read")
        .integer("offA", Role::Offset, 0, LEADING, "elements before the first element of A")
        .integer("offB", Role::Offset, 0, LEADING, "elements before the first element of B")
        .integer("offC", Role::Offset, 0, LEADING, "elements before the first element of C");
    b.constraint("lda >= if(transA == 'N', m, k)")?
        .constraint("ldb >= if(transB == 'N', k, n)")?
        .constraint("ldc >= m")?
        .constraint("ldd >= if(out == 'D', m, 1)")?
        .constraint("strideC >= if(batch > 1, (n - 1) * ldc + m, 0)")?
        .constraint("strideD >= if(batch > 1 and out == 'D', (n - 1) * ldd + m, 0)")?
        // A complex multiply-add is four real ones.
        .work("m * n * k * batch * if(dtype == 'c64' or dtype == 'c128', 4, 1)")?;
    b.operand(
        "A",
        Use::Read,
        &[("m", "if(transA == 'N', 1, lda)"), ("k", "if(transA == 'N', lda, 1)"), ("batch", "strideA")],
    )?
    .with(|b, o| {
        o.offset = Some(b.expr("offA")?);
        o.gaps = Gaps::Read;
        Ok(())
    })?
    .operand(
        "B",
        Use::Read,
        &[("k", "if(transB == 'N', 1, ldb)"), ("n", "if(transB == 'N', ldb, 1)"), ("batch", "strideB")],
    )?
    .with(|b, o| {
        o.element = b.second();
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

/// Values of one GEMM case.
pub fn contents(instance: &Instance, seed: u64) -> Box<dyn Contents> {
    values::contents(instance, seed)
}
