use super::*;
use crate::problem::complex::{pack, unpack};
use crate::problem::contents::Along;
use crate::problem::{Case, Placement, Value};
use proptest::prelude::*;
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

/// The result by its definition.
fn by_definition(i: &Instance, c: &dyn Contents, [x, y, z]: [i64; 3]) -> f64 {
    let out = if i.word("out") == "D" { D } else { C };
    let complex = i.view(out).unwrap().dtype.unwrap().is_complex();
    let parts = |value: f64| if complex { unpack(value) } else { (value, 0.0) };
    let factor = |operand, index: [i64; 3], trans: &str| {
        let (re, im) = parts(c.input(operand, 0, &index));
        (re, if i.word(trans) == "C" { -im } else { im })
    };
    let (mut re, mut im) = (0.0, 0.0);
    for l in 0..i.get("k") {
        let (a, b) = (factor(A, [x, l, z], "transA"), factor(B, [l, y, z], "transB"));
        (re, im) = (re + a.0 * b.0 - a.1 * b.1, im + a.0 * b.1 + a.1 * b.0);
    }
    let number = |name: &str| i.word(name).parse::<f64>().unwrap();
    let old = if number("beta") == 0.0 { (0.0, 0.0) } else { parts(c.input(C, 0, &[x, y, z])) };
    let [re, im] = [(re, old.0), (im, old.1)].map(|(new, old)| number("alpha") * new + number("beta") * old);
    if complex { pack(re, im) } else { re }
}

prop_compose! {
    fn any_case()(sizes in prop::array::uniform3(prop_oneof![1i64..12, 1i64..40, 120i64..140]), batch in 1i64..4,
                  pad in prop::array::uniform3(prop_oneof![Just(0), 0i64..6]), stride in prop_oneof![Just(0), 0i64..9],
                  trans in prop::array::uniform2(prop::sample::select(vec!["N", "T", "C"])),
                  dtype in prop::sample::select(vec!["f32", "f64", "f16", "bf16", "c64", "c128"]),
                  out in prop::sample::select(vec!["C", "D"]), alpha in prop::sample::select(vec!["1", "-2"]),
                  beta in prop::sample::select(vec!["0", "1", "-1"])) -> Instance {
        let [m, n, k] = sizes;
        let ld = |plain: bool, a: i64, b: i64| if plain { a } else { b };
        let mut pairs: Vec<(&str, Value)> = vec![
            ("m", m.into()), ("n", n.into()), ("k", k.into()), ("batch", batch.into()),
            ("lda", (ld(trans[0] == "N", m, k) + pad[0]).into()), ("ldb", (ld(trans[1] == "N", k, n) + pad[1]).into()),
            ("ldc", (m + pad[2]).into()), ("transA", trans[0].into()), ("transB", trans[1].into()),
            ("dtype", dtype.into()), ("out", out.into()), ("alpha", alpha.into()), ("beta", beta.into()),
        ];
        if batch > 1 {
            pairs.extend([("strideA", stride.into()), ("strideB", (7 * stride).into())]);
        }
        instance(&pairs)
    }
}

proptest! {
    #[test]
    fn the_result_is_that_of_the_definition(i in any_case(), pick in prop::array::uniform3(0i64..1 << 30)) {
        let c = contents(&i, 3);
        let out = if i.word("out") == "D" { D } else { C };
        let index = ["m", "n", "batch"].map(|name| i.get(name));
        let index: [i64; 3] = std::array::from_fn(|d| pick[d] % index[d]);
        prop_assert_eq!(c.expected(out, 0, &index), by_definition(&i, &*c, index));
    }

    /// Any part of an operand, walked along any of its dimensions.
    #[test]
    fn a_run_holds_what_its_elements_hold(i in any_case(), cuts in prop::array::uniform3((0i64..1 << 20, 0i64..1 << 20)),
                                          whole in prop::array::uniform3(any::<bool>()), skip in 0usize..3, start in 0usize..40,
                                          most in 1usize..300) {
        let (c, out) = (contents(&i, 11), if i.word("out") == "D" { D } else { C });
        for operand in [A, B, C, out] {
            let dims = &i.view(operand).unwrap().dims;
            let range = |d: usize| {
                let extent = dims[d].extent;
                let (from, to) = (cuts[d].0 % extent, cuts[d].1 % extent);
                if whole[d] { (0, extent) } else { (from.min(to), from.max(to) + 1) }
            };
            // Dimensions in the order of memory, from one of them on, as long as they run on into each other.
            let mut order: Vec<usize> = (0..3).filter(|d| range(*d).1 - range(*d).0 > 1).collect();
            order.sort_by_key(|d| dims[*d].stride);
            let mut along: Vec<Along> = vec![];
            for d in order.into_iter().skip(skip) {
                let (first, end) = range(d);
                if along.last().is_some_and(|a| dims[a.dim].stride * a.extent != dims[d].stride) {
                    break;
                }
                along.push(Along { dim: d, first, extent: end - first });
            }
            let total: i64 = along.iter().map(|a| a.extent).product();
            let at = |place: i64| {
                let (mut index, mut rest) = ([0, 1, 2].map(|d| range(d).0), place);
                for a in &along {
                    index[a.dim] = a.first + rest % a.extent;
                    rest /= a.extent;
                }
                index
            };
            let start = start as i64 % total;
            let (mut index, mut run) = (at(start), vec![0.0; most.min((total - start) as usize)]);
            if operand != D {
                c.input_run(operand, 0, &mut index, &along, &mut run);
                prop_assert_eq!(index, at(start));
                (start..).zip(&run).for_each(|(x, v)| assert_eq!(*v, c.input(operand, 0, &at(x))));
            }
            if operand == out {
                c.expected_run(operand, 0, &mut index, &along, &mut run);
                prop_assert_eq!(index, at(start));
                (start..).zip(&run).for_each(|(x, v)| assert_eq!(*v, c.expected(operand, 0, &at(x)), "{:?}", at(x)));
            }
        }
    }
}

#[test]
fn blocks_of_a_long_result_follow_each_other() {
    for (m, n, k, dtype) in [
        (3, 20_000, 2, "f32"),
        (1, 40_000, 1, "c64"),
        (20_000, 3, 2, "f64"),
        (2, 2, 30_000, "c128"),
        (200, 300, 40, "f32"),
    ] {
        let i = instance(&[
            ("m", m.into()),
            ("n", n.into()),
            ("k", k.into()),
            ("dtype", dtype.into()),
            ("beta", "-1".into()),
        ]);
        let c = contents(&i, 3);
        let along: Vec<Along> = [(0, m), (1, n)]
            .into_iter()
            .filter(|d| d.1 > 1)
            .map(|(dim, extent)| Along { dim, first: 0, extent })
            .collect();
        let mut run = vec![0.0; 1024];
        for first in (0..m * n).step_by(1024) {
            let run = &mut run[..1024.min(m * n - first) as usize];
            c.expected_run(C, 0, &mut [first % m, first / m, 0], &along, run);
            for at in [0, run.len() / 2, run.len() - 1] {
                let place = first + at as i64;
                assert_eq!(run[at], by_definition(&i, &*c, [place % m, place / m, 0]));
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
