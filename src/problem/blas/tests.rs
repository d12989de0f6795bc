use super::values::{Matrix, Op};
use crate::problem::complex::unpack;
use crate::problem::{Builtin, Case, Instance, Knobs, Placement, Value};
use proptest::prelude::*;

fn instance(problem: &str, words: &str) -> Instance {
    let problem = Builtin::find(problem).unwrap().problem();
    let named = words.split_whitespace().filter_map(|w| w.split_once('='));
    let named = named.map(|(n, v)| (n.to_owned(), Value::from_word(v))).collect();
    let params = problem.complete(&named).unwrap();
    problem.instance(Case { params, knobs: Knobs::new(), placement: Placement::END }).unwrap()
}

fn contents(i: &Instance) -> Box<dyn crate::problem::Contents> {
    (Builtin::find(&i.problem.name).unwrap().contents)(i, 7)
}

fn entries(rows: i64, columns: i64, complex: bool, seed: i64) -> Matrix {
    Matrix::new(rows, columns, complex, |i, j| {
        let x = (i * 31 + j * 17 + seed) % 5 - 2;
        (x as f64, ((x * 3 + seed) % 4) as f64)
    })
}

proptest! {
    #[test]
    fn a_product_is_the_sum_over_the_inner_index(
        m in 1i64..5, n in 1i64..5, k in 1i64..5, complex in any::<bool>(), seed in 0i64..50
    ) {
        let (a, b) = (entries(m, k, complex, seed), entries(k, n, complex, seed + 3));
        let product = a.times(&b);
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let mut sum = (0.0, 0.0);
            for l in 0..k {
                let ((x, y), (u, v)) = (a.at(i, l), b.at(l, j));
                sum = (sum.0 + x * u - y * v, sum.1 + x * v + y * u);
            }
            prop_assert_eq!(product.at(i, j), sum);
            prop_assert_eq!(a.op(Op::T).at(0, 0), a.at(0, 0));
            let (re, im) = a.at(i, 0);
            prop_assert_eq!(a.op(Op::C).at(0, i), (re, -im));
        }
    }

    /// op(A) * X = alpha * B, with the X and B that trsm is given.
    #[test]
    fn the_solution_of_trsm_solves_its_equation(
        m in 1i64..7, n in 1i64..7, side in "[LR]", uplo in "[LU]", trans in "[NTC]", diag in "[NU]",
        dtype in prop::sample::select(vec!["f32", "c64"]), alpha in prop::sample::select(vec!["1", "-2"])
    ) {
        let words = format!("m={m} n={n} side={side} uplo={uplo} trans={trans} diag={diag} dtype={dtype} alpha={alpha}");
        let i = instance("trsm", &words);
        let c = contents(&i);
        let (order, complex) = (if side == "L" { m } else { n }, dtype == "c64");
        let a = Matrix::new(order, order, complex, |r, s| match c.input(0, 0, &[r, s]) {
            _ if diag == "U" && r == s => (1.0, 0.0),
            hidden if hidden.is_nan() => (0.0, 0.0),
            value => if complex { unpack(value) } else { (value, 0.0) },
        });
        let read = |of: &dyn Fn(&[i64]) -> f64| {
            Matrix::new(m, n, complex, |r, s| {
                let value = of(&[r, s]);
                if complex { unpack(value) } else { (value, 0.0) }
            })
        };
        let (b, x) = (read(&|at| c.input(1, 0, at)), read(&|at| c.expected(1, 0, at)));
        let a = a.op(match trans.as_str() { "N" => Op::N, "T" => Op::T, _ => Op::C });
        let left = if side == "L" { a.times(&x) } else { x.times(&a) };
        prop_assert_eq!(left, b.combined(alpha.parse().unwrap(), &b, 0.0));
    }
}

#[test]
fn what_is_not_referenced_holds_no_number_and_what_is_not_written_stays() {
    for (words, inside) in [("uplo=U", (0, 1)), ("uplo=L", (1, 0))] {
        let outside = (inside.1, inside.0);
        let at = |(r, c): (i64, i64)| [r, c];
        let symm = contents(&instance("symm", &format!("m=3 n=2 {words}")));
        assert!(symm.input(0, 0, &at(outside)).is_nan() && !symm.input(0, 0, &at(inside)).is_nan());
        let syrk = contents(&instance("syrk", &format!("n=3 k=2 beta=0 {words}")));
        assert_eq!(syrk.input(1, 0, &at(outside)), syrk.expected(1, 0, &at(outside)));
        assert!(syrk.input(1, 0, &at(inside)).is_nan() && !syrk.expected(1, 0, &at(inside)).is_nan());
        let unit = contents(&instance("trmm", &format!("m=3 n=2 diag=U {words}")));
        assert!(unit.input(0, 0, &[1, 1]).is_nan());
    }
}

#[test]
fn sums_of_any_length_stay_exact() {
    for (problem, words) in [("dot", "n=2000000"), ("asum", "n=2000000"), ("dot", "n=2000000 dtype=c128")] {
        let i = instance(problem, words);
        let result = i.problem.operand("r").unwrap();
        let exact = f64::from(1 << 24);
        let values = contents(&i);
        let (re, im) = unpack(values.expected(result, 0, &[]));
        assert!(re.abs() <= exact && im.abs() <= exact, "{problem}: {re} {im}");
        let view = i.view(0).unwrap();
        let terms: f64 = (0..view.dims[0].extent)
            .map(|at| {
                let value = values.input(0, 0, &[at]);
                let (re, im) = if view.dtype.unwrap().is_complex() { unpack(value) } else { (value, 0.0) };
                8.0 * (re.abs() + im.abs())
            })
            .sum();
        assert!(terms > 0.0 && terms <= 2.0 * exact, "{problem}: {terms}");
    }
}

#[test]
fn a_norm_is_whole_and_the_largest_element_is_one() {
    for n in [1, 2, 3, 5, 9, 100, 1000] {
        let norm = instance("nrm2", &format!("n={n}"));
        let c = contents(&norm);
        let sum: f64 = (0..n).map(|at| c.input(0, 0, &[at]).powi(2)).sum();
        assert_eq!(sum.sqrt(), c.expected(1, 0, &[]));
        let most = instance("iamax", &format!("n={n}"));
        let c = contents(&most);
        let size = |at: i64| c.input(0, 0, &[at]).abs();
        let largest = c.expected(1, 0, &[]) as i64;
        assert!((0..n).all(|at| at == largest || size(at) < size(largest)));
    }
}

#[test]
fn a_negative_increment_starts_at_the_highest_address() {
    let i = instance("copy", "n=4 incx=3 negx=true");
    let view = i.view(0).unwrap();
    assert_eq!((view.offset_of(0, &[0]), view.offset_of(0, &[3]), view.lowest(0)), (9, 0, 0));
}
