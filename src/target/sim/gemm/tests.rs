use super::models::{GridNegative, GridU16, IndexF32};
use super::shape::{Shape, Tile};
use super::*;
use crate::exec::verdict::Sample;
use crate::target::IndexBox;
use crate::target::sim::testing::{End, NO_CAPS, end, instance, target, wrong};
use proptest::prelude::*;
use std::collections::BTreeSet;

const PLAIN: Tile = Tile { m: 64, n: 64, unroll: 16 };
const SEGV: End = End::Signal(libc::SIGSEGV);

/// A small case with every feature, as words.
fn words() -> impl Strategy<Value = String> {
    let trans = || prop::sample::select(vec!["N", "T"]);
    let shape = (1i64..20, 1i64..20, 1i64..14, 1i64..4);
    let extra = prop::array::uniform8(0i64..9);
    let kind = (
        prop::sample::select(vec!["f32", "f64", "f16", "bf16"]),
        prop::sample::select(vec!["1", "-2"]),
        prop::sample::select(vec!["0", "1", "-1"]),
        prop::sample::select(vec!["C", "D"]),
    );
    (trans(), trans(), shape, extra, kind).prop_map(|(ta, tb, (m, n, k, batch), x, (dtype, alpha, beta, out))| {
        let lda = x[0] + if ta == "T" { k } else { m };
        let ldb = x[1] + if tb == "T" { n } else { k };
        let (ldc, ldd) = (m + x[2], m + x[3]);
        let mut words = format!(
            "transA={ta} transB={tb} m={m} n={n} k={k} lda={lda} ldb={ldb} ldc={ldc} out={out} dtype={dtype} \
             alpha={alpha} beta={beta} batch={batch} offA={} offB={} offC={}",
            x[4], x[5], x[6]
        );
        if out == "D" {
            words += &format!(" ldd={ldd}");
        }
        if batch > 1 {
            words += &format!(" strideA={} strideB={} strideC={}", x[7] * 7, x[0] * x[1], n * ldc + x[3]);
            if out == "D" {
                words += &format!(" strideD={}", n * ldd + x[6]);
            }
        }
        words
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_model_is_right_on_small_shapes_that_its_defect_spares(words in words()) {
        let case = instance("gemm", &words);
        for model in [
            "clean", "i32-sum,operand=A", "i32-sum,operand=B", "i32-sum,operand=C", "i32-term,operand=A",
            "i32-term,operand=B", "i32-term,operand=C", "batch-i32,operand=A", "batch-i32,operand=B",
            "batch-i32,operand=C", "u32-bytes-drop,bits=31", "grid-u16", "grid-negative", "index-f32", "hang", "abort",
            "flaky,rate=1",
        ] {
            let model = format!("{model},tile=8x8,unroll=4");
            prop_assert_eq!(wrong(&model, &case, &NO_CAPS), vec![], "{} on {}", model, words);
        }
    }

    #[test]
    fn the_launcher_derives_the_same_strides_as_the_description(words in words()) {
        let case = instance("gemm", &words);
        let s = Shape::of(&case, PLAIN);
        for (operand, strides) in [(A, s.a), (B, s.b), (C, s.c), (D, s.d)] {
            if let Some(view) = case.view(operand) {
                prop_assert_eq!(view.offsets[0], strides.offset);
                prop_assert_eq!(view.dims.iter().map(|d| d.stride).collect::<Vec<_>>(), strides.steps.to_vec());
            }
        }
    }

    #[test]
    fn a_part_holds_exactly_what_its_groups_touch_and_runs_right(words in words(), share in 1i64..60) {
        let case = instance("gemm", &words);
        let work = case.problem.work(&case.case.params) as u64;
        let caps = Caps { work: work * share as u64 / 60, memory: 1 << 30 };
        match target("clean,tile=8x8,unroll=4", &case).footprint(&case, &caps) {
            Footprint::Whole => prop_assert!(false, "work {} is above {}", work, caps.work),
            Footprint::Part { sample, boxes, groups } => {
                check_part(&Shape::of(&case, Tile { m: 8, n: 8, unroll: 4 }), &caps, sample, &boxes, &groups);
                prop_assert_eq!(wrong("clean,tile=8x8,unroll=4", &case, &caps), vec![]);
            }
            Footprint::Skipped(why) => prop_assert!(why.contains("--max-work"), "{}", why),
            Footprint::Refused(why) => prop_assert!(false, "{}", why),
        }
    }
}

/// Compares boxes with the elements of the listed groups, counted one by one.
fn check_part(s: &Shape, caps: &Caps, sample: Sample, boxes: &[IndexBox], groups: &[u64]) {
    let (tiles_m, tiles_n) = ((s.m + 7) / 8, (s.n + 7) / 8);
    assert_eq!(sample.of, (tiles_m * tiles_n * s.batch) as u64);
    assert_eq!(sample.groups, groups.len() as u64);
    let mut touched = BTreeSet::new();
    let mut work = 0;
    for z in 0..s.batch {
        for j in 0..s.n {
            for i in 0..s.m {
                if groups.contains(&(((z * tiles_n + j / 8) * tiles_m + i / 8) as u64)) {
                    for l in 0..s.k {
                        touched.insert((A, vec![i, l, z]));
                        touched.insert((B, vec![l, j, z]));
                    }
                    if !s.separate_d || s.beta != 0.0 {
                        touched.insert((C, vec![i, j, z]));
                    }
                    if s.separate_d {
                        touched.insert((D, vec![i, j, z]));
                    }
                    work += s.k as u64;
                }
            }
        }
    }
    // The first and the last group, without which a part tells nothing, may take four times the cap.
    assert!(work <= 4 * caps.work);
    for corner in [[0, 0, 0], [s.m - 1, s.k - 1, s.batch - 1]] {
        assert!(touched.contains(&(A, corner.to_vec())) && sample.extremes);
    }
    let mut listed = BTreeSet::new();
    for b in boxes {
        assert_eq!(b.copy, 0);
        for x in b.ranges[0].0..b.ranges[0].1 {
            for y in b.ranges[1].0..b.ranges[1].1 {
                for z in b.ranges[2].0..b.ranges[2].1 {
                    assert!(listed.insert((b.operand, vec![x, y, z])), "boxes of operand {} overlap", b.operand);
                }
            }
        }
    }
    assert_eq!(listed, touched);
}

#[test]
fn a_32_bit_sum_faults_from_two_to_the_31_on() {
    let n = 1 << 30;
    for (model, good, bad) in [
        ("i32-sum,operand=B", format!("n=3 ldb={}", n - 1), format!("n=3 ldb={n}")),
        ("i32-sum,operand=A", format!("k=3 lda={}", n - 1), format!("k=3 lda={n}")),
        ("i32-sum,operand=C", format!("n=3 ldc={}", n - 1), format!("n=3 ldc={n}")),
        ("i32-sum,operand=C", format!("n=3 out=D ldd={}", n - 1), format!("n=3 out=D ldd={n}")),
        // 2^31-1 in the last column; one row more and the sum is 2^31.
        ("i32-sum,operand=C", "m=2 n=3 ldc=1073741823".to_owned(), "m=3 n=3 ldc=1073741823".to_owned()),
        ("i32-term,operand=B", format!("n=3 k=4 ldb={}", n - 1), format!("n=3 k=1 ldb={n}")),
        ("batch-i32,operand=C", format!("batch=3 strideC={}", n - 1), format!("batch=3 strideC={n}")),
        ("batch-i32,operand=A", format!("batch=3 strideA={}", n - 1), format!("batch=3 strideA={n}")),
    ] {
        assert_eq!(end(model, &instance("gemm", &good)), End::Right, "{model} {good}");
        assert_eq!(end(model, &instance("gemm", &bad)), SEGV, "{model} {bad}");
        assert_eq!(end("clean", &instance("gemm", &bad)), End::Right, "{bad}");
    }
}

#[test]
fn a_wrap_that_lands_on_the_operand_itself_is_a_wrong_result() {
    // Row 1 of B is 2^32 elements away, which wraps to row 0.
    let case = instance("gemm", "n=8 k=2 transB=T ldb=4294967296");
    assert_eq!(end("i32-sum,operand=B", &case), End::Wrong);
    assert_eq!(end("clean", &case), End::Right);
}

#[test]
fn stores_beyond_the_descriptor_are_dropped_without_a_fault() {
    for (model, dtype, bytes, bits) in [("32", "f32", 4, 32), ("31", "f32", 4, 31), ("32", "bf16", 2, 32)] {
        let line = (1i64 << bits) / bytes;
        for out in ["C", "D"] {
            let leading = if out == "C" { "ldc" } else { "ldd" };
            let run = |ld: i64| {
                let case = instance("gemm", &format!("n=2 out={out} dtype={dtype} {leading}={ld}"));
                wrong(&format!("u32-bytes-drop,bits={model}"), &case, &NO_CAPS)
            };
            assert_eq!(run(line - 1), vec![]);
            assert_eq!(run(line), vec![(if out == "C" { C } else { D }, 0, vec![0, 1, 0])]);
        }
    }
}

#[test]
fn an_unmasked_edge_reads_past_the_end_unless_the_tiles_are_full() {
    for (model, good, bad) in [
        ("edge-overread,operand=B,tile=8x16", "m=3 n=32 k=1024", "m=3 n=31 k=1024"),
        ("edge-overread,operand=B,tile=8x16", "m=3 n=16 k=3 transB=T", "m=3 n=15 k=3 transB=T"),
        ("edge-overread,operand=A,tile=8x16", "m=16 n=3 k=3", "m=15 n=3 k=3"),
        ("k-overread,operand=A,unroll=8", "m=600 k=16", "m=600 k=15"),
        ("k-overread,operand=B,unroll=8", "n=2 k=16", "n=2 k=15"),
    ] {
        assert_eq!(end(model, &instance("gemm", good)), End::Right, "{model} {good}");
        assert_eq!(end(model, &instance("gemm", bad)), SEGV, "{model} {bad}");
        assert_eq!(end("clean", &instance("gemm", bad)), End::Right, "{bad}");
    }
}

#[test]
fn an_unmasked_store_writes_columns_past_the_end() {
    // hipBLASLt's StreamK epilogue: tile 128x192, N = 2112 = 11 * 192 passes, 2096 leaves 16 columns too many.
    for out in ["C", "D"] {
        let case = |n| instance("gemm", &format!("m=28 n={n} k=1 out={out} dtype=bf16"));
        assert_eq!(end("edge-overwrite,tile=128x192", &case(2112)), End::Right);
        assert_eq!(end("edge-overwrite,tile=128x192", &case(2096)), SEGV);
    }
}

#[test]
fn tiles_beyond_16_bits_are_not_run() {
    let full = instance("gemm", "n=524280");
    assert!(wrong("grid-u16,tile=8x8", &full, &NO_CAPS).is_empty());
    let more = instance("gemm", "n=524289");
    // 65,537 tiles: the count becomes 1, and only the first tile runs.
    let missed = wrong("grid-u16,tile=8x8", &more, &NO_CAPS);
    assert_eq!((missed.len(), missed[0].2[1]), (524_289 - 8, 8));
    let s = Shape::of(&instance("gemm", "n=524281"), Tile { m: 8, n: 8, unroll: 4 });
    assert!(!GridU16.runs(&s, 0), "65,536 tiles become none");
}

#[test]
fn a_block_count_that_turns_negative_runs_nothing() {
    let s = |words| Shape::of(&instance("gemm", words), Tile { m: 256, n: 256, unroll: 4 });
    // 256 * 256 * 32,768 = 2^31.
    assert!(GridNegative.runs(&s("batch=32767"), 32_766));
    assert!(!GridNegative.runs(&s("batch=32768"), 0));
    // 2^32 + 2^16: one block is left.
    assert!(GridNegative.runs(&s("batch=65537"), 0) && !GridNegative.runs(&s("batch=65537"), 1));
    let case = instance("gemm", "batch=32768 strideC=1");
    assert_eq!(wrong("grid-negative,tile=256x256", &case, &NO_CAPS).len(), 32_768);
    assert!(wrong("grid-negative,tile=256x128", &case, &NO_CAPS).is_empty());
}

#[test]
fn a_column_index_in_f32_is_exact_up_to_two_to_the_24() {
    let s = Shape::of(&instance("gemm", "n=16777220 ldc=3"), PLAIN);
    let column = |j: i64| IndexF32.d(&s, [0, j, 0]).map(|offset| offset / 3);
    assert_eq!(column(1 << 24), Some(1 << 24));
    assert_eq!(column((1 << 24) + 1), Some(1 << 24));
    assert_eq!(column((1 << 24) + 2), Some((1 << 24) + 2));
    // Rounds up to a column that is masked.
    assert_eq!(column((1 << 24) + 3), None);
}

#[test]
fn a_16_bit_block_counter_never_reaches_65536_blocks() {
    assert_eq!(end("hang,unroll=1", &instance("gemm", "k=65535")), End::Right);
    assert_eq!(end("hang,unroll=1", &instance("gemm", "k=65536")), End::Hang);
    assert_eq!(end("clean,unroll=1", &instance("gemm", "k=65536")), End::Right);
}

#[test]
fn the_launcher_aborts_where_its_product_is_negative() {
    assert_eq!(end("abort", &instance("gemm", "k=3 lda=715827882")), End::Right);
    assert_eq!(end("abort", &instance("gemm", "k=3 lda=715827883")), End::Signal(libc::SIGABRT));
    // 2^32: wraps to 0, which is not negative.
    assert_eq!(end("abort", &instance("gemm", "k=4 lda=1073741824")), End::Right);
}

#[test]
fn a_flaky_model_fails_in_some_launches_only() {
    let case = instance("gemm", "n=3 ldb=1073741824");
    let ends: Vec<End> = (0..24).map(|_| end("flaky,rate=0.5", &case)).collect();
    assert!(ends.contains(&End::Right) && ends.contains(&SEGV), "{ends:?}");
    assert_eq!(end("flaky,rate=1", &case), SEGV);
}

#[test]
fn the_logged_call_of_the_gfx1201_report_is_sampled_with_its_last_tile() {
    let case = instance("gemm", "m=608 n=5376 k=21504 ldb=21504 dtype=bf16");
    let caps = Caps::default();
    match target("edge-overread,operand=A", &case).footprint(&case, &caps) {
        Footprint::Part { sample, boxes, groups } => {
            assert_eq!((sample.of, sample.extremes), (10 * 84, true));
            assert!(groups.contains(&839) && groups.contains(&0));
            assert!(boxes.iter().any(|b| b.operand == A && b.ranges == vec![(576, 608), (0, 21504), (0, 1)]));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_case_whose_single_group_is_above_the_cap_is_skipped_and_says_which() {
    let skipped = |words: &str| match target("clean", &instance("gemm", words))
        .footprint(&instance("gemm", words), &Caps::default())
    {
        Footprint::Skipped(why) => why,
        other => panic!("{other:?}"),
    };
    assert!(skipped("m=64 n=64 k=17179869184").contains("--max-work"));
    assert!(skipped("k=200000000 dtype=f64").contains("--max-memory"));
    assert!(skipped("k=100000 lda=10000").contains("separate pieces"));
}

#[test]
fn a_huge_grid_is_sampled_at_once() {
    let case = instance("gemm", "m=17179869184 n=67108864 k=1 dtype=bf16");
    let start = std::time::Instant::now();
    match target("clean", &case).footprint(&case, &Caps::default()) {
        Footprint::Part { sample, .. } => assert_eq!(sample.of, 1 << 48),
        other => panic!("{other:?}"),
    }
    assert!(start.elapsed().as_millis() < 500);
}
