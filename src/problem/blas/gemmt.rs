//! C = alpha * op(A) * op(B) + beta * C in one triangle of C.

use super::values::{Op, Source, Tables};
use super::{alpha, beta, dtype, leading, matrix, size, updated_triangle, uplo};
use crate::problem::builder::Builder;
use crate::problem::expr::ParseError;
use crate::problem::{Contents, Instance, Problem, Use};

const A: usize = 0;
const B: usize = 1;
const C: usize = 2;

/// The description: op(A) is n x k, op(B) k x n, C n x n.
pub fn problem() -> Result<Problem, ParseError> {
    let mut b = Builder::new("gemmt");
    uplo(&mut b);
    b.choice("transA", &["N", "T", "C"], "op(A): A, its transpose, its conjugate transpose").choice(
        "transB",
        &["N", "T", "C"],
        "op(B): B, its transpose, its conjugate transpose",
    );
    size(&mut b, "n", "rows and columns of C");
    size(&mut b, "k", "columns of op(A), rows of op(B)");
    leading(&mut b, "lda", "leading dimension of A, elements");
    leading(&mut b, "ldb", "leading dimension of B, elements");
    leading(&mut b, "ldc", "leading dimension of C, elements");
    dtype(&mut b);
    alpha(&mut b);
    beta(&mut b);
    b.constraint("lda >= if(transA == 'N', n, k)")?
        .constraint("ldb >= if(transB == 'N', k, n)")?
        .constraint("ldc >= n")?
        .work("n * n * k")?;
    matrix(&mut b, "A", Use::Read, ["if(transA == 'N', n, k)", "if(transA == 'N', k, n)", "lda"])?;
    matrix(&mut b, "B", Use::Read, ["if(transB == 'N', k, n)", "if(transB == 'N', n, k)", "ldb"])?;
    matrix(&mut b, "C", Use::ReadWrite, ["n", "n", "ldc"])?;
    Ok(b.finish())
}

/// The values of a case.
pub fn contents(i: &Instance, seed: u64) -> Box<dyn Contents> {
    let s = Source::new(i, seed);
    let (n, k, summed) = (i.get("n"), i.get("k"), s.summed(i.get("k")));
    let (of_a, of_b) = (s.matrix(A, n, k).only(|_, l| summed(l)), s.matrix(B, k, n));
    let (before, after) = updated_triangle(&s, i, C, &of_a.times(&of_b));
    // Each of the three is its own inverse.
    let (a, b) = (of_a.op(Op::of(i, "transA")), of_b.op(Op::of(i, "transB")));
    let tables = Tables::new(i).set(i, A, a.packed(), vec![]).set(i, B, b.packed(), vec![]);
    Box::new(tables.set(i, C, before, after))
}
