use super::values::sparse;
use super::*;
use crate::problem::{Case, Placement, Value};
use std::sync::Arc;

fn instance(pairs: &[(&str, Value)]) -> Instance {
    let problem = Arc::new(problem().unwrap());
    let named = pairs.iter().map(|(n, v)| ((*n).to_owned(), v.clone())).collect();
    let params = problem.complete(&named).unwrap();
    problem.instance(Case { params, knobs: Default::default(), placement: Placement::END }).unwrap()
}

#[test]
fn unnamed_leading_dimensions_are_packed() {
    let i = instance(&[("m", 608.into()), ("n", 5376.into()), ("k", 21504.into()), ("transB", "T".into())]);
    assert_eq!((i.get("lda"), i.get("ldb"), i.get("ldc")), (608, 5376, 608));
    assert_eq!(i.view(B).unwrap().highest(0), 5376 * 21504 - 1);
    assert!(i.view(D).is_none());
}

#[test]
fn sums_stay_exact_in_bf16_for_any_k() {
    for k in [1, 30, 31, 32, 33, 1000, 21504] {
        let i = instance(&[("m", 2.into()), ("n", 2.into()), ("k", k.into()), ("dtype", "bf16".into())]);
        let c = contents(&i, 7);
        let size: f64 = (0..k).map(|l| (c.input(A, 0, &[0, l, 0]) * c.input(B, 0, &[l, 1, 0])).abs()).sum();
        assert!(size > 0.0 && size * 2.0 + 2.0 <= 256.0, "k = {k}: {size}");
        let sum: f64 = (0..k).map(|l| c.input(A, 0, &[0, l, 0]) * c.input(B, 0, &[l, 1, 0])).sum();
        assert_eq!(c.expected(C, 0, &[0, 1, 0]), sum);
    }
}

#[test]
fn the_sparse_form_gives_the_same_values_as_the_dense_one() {
    for (k, dtype, trans) in [(9, "f32", "N"), (100, "bf16", "N"), (100, "bf16", "T"), (600, "f16", "T")] {
        let i = instance(&[
            ("m", 5.into()),
            ("n", 4.into()),
            ("k", k.into()),
            ("batch", 3.into()),
            ("strideA", 7.into()),
            ("beta", "-1".into()),
            ("dtype", dtype.into()),
            ("transA", trans.into()),
        ]);
        let (dense, sparse) = (contents(&i, 3), sparse(&i, 3));
        for (x, y, z) in (0..5).flat_map(|x| (0..4).flat_map(move |y| (0..3).map(move |z| (x, y, z)))) {
            assert_eq!(dense.expected(C, 0, &[x, y, z]), sparse.expected(C, 0, &[x, y, z]));
            let terms = |l| dense.input(A, 0, &[x, l, z]) * dense.input(B, 0, &[l, y, z]);
            let sum: f64 = (0..k).map(terms).sum();
            assert_eq!(dense.expected(C, 0, &[x, y, z]), sum - dense.input(C, 0, &[x, y, z]));
            assert!((0..k).map(|l| terms(l).abs()).sum::<f64>() > 0.0);
        }
    }
}

#[test]
fn a_row_holds_what_its_elements_hold() {
    for (m, k, trans) in [(9, 20, "N"), (150, 9000, "T"), (3, 40, "N"), (1, 1, "N")] {
        let i = instance(&[
            ("m", m.into()),
            ("n", 3.into()),
            ("k", k.into()),
            ("batch", 2.into()),
            ("alpha", "-2".into()),
            ("beta", "1".into()),
            ("transA", trans.into()),
        ]);
        let both = [contents(&i, 11), Box::new(sparse(&i, 11)) as Box<dyn Contents>];
        let dims = [(A, 0), (A, 1), (A, 2), (B, 0), (B, 1), (B, 2), (C, 0), (C, 1), (C, 2)];
        for ((operand, dim), c) in dims.into_iter().flat_map(|d| both.iter().map(move |c| (d, c))) {
            let first = [0, 1, 0].map(|at| if i.view(operand).unwrap().dims[1].extent > 1 { at } else { 0 });
            let rest = i.view(operand).unwrap().dims[dim].extent - first[dim];
            let (mut index, mut row) = (first, vec![0.0; rest.min(200) as usize]);
            let at = |x: usize| {
                let mut at = first;
                at[dim] += x as i64;
                at
            };
            c.input_run(operand, 0, &mut index, dim, &mut row);
            assert_eq!(index, first);
            row.iter().enumerate().for_each(|(x, v)| assert_eq!(*v, c.input(operand, 0, &at(x))));
            if operand == C {
                c.expected_run(C, 0, &mut index, dim, &mut row);
                assert_eq!(index, first);
                row.iter().enumerate().for_each(|(x, v)| assert_eq!(*v, c.expected(C, 0, &at(x))));
            }
        }
    }
}

#[test]
fn elements_that_several_products_share_have_one_value() {
    for (stride, trans, dtype) in [(0, "N", "f32"), (1, "T", "bf16"), (3, "N", "bf16"), (50, "N", "f16")] {
        let i = instance(&[
            ("m", 4.into()),
            ("k", 300.into()),
            ("lda", 310.into()),
            ("batch", 4.into()),
            ("strideA", stride.into()),
            ("dtype", dtype.into()),
            ("transA", trans.into()),
        ]);
        let (c, view) = (contents(&i, 5), i.view(A).unwrap());
        let mut at = std::collections::HashMap::new();
        for (x, l, z) in (0..4).flat_map(|x| (0..300).flat_map(move |l| (0..4).map(move |z| (x, l, z)))) {
            let index = [x, l, z];
            let value = c.input(A, 0, &index);
            assert_eq!(*at.entry(view.offset_of(0, &index)).or_insert(value), value);
        }
    }
}

#[test]
fn sums_of_8_bit_floats_stay_exact_in_the_bits_of_their_multipliers() {
    for (k, dtype) in [(1, "f8e4m3_f32"), (600, "f8e4m3_f32"), (20_000, "f8e5m2_f8e4m3_bf16")] {
        let i = instance(&[("k", k.into()), ("dtype", dtype.into()), ("transA", "T".into()), ("beta", "1".into())]);
        let c = contents(&i, 5);
        let size: f64 = (0..k).map(|l| (c.input(A, 0, &[0, l, 0]) * c.input(B, 0, &[l, 0, 0])).abs()).sum();
        assert!(size > 0.0 && size * 2.0 + 2.0 <= 4096.0, "k = {k}: {size}");
    }
}

#[test]
fn a_dtype_of_several_words_names_the_types_of_the_operands_in_order() {
    let types = |dtype: &str| {
        let i = instance(&[("dtype", dtype.into()), ("out", "D".into())]);
        [A, B, C, D].map(|o| i.view(o).unwrap().dtype.unwrap().name())
    };
    assert_eq!(types("tf32"), ["f32"; 4]);
    assert_eq!(types("i8_i32"), ["i8", "i8", "i32", "i32"]);
    assert_eq!(types("f8e5m2_f8e4m3_bf16"), ["f8e5m2", "f8e4m3", "bf16", "bf16"]);
}
