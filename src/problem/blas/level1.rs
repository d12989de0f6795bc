//! The routines on vectors. Those that return a number write it to the operand r, as the caller of the routine would.

use super::values::{Matrix, Op, Source, Tables};
use super::{alpha, dtype, increment, size, vector};
use crate::problem::builder::Builder;
use crate::problem::complex::pack;
use crate::problem::expr::ParseError;
use crate::problem::{Contents, Dtype, ElementType, Instance, Problem, Use};

const X: usize = 0;
const Y: usize = 1;

/// x, of which the increment may be negative where there is a y.
fn one(b: &mut Builder, access: Use) -> Result<(), ParseError> {
    size(b, "n", "elements of the vector");
    increment(b, "incx", None)?;
    dtype(b);
    b.work("n")?;
    vector(b, "x", access, ["n", "incx"], None)
}

fn two(b: &mut Builder, x: Use, y: Use) -> Result<(), ParseError> {
    size(b, "n", "elements of each vector");
    increment(b, "incx", Some("negx"))?;
    increment(b, "incy", Some("negy"))?;
    dtype(b);
    b.work("n")?;
    vector(b, "x", x, ["n", "incx"], Some("negx"))?;
    vector(b, "y", y, ["n", "incy"], Some("negy"))
}

/// The result of a routine that returns one: of the type that `of` makes of the vector's, one element.
fn result(b: &mut Builder, of: fn(Dtype) -> Dtype) -> Result<(), ParseError> {
    b.operand("r", Use::Write, &[])?.with(|_, o| {
        if let ElementType::Param { types, .. } = &mut o.element {
            types.iter_mut().for_each(|t| *t = of(*t));
        }
        Ok(())
    })?;
    Ok(())
}

/// y = alpha * x + y.
pub fn axpy() -> Result<Problem, ParseError> {
    let mut b = Builder::new("axpy");
    two(&mut b, Use::Read, Use::ReadWrite)?;
    alpha(&mut b);
    Ok(b.finish())
}

/// y = x.
pub fn copy() -> Result<Problem, ParseError> {
    let mut b = Builder::new("copy");
    two(&mut b, Use::Read, Use::Write)?;
    Ok(b.finish())
}

/// x and y change places.
pub fn swap() -> Result<Problem, ParseError> {
    let mut b = Builder::new("swap");
    two(&mut b, Use::ReadWrite, Use::ReadWrite)?;
    Ok(b.finish())
}

/// x = alpha * x.
pub fn scal() -> Result<Problem, ParseError> {
    let mut b = Builder::new("scal");
    one(&mut b, Use::ReadWrite)?;
    alpha(&mut b);
    Ok(b.finish())
}

/// x = c * x + s * y and y = c * y - s * x.
pub fn rot() -> Result<Problem, ParseError> {
    let mut b = Builder::new("rot");
    two(&mut b, Use::ReadWrite, Use::ReadWrite)?;
    b.choice("c", &["1", "2"], "factor c").choice("s", &["1", "-1"], "factor s");
    b.constraint("dtype == 'f32' or dtype == 'f64'")?;
    Ok(b.finish())
}

/// r = sum of x * y, or of the conjugate of x times y.
pub fn dot() -> Result<Problem, ParseError> {
    let mut b = Builder::new("dot");
    two(&mut b, Use::Read, Use::Read)?;
    b.flag("conj", "x is conjugated: cdotc and zdotc instead of cdotu and zdotu")
        .only_when("dtype == 'c64' or dtype == 'c128'")?;
    result(&mut b, |dtype| dtype)?;
    Ok(b.finish())
}

/// r = sum of |x|; of |re| + |im| where x is complex.
pub fn asum() -> Result<Problem, ParseError> {
    let mut b = Builder::new("asum");
    one(&mut b, Use::Read)?;
    result(&mut b, Dtype::real)?;
    Ok(b.finish())
}

/// r = square root of the sum of |x|^2.
pub fn nrm2() -> Result<Problem, ParseError> {
    let mut b = Builder::new("nrm2");
    one(&mut b, Use::Read)?;
    result(&mut b, Dtype::real)?;
    Ok(b.finish())
}

/// r = index, from 0 on, of the first element with the largest |x|, or |re| + |im|.
pub fn iamax() -> Result<Problem, ParseError> {
    let mut b = Builder::new("iamax");
    one(&mut b, Use::Read)?;
    result(&mut b, |_| Dtype::I64)?;
    Ok(b.finish())
}

/// x and y of a case.
fn vectors<'a>(i: &'a Instance, seed: u64) -> (Source<'a>, Matrix, Matrix) {
    let s = Source::new(i, seed);
    let n = i.get("n");
    let (x, y) = (s.matrix(X, n, 1), s.matrix(Y, n, 1));
    (s, x, y)
}

