//! C = alpha * A * B + beta * C or alpha * B * A + beta * C with a symmetric A.

use super::values::{Matrix, Source, Tables};
use super::{alpha, beta, dtype, half_read, in_triangle, leading, matrix, size, uplo};
use crate::problem::builder::Builder;
use crate::problem::expr::ParseError;
use crate::problem::{Contents, Instance, Problem, Use};

const A: usize = 0;
const B: usize = 1;
const C: usize = 2;

/// The description: B and C are m x n, A is m x m (side L) or n x n.
pub fn problem() -> Result<Problem, ParseError> {
    let mut b = Builder::new("symm");
    b.choice("side", &["L", "R"], "the side of B on which A stands");
    uplo(&mut b);
    size(&mut b, "m", "rows of B and C");
    size(&mut b, "n", "columns of B and C");
    leading(&mut b, "lda", "leading dimension of A, elements");
    leading(&mut b, "ldb", "leading dimension of B, elements");
    leading(&mut b, "ldc", "leading dimension of C, elements");
    dtype(&mut b);
    alpha(&mut b);
    beta(&mut b);
    b.constraint("lda >= if(side == 'L', m, n)")?
        .constraint("ldb >= m")?
        .constraint("ldc >= m")?
        .work("m * n * if(side == 'L', m, n)")?;
    matrix(&mut b, "A", Use::Read, ["if(side == 'L', m, n)", "if(side == 'L', m, n)", "lda"])?;
    matrix(&mut b, "B", Use::Read, ["m", "n", "ldb"])?;
    matrix(&mut b, "C", Use::ReadWrite, ["m", "n", "ldc"])?;
    b.with(|b, o| {
        o.defined_when = Some(b.condition("beta != '0'")?);
        Ok(())
    })?;
    Ok(b.finish())
}

/// The values of a case.
pub fn contents(i: &Instance, seed: u64) -> Box<dyn Contents> {
    let s = Source::new(i, seed);
    let (m, n, left, inside) = (i.get("m"), i.get("n"), i.word("side") == "L", in_triangle(i));
    let order = if left { m } else { n };
    let stored = s.matrix(A, order, order);
    let a = Matrix::new(order, order, s.complex, |r, c| if inside(r, c) { stored.at(r, c) } else { stored.at(c, r) });
    let summed = s.summed(order);
    let b = s.matrix(B, m, n).only(|r, c| summed(if left { r } else { c }));
    let c = s.matrix(C, m, n);
    let product = if left { a.times(&b) } else { b.times(&a) };
    let result = product.combined(s.factor("alpha"), &c, s.factor("beta"));
    let tables = Tables::new(i).set(i, A, half_read(&stored, inside), vec![]).set(i, B, b.packed(), vec![]);
    Box::new(tables.set(i, C, c.packed(), result.packed()))
}
