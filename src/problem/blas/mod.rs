//! The routines of BLAS beside GEMM, column-major, in s d c z: a short description and the values of each.
//!
//! Source of shapes, strides and rules: the reference BLAS (the comments of `dgemv.f` and so on) and `cblas.h`. A matrix has
//! `ld * columns` declared elements and a vector `1 + (n - 1) * |inc|`, so gaps may be read. Of a triangular or symmetric
//! matrix one triangle is referenced: the view is the whole square, the other triangle of what is read holds NaN, and that of
//! what is written must stay as it was. So a read outside the triangle is only seen where its value is used.

mod gemmt;
mod gemv;
mod ger;
pub mod level1;
mod symm;
mod syr2k;
mod syrk;
mod triangular;
mod values;

pub use triangular::{trmm, trmm_contents, trsm, trsm_contents};
pub(super) use values::{Matrix, Source};
pub use {gemmt::contents as gemmt_contents, gemmt::problem as gemmt};
pub use {gemv::contents as gemv_contents, gemv::problem as gemv};
pub use {ger::contents as ger_contents, ger::problem as ger};
pub use {symm::contents as symm_contents, symm::problem as symm};
pub use {syr2k::contents as syr2k_contents, syr2k::problem as syr2k};
pub use {syrk::contents as syrk_contents, syrk::problem as syrk};

use super::Instance;
use super::builder::Builder;
use super::expr::ParseError;
use super::operand::{Gaps, Use};
use super::param::Role;

/// Largest extent; libraries with 32-bit integers narrow it.
const EXTENT: i64 = 1 << 34;
/// Largest leading dimension or increment, in elements.
const LEADING: i64 = 1 << 34;

fn size(b: &mut Builder, name: &str, doc: &'static str) {
    b.integer(name, Role::Size, 1, EXTENT, doc);
}

fn leading(b: &mut Builder, name: &str, doc: &'static str) {
    b.integer(name, Role::Stride, 1, LEADING, doc);
}

fn dtype(b: &mut Builder) {
    b.choice(
        "dtype",
        &["f32", "f64", "c64", "c128"],
        "element type of all operands: the routine's letter s, d, c or z",
    );
}

fn alpha(b: &mut Builder) {
    b.choice("alpha", &["1", "-2"], "factor alpha");
}

fn beta(b: &mut Builder) {
    b.choice("beta", &["0", "1", "-1"], "factor beta; 0 means that the result is not read");
}

fn uplo(b: &mut Builder) {
    b.choice("uplo", &["L", "U"], "the triangle that is referenced");
}

/// A matrix of `rows` by `columns` elements, column-major.
fn matrix(b: &mut Builder, name: &str, access: Use, [rows, columns, ld]: [&str; 3]) -> Result<(), ParseError> {
    b.operand(name, access, &[(rows, "1"), (columns, ld)])?.with(|_, o| {
        o.gaps = Gaps::Read;
        Ok(())
    })?;
    Ok(())
}

/// An increment, and the flag that turns it round. Its bound is a constraint, so that the packed profile holds it at 1.
fn increment(b: &mut Builder, inc: &str, negative: Option<&str>) -> Result<(), ParseError> {
    b.integer(inc, Role::Stride, 1, LEADING, "distance between two elements of the vector, elements");
    if let Some(flag) = negative {
        b.flag(flag, "the increment is passed as a negative number: the first element has the highest address");
    }
    b.constraint(&format!("{inc} >= 1"))?;
    Ok(())
}

/// A vector of `length` elements, `inc` apart; with a negative increment from the highest address down.
fn vector(
    b: &mut Builder,
    name: &str,
    access: Use,
    [length, inc]: [&str; 2],
    flag: Option<&str>,
) -> Result<(), ParseError> {
    let stride = flag.map_or(inc.to_owned(), |flag| format!("if({flag}, -{inc}, {inc})"));
    let offset = flag.map(|flag| format!("if({flag}, ({length} - 1) * {inc}, 0)"));
    b.operand(name, access, &[(length, &stride)])?.with(|b, o| {
        o.gaps = Gaps::Read;
        o.offset = offset.map(|text| b.expr(&text)).transpose()?;
        Ok(())
    })?;
    Ok(())
}

/// Whether an element of a square matrix is in the triangle that `uplo` names, the diagonal included.
fn in_triangle(instance: &Instance) -> impl Fn(i64, i64) -> bool + Copy + use<> {
    let upper = instance.word("uplo") == "U";
    move |i, j| if upper { i <= j } else { i >= j }
}

/// A square matrix of which one triangle is read: NaN in the other.
fn half_read(matrix: &Matrix, read: impl Fn(i64, i64) -> bool) -> Vec<f64> {
    let mut values = matrix.packed();
    values.iter_mut().enumerate().for_each(|(at, value)| {
        if !read((at % matrix.rows) as i64, (at / matrix.rows) as i64) {
            *value = f64::NAN;
        }
    });
    values
}

/// `alpha * sum + beta * C` in one triangle of C: what C holds before and after. With beta = 0 the triangle is NaN before.
fn updated_triangle(source: &Source<'_>, instance: &Instance, c: usize, sum: &Matrix) -> (Vec<f64>, Vec<f64>) {
    let (n, inside) = (sum.rows as i64, in_triangle(instance));
    let old = source.matrix(c, n, n);
    let (alpha, beta) = (source.factor("alpha"), source.factor("beta"));
    let new = sum.combined(alpha, &old, beta).packed();
    let mut before = old.packed();
    let mut after = before.clone();
    for at in 0..after.len() {
        if inside((at % sum.rows) as i64, (at / sum.rows) as i64) {
            after[at] = new[at];
            if beta == 0.0 {
                before[at] = f64::NAN;
            }
        }
    }
    (before, after)
}

#[cfg(test)]
mod tests;
