//! trmm: B = alpha * op(A) * B or alpha * B * op(A). trsm: the X for which op(A) * X or X * op(A) is alpha * B.

use super::values::{Matrix, Op, Source, Tables};
use super::{alpha, dtype, half_read, in_triangle, leading, matrix, size, uplo};
use crate::problem::builder::Builder;
use crate::problem::expr::ParseError;
use crate::problem::{Contents, Instance, Problem, Use};

const A: usize = 0;
const B: usize = 1;

/// The description of trmm: B is m x n, A is m x m (side L) or n x n, triangular.
pub fn trmm() -> Result<Problem, ParseError> {
    problem("trmm")
}

/// The description of trsm, with the operands of trmm; X replaces B.
pub fn trsm() -> Result<Problem, ParseError> {
    problem("trsm")
}

fn problem(name: &str) -> Result<Problem, ParseError> {
    let mut b = Builder::new(name);
    b.choice("side", &["L", "R"], "the side of B on which A stands");
    uplo(&mut b);
    b.choice("trans", &["N", "T", "C"], "op(A): A, its transpose, its conjugate transpose").choice(
        "diag",
        &["N", "U"],
        "U: the diagonal of A is 1 and not referenced",
    );
    size(&mut b, "m", "rows of B");
    size(&mut b, "n", "columns of B");
    leading(&mut b, "lda", "leading dimension of A, elements");
    leading(&mut b, "ldb", "leading dimension of B, elements");
    dtype(&mut b);
    alpha(&mut b);
    b.constraint("lda >= if(side == 'L', m, n)")?.constraint("ldb >= m")?.work("m * n * if(side == 'L', m, n)")?;
    matrix(&mut b, "A", Use::Read, ["if(side == 'L', m, n)", "if(side == 'L', m, n)", "lda"])?;
    matrix(&mut b, "B", Use::ReadWrite, ["m", "n", "ldb"])?;
    Ok(b.finish())
}

/// What both routines have in common.
struct Setting {
    left: bool,
    op: Op,
    unit: bool,
    order: i64,
}

impl Setting {
    fn of(i: &Instance) -> Setting {
        let left = i.word("side") == "L";
        let order = i.get(if left { "m" } else { "n" });
        Setting { left, op: Op::of(i, "trans"), unit: i.word("diag") == "U", order }
    }

    /// op(A) * x or x * op(A).
    fn product(&self, a: &Matrix, x: &Matrix) -> Matrix {
        let a = a.op(self.op);
        if self.left { a.times(x) } else { x.times(&a) }
    }

    /// What A holds: one triangle, with or without the diagonal.
    fn stored(&self, i: &Instance, a: &Matrix) -> Vec<f64> {
        let inside = in_triangle(i);
        half_read(a, |r, c| inside(r, c) && !(self.unit && r == c))
    }
}

/// The values of a case of trmm.
pub fn trmm_contents(i: &Instance, seed: u64) -> Box<dyn Contents> {
    let (s, setting, inside) = (Source::new(i, seed), Setting::of(i), in_triangle(i));
    let a = Matrix::new(setting.order, setting.order, s.complex, |r, c| match inside(r, c) {
        _ if setting.unit && r == c => (1.0, 0.0),
        true => s.entry(A, &[r, c]),
        false => (0.0, 0.0),
    });
    let summed = s.summed(setting.order);
    let b = s.matrix(B, i.get("m"), i.get("n")).only(|r, c| summed(if setting.left { r } else { c }));
    let result = setting.product(&a, &b);
    let result = result.combined(s.factor("alpha"), &result, 0.0);
    Box::new(Tables::new(i).set(i, A, setting.stored(i, &a), vec![]).set(i, B, b.packed(), result.packed()))
}

/// The values of a case of trsm.
///
/// Every step of every way to solve is exact: A is D + N, D of 1, -1 (i, -i) on the diagonal, and N with a row only where it
/// has no column, so that N * D * N is 0 and the inverse of A as small as A.
pub fn trsm_contents(i: &Instance, seed: u64) -> Box<dyn Contents> {
    let (s, setting, inside) = (Source::new(i, seed), Setting::of(i), in_triangle(i));
    let (order, summed) = (setting.order, s.summed(setting.order));
    let unit = |at: i64| match s.pick(at, if s.complex { 4 } else { 2 }) {
        0 => (1.0, 0.0),
        1 => (-1.0, 0.0),
        2 => (0.0, 1.0),
        _ => (0.0, -1.0),
    };
    // Half of the indices have columns, the others rows.
    let has_column = |at: i64| s.pick(order + at, 2) == 0;
    let a = Matrix::new(order, order, s.complex, |r, c| match inside(r, c) {
        _ if r == c => {
            if setting.unit {
                (1.0, 0.0)
            } else {
                unit(r)
            }
        }
        true if has_column(c) && !has_column(r) && summed(c) && summed(r) => s.entry(A, &[r, c]),
        _ => (0.0, 0.0),
    });
    let x = s.matrix(B, i.get("m"), i.get("n"));
    let b = setting.product(&a, &x);
    let result = x.combined(s.factor("alpha"), &x, 0.0);
    Box::new(Tables::new(i).set(i, A, setting.stored(i, &a), vec![]).set(i, B, b.packed(), result.packed()))
}