/// The values of a case of axpy.
pub fn axpy_contents(i: &Instance, seed: u64) -> Box<dyn Contents> {
    let (s, x, y) = vectors(i, seed);
    let result = x.combined(s.factor("alpha"), &y, 1.0);
    Box::new(Tables::new(i).set(i, X, x.packed(), vec![]).set(i, Y, y.packed(), result.packed()))
}

/// The values of a case of copy.
pub fn copy_contents(i: &Instance, seed: u64) -> Box<dyn Contents> {
    let (_, x, _) = vectors(i, seed);
    Box::new(Tables::new(i).set(i, X, x.packed(), vec![]).set(i, Y, vec![], x.packed()))
}

/// The values of a case of swap: those of y differ from those of x everywhere.
pub fn swap_contents(i: &Instance, seed: u64) -> Box<dyn Contents> {
    let (_, x, y) = vectors(i, seed);
    let y = y.combined(1.0, &x, 5.0);
    Box::new(Tables::new(i).set(i, X, x.packed(), y.packed()).set(i, Y, y.packed(), x.packed()))
}

/// The values of a case of scal.
pub fn scal_contents(i: &Instance, seed: u64) -> Box<dyn Contents> {
    let (s, x, _) = vectors(i, seed);
    let result = x.combined(s.factor("alpha"), &x, 0.0);
    Box::new(Tables::new(i).set(i, X, x.packed(), result.packed()))
}

/// The values of a case of rot.
pub fn rot_contents(i: &Instance, seed: u64) -> Box<dyn Contents> {
    let (source, x, y) = vectors(i, seed);
    let (c, s) = (source.factor("c"), source.factor("s"));
    let tables = Tables::new(i).set(i, X, x.packed(), x.combined(c, &y, s).packed());
    Box::new(tables.set(i, Y, y.packed(), y.combined(c, &x, -s).packed()))
}

/// The values of a case of dot.
pub fn dot_contents(i: &Instance, seed: u64) -> Box<dyn Contents> {
    const R: usize = 2;
    let (s, x, y) = vectors(i, seed);
    let summed = s.summed(i.get("n"));
    let x = x.only(|at, _| summed(at));
    let row = x.op(if i.word("conj") == "true" { Op::C } else { Op::T });
    let tables = Tables::new(i).set(i, X, x.packed(), vec![]).set(i, Y, y.packed(), vec![]);
    Box::new(tables.set(i, R, vec![], row.times(&y).packed()))
}

/// Operand r of the routines on one vector.
const R: usize = 1;

/// The values of a case of asum.
pub fn asum_contents(i: &Instance, seed: u64) -> Box<dyn Contents> {
    let (s, x, _) = vectors(i, seed);
    let summed = s.summed(i.get("n"));
    let x = x.only(|at, _| summed(at));
    let sum = (0..i.get("n")).map(|at| x.at(at, 0)).map(|(re, im)| re.abs() + im.abs()).sum();
    Box::new(Tables::new(i).set(i, X, x.packed(), vec![]).set(i, R, vec![], vec![sum]))
}

/// The values of a case of nrm2: entries of size 1, a square number of them, and 0 in the middle, so that the root is whole.
pub fn nrm2_contents(i: &Instance, seed: u64) -> Box<dyn Contents> {
    let (s, n) = (Source::new(i, seed), i.get("n"));
    let root = (n as u64).isqrt() as i64;
    let zeros = n - root * root;
    let first = (n - zeros) / 2;
    let x = (0..n).map(|at| match s.pick(at, if s.complex { 4 } else { 2 }) {
        _ if (first..first + zeros).contains(&at) => 0.0,
        0 => 1.0,
        1 => -1.0,
        2 => pack(0.0, 1.0),
        _ => pack(0.0, -1.0),
    });
    Box::new(Tables::new(i).set(i, X, x.collect(), vec![]).set(i, R, vec![], vec![root as f64]))
}

/// The values of a case of iamax: one element is the largest, often the last.
pub fn iamax_contents(i: &Instance, seed: u64) -> Box<dyn Contents> {
    let (s, x, _) = vectors(i, seed);
    let n = i.get("n");
    let largest = match s.pick(n, 4) {
        0 => 0,
        1 => s.pick(-1, n),
        _ => n - 1,
    };
    let mut values = x.packed();
    values[largest as usize] = if s.complex { pack(-4.0, 4.0) } else { -8.0 };
    Box::new(Tables::new(i).set(i, X, values, vec![]).set(i, R, vec![], vec![largest as f64]))
}
