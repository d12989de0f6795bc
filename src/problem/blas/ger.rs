//! A = A + alpha * x * transpose(y), or with the conjugate of y.

use super::values::{Matrix, Op, Source, Tables};
use super::{alpha, dtype, increment, leading, matrix, size, vector};
use crate::problem::builder::Builder;
use crate::problem::expr::ParseError;
use crate::problem::{Contents, Instance, Problem, Use};

const X: usize = 0;
const Y: usize = 1;
const A: usize = 2;

/// The description: A is m x n.
pub fn problem() -> Result<Problem, ParseError> {
    let mut b = Builder::new("ger");
    size(&mut b, "m", "rows of A, elements of x");
    size(&mut b, "n", "columns of A, elements of y");
    leading(&mut b, "lda", "leading dimension of A, elements");
    increment(&mut b, "incx", Some("negx"))?;
    increment(&mut b, "incy", Some("negy"))?;
    dtype(&mut b);
    b.flag("conj", "y is conjugated: cgerc and zgerc instead of cgeru and zgeru")
        .only_when("dtype == 'c64' or dtype == 'c128'")?;
    alpha(&mut b);
    b.constraint("lda >= m")?.work("m * n")?;
    vector(&mut b, "x", Use::Read, ["m", "incx"], Some("negx"))?;
    vector(&mut b, "y", Use::Read, ["n", "incy"], Some("negy"))?;
    matrix(&mut b, "A", Use::ReadWrite, ["m", "n", "lda"])?;
    Ok(b.finish())
}

/// The values of a case.
pub fn contents(i: &Instance, seed: u64) -> Box<dyn Contents> {
    let s = Source::new(i, seed);
    let (m, n) = (i.get("m"), i.get("n"));
    let (x, y, a): (Matrix, Matrix, Matrix) = (s.matrix(X, m, 1), s.matrix(Y, n, 1), s.matrix(A, m, n));
    let row = y.op(if i.word("conj") == "true" { Op::C } else { Op::T });
    let result = x.times(&row).combined(s.factor("alpha"), &a, 1.0);
    let tables = Tables::new(i).set(i, X, x.packed(), vec![]).set(i, Y, y.packed(), vec![]);
    Box::new(tables.set(i, A, a.packed(), result.packed()))
}
