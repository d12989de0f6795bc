//! C = alpha * op(A) * transpose(op(A)) + beta * C in one triangle of C.

use super::values::{Op, Source, Tables};
use super::{alpha, beta, dtype, leading, matrix, size, updated_triangle, uplo};
use crate::problem::builder::Builder;
use crate::problem::expr::ParseError;
use crate::problem::{Contents, Instance, Problem, Use};

const A: usize = 0;
const C: usize = 1;

/// The description: op(A) is n x k, C is n x n.
pub fn problem() -> Result<Problem, ParseError> {
    let mut b = Builder::new("syrk");
    uplo(&mut b);
    b.choice("trans", &["N", "T"], "op(A): A, or its transpose");
    size(&mut b, "n", "rows and columns of C");
    size(&mut b, "k", "columns of op(A)");
    leading(&mut b, "lda", "leading dimension of A, elements");
    leading(&mut b, "ldc", "leading dimension of C, elements");
    dtype(&mut b);
    alpha(&mut b);
    beta(&mut b);
    b.constraint("lda >= if(trans == 'N', n, k)")?.constraint("ldc >= n")?.work("n * n * k")?;
    matrix(&mut b, "A", Use::Read, ["if(trans == 'N', n, k)", "if(trans == 'N', k, n)", "lda"])?;
    matrix(&mut b, "C", Use::ReadWrite, ["n", "n", "ldc"])?;
    Ok(b.finish())
}

/// The values of a case.
pub fn contents(i: &Instance, seed: u64) -> Box<dyn Contents> {
    let s = Source::new(i, seed);
    let (n, k, op) = (i.get("n"), i.get("k"), Op::of(i, "trans"));
    let summed = s.summed(k);
    let of_a = s.matrix(A, n, k).only(|_, l| summed(l));
    let sum = of_a.times(&of_a.op(Op::T));
    let (before, after) = updated_triangle(&s, i, C, &sum);
    // A transposed twice is A.
    let a = of_a.op(op);
    Box::new(Tables::new(i).set(i, A, a.packed(), vec![]).set(i, C, before, after))
}
