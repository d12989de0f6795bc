//! y = alpha * op(A) * x + beta * y.

use super::values::{Op, Source, Tables};
use super::{alpha, beta, dtype, increment, leading, matrix, size, vector};
use crate::problem::builder::Builder;
use crate::problem::expr::ParseError;
use crate::problem::{Contents, Instance, Problem, Use};

const A: usize = 0;
const X: usize = 1;
const Y: usize = 2;

/// The description: A is m x n, x and y have n and m elements (N) or m and n.
pub fn problem() -> Result<Problem, ParseError> {
    let mut b = Builder::new("gemv");
    b.choice("trans", &["N", "T", "C"], "op(A): A, its transpose, its conjugate transpose");
    size(&mut b, "m", "rows of A");
    size(&mut b, "n", "columns of A");
    leading(&mut b, "lda", "leading dimension of A, elements");
    increment(&mut b, "incx", Some("negx"))?;
    increment(&mut b, "incy", Some("negy"))?;
    dtype(&mut b);
    alpha(&mut b);
    beta(&mut b);
    b.constraint("lda >= m")?.work("m * n")?;
    matrix(&mut b, "A", Use::Read, ["m", "n", "lda"])?;
    vector(&mut b, "x", Use::Read, ["if(trans == 'N', n, m)", "incx"], Some("negx"))?;
    vector(&mut b, "y", Use::ReadWrite, ["if(trans == 'N', m, n)", "incy"], Some("negy"))?;
    b.with(|b, o| {
        o.defined_when = Some(b.condition("beta != '0'")?);
        Ok(())
    })?;
    Ok(b.finish())
}

/// The values of a case.
pub fn contents(i: &Instance, seed: u64) -> Box<dyn Contents> {
    let s = Source::new(i, seed);
    let op = Op::of(i, "trans");
    let a = s.matrix(A, i.get("m"), i.get("n"));
    let of_a = a.op(op);
    let summed = s.summed(of_a.columns as i64);
    let x = s.matrix(X, of_a.columns as i64, 1).only(|l, _| summed(l));
    let y = s.matrix(Y, of_a.rows as i64, 1);
    let result = of_a.times(&x).combined(s.factor("alpha"), &y, s.factor("beta"));
    let tables = Tables::new(i).set(i, A, a.packed(), vec![]).set(i, X, x.packed(), vec![]);
    Box::new(tables.set(i, Y, y.packed(), result.packed()))
}
