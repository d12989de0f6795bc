//! C = alpha * op(A) * transpose(op(B)) + alpha * op(B) * transpose(op(A)) + beta * C in one triangle of C.

use super::values::{Op, Source, Tables};
use super::{alpha, beta, dtype, leading, matrix, size, updated_triangle, uplo};
use crate::problem::builder::Builder;
use crate::problem::expr::ParseError;
use crate::problem::{Contents, Instance, Problem, Use};

const A: usize = 0;
const B: usize = 1;
const C: usize = 2;

/// The description: op(A) and op(B) are n x k, C is n x n.
pub fn problem() -> Result<Problem, ParseError> {
    let mut b = Builder::new("syr2k");
    uplo(&mut b);
    b.choice("trans", &["N", "T"], "op(A) and op(B): the matrix, or its transpose");
    size(&mut b, "n", "rows and columns of C");
    size(&mut b, "k", "columns of op(A) and op(B)");
    leading(&mut b, "lda", "leading dimension of A, elements");
    leading(&mut b, "ldb", "leading dimension of B, elements");
    leading(&mut b, "ldc", "leading dimension of C, elements");
    dtype(&mut b);
    alpha(&mut b);
    beta(&mut b);
    b.constraint("lda >= if(trans == 'N', n, k)")?
        .constraint("ldb >= if(trans == 'N', n, k)")?
        .constraint("ldc >= n")?
        .work("n * n * k")?;
    let (rows, columns) = ("if(trans == 'N', n, k)", "if(trans == 'N', k, n)");
    matrix(&mut b, "A", Use::Read, [rows, columns, "lda"])?;
    matrix(&mut b, "B", Use::Read, [rows, columns, "ldb"])?;
    matrix(&mut b, "C", Use::ReadWrite, ["n", "n", "ldc"])?;
    Ok(b.finish())
}

/// The values of a case.
pub fn contents(i: &Instance, seed: u64) -> Box<dyn Contents> {
    let s = Source::new(i, seed);
    let (n, k, op) = (i.get("n"), i.get("k"), Op::of(i, "trans"));
    let summed = s.summed(k);
    let (of_a, of_b) = (s.matrix(A, n, k).only(|_, l| summed(l)), s.matrix(B, n, k));
    let sum = of_a.times(&of_b.op(Op::T)).combined(1.0, &of_b.times(&of_a.op(Op::T)), 1.0);
    let (before, after) = updated_triangle(&s, i, C, &sum);
    let tables = Tables::new(i).set(i, A, of_a.op(op).packed(), vec![]).set(i, B, of_b.op(op).packed(), vec![]);
    Box::new(tables.set(i, C, before, after))
}
