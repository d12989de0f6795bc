use super::kernel::{Shape, input_offset, output_offset};
use super::*;
use crate::target::sim::testing::{End, NO_CAPS, end, instance, target, wrong};
use proptest::prelude::*;
use std::collections::BTreeSet;

const MODELS: [&str; 4] = ["persistent-i32", "persistent-i64", "partitioned-i32", "partitioned-i64"];

fn words() -> impl Strategy<Value = String> {
    let dtype = prop::sample::select(vec!["f32", "bf16", "f16", "f64"]);
    let shape = (1i64..6, 1i64..40, 1i64..40, any::<bool>(), 0i64..9, 0i64..9, dtype);
    shape.prop_map(|(ranks, m, n, in_place, x, y, dtype)| {
        let input = if in_place { "inplace=true".to_owned() } else { format!("strideIn={}", n + x) };
        format!("ranks={ranks} M={m} N={n} strideOut={} dtype={dtype} {input}", n + y)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_model_gathers_small_blocks_right(words in words(), only in 0i64..6) {
        let case = instance("allgather", &words);
        let one = instance("allgather", &format!("{words} only-rank={}", only % case.get("ranks")));
        for model in MODELS {
            let model = format!("{model},tile=8x16");
            prop_assert_eq!(wrong(&model, &case, &NO_CAPS), vec![], "{} on {}", model, words);
            prop_assert_eq!(wrong(&model, &one, &NO_CAPS), vec![], "{} on {}, one rank", model, words);
        }
    }

    #[test]
    fn a_part_holds_exactly_what_its_tiles_touch_and_runs_right(words in words(), share in 1u64..60, only in 0i64..9) {
        let case = instance("allgather", &words);
        let ranks = case.get("ranks");
        let only = (only < ranks).then_some(only);
        let knob = only.map_or(String::new(), |r| format!(" only-rank={r}"));
        let case = instance("allgather", &format!("{words}{knob}"));
        let work = case.problem.work(&case.case.params) as u64;
        let caps = Caps { work: work * share / 60, memory: 1 << 30 };
        for model in ["persistent-i64,tile=8x8", "partitioned-i32,tile=8x8"] {
            match target(model, &case).footprint(&case, &caps) {
                Footprint::Part { sample, boxes, groups } => {
                    prop_assert_eq!(sample.groups, groups.len() as u64);
                    check_part(&case, only, &boxes, &groups, sample.of);
                    prop_assert_eq!(wrong(model, &case, &caps), vec![]);
                }
                Footprint::Skipped(why) => prop_assert!(why.contains("--max-work"), "{}", why),
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }
}

/// Compares boxes with the elements of the listed tiles, counted one by one.
fn check_part(case: &Instance, only: Option<i64>, boxes: &[crate::target::IndexBox], groups: &[u64], of: u64) {
    let (ranks, m, n) = (case.get("ranks"), case.get("M"), case.get("N"));
    let (tiles_m, tiles_n) = ((m + 7) / 8, (n + 7) / 8);
    let input = if case.word("inplace") == "true" { OWN } else { IN };
    assert_eq!(of as i64, tiles_m * tiles_n * if only.is_some() { 1 } else { ranks });
    let mut touched = BTreeSet::new();
    for rank in 0..ranks {
        for row in 0..m {
            for column in 0..n {
                let id = (rank * tiles_n + column / 8) * tiles_m + row / 8;
                if groups.contains(&(id as u64)) {
                    assert!(only.is_none_or(|o| o == rank));
                    touched.insert((input, rank as u32, vec![row, column]));
                    touched.extend((0..ranks).map(|peer| (OUT, peer as u32, vec![rank, row, column])));
                }
            }
        }
    }
    let mut listed = BTreeSet::new();
    for b in boxes {
        let mut all = vec![vec![]];
        for (first, end) in &b.ranges {
            all = all.iter().flat_map(|i| (*first..*end).map(move |x| [i.as_slice(), &[x]].concat())).collect();
        }
        for index in all {
            assert!(listed.insert((b.operand, b.copy, index)), "boxes of operand {} overlap", b.operand);
        }
    }
    assert_eq!(listed, touched);
}

fn shape(rows: i64, columns: i64) -> Shape {
    let (stride_in, stride_out) = (columns, columns);
    Shape { ranks: 8, rows, columns, stride_in, stride_out, in_place: false, element_bytes: 2, tile: [64, 128] }
}

fn wraps(rank: i64, rows: i64) -> bool {
    let s = shape(rows, 8192);
    let last = |f: fn(&Shape, i64, i64, i64) -> i64| f(&s, rank, rows - 1, 8191);
    last(output_offset::<Wrapping<i32>>) != last(output_offset::<Wrapping<i64>>)
}

#[test]
fn the_first_bad_row_count_of_each_rank_is_that_of_the_report() {
    // ROCm/iris #532: world 8, N = 8192; (rank + 1) * M * N > 2^31.
    let table = [(7, 32769), (6, 37450), (5, 43691), (4, 52429), (3, 65537), (2, 87382), (1, 131_073), (0, 262_145)];
    for (rank, first_bad) in table {
        let rows: Vec<i64> = (1..300_000).collect();
        assert_eq!(rows[rows.partition_point(|m| !wraps(rank, *m))], first_bad, "rank {rank}");
    }
    let failing = |m| (0..8).filter(|r| wraps(*r, m)).collect::<Vec<i64>>();
    assert_eq!(failing(32_768), Vec::<i64>::new());
    assert_eq!(failing(49_152), vec![5, 6, 7]);
    assert_eq!(failing(65_536), vec![4, 5, 6, 7]);
}

#[test]
fn offsets_wrap_by_four_gibi_elements() {
    let s = shape(32_769, 8192);
    assert_eq!(output_offset::<Wrapping<i64>>(&s, 7, 32_768, 0), 8192 * (8 * 32_769 - 1));
    assert_eq!(output_offset::<Wrapping<i32>>(&s, 7, 32_768, 0), 8192 * (8 * 32_769 - 1) - (1 << 32));
    // The input alone wraps only at more than 2^31 elements a rank.
    assert_eq!(input_offset::<Wrapping<i32>>(&s, 32_768, 8191), 32_769 * 8192 - 1);
    let s = shape(262_145, 8192);
    assert_eq!(input_offset::<Wrapping<i32>>(&s, 262_144, 0), -(1 << 31));
}

#[test]
fn only_the_last_rank_faults_and_only_in_32_bits() {
    // Rows 2^30 apart: rank 0 writes rows 0 and 1, rank 1 rows 2 and 3, which start at 2^31.
    for in_place in ["", " inplace=true"] {
        let words = format!("ranks=2 M=2 N=1 strideOut=1073741824{in_place}");
        let case = |rank: &str| instance("allgather", &format!("{words} only-rank={rank}"));
        for model in ["persistent", "partitioned"] {
            let narrow = format!("{model}-i32");
            assert_eq!(end(&narrow, &case("all")), End::Signal(libc::SIGSEGV), "{words}");
            assert_eq!(end(&narrow, &case("1")), End::Signal(libc::SIGSEGV), "{words}");
            assert_eq!(wrong(&narrow, &case("0"), &NO_CAPS), vec![]);
            assert_eq!(wrong(&format!("{model}-i64"), &case("all"), &NO_CAPS), vec![]);
        }
    }
}

#[test]
fn the_reported_case_is_a_cheap_sample_that_ends_with_the_last_tile() {
    for rows in [32_768, 32_769, 65_536] {
        let case = instance("allgather", &format!("ranks=8 M={rows} N=8192 dtype=bf16"));
        match target("persistent-i32", &case).footprint(&case, &Caps::default()) {
            Footprint::Part { sample, boxes, groups } => {
                let per_rank = (rows as u64).div_ceil(64) * 64;
                assert_eq!((sample.of, sample.extremes), (8 * per_rank, true));
                let last_of = |rank| groups.contains(&(rank * per_rank + per_rank - 1));
                assert!(groups.contains(&0) && last_of(7));
                // A last tile of one row is cheap enough to have it of every rank.
                assert!(rows != 32_769 || (0..8).all(last_of));
                let elements = |b: &crate::target::IndexBox| b.ranges.iter().map(|r| r.1 - r.0).product::<i64>();
                assert!(boxes.iter().map(elements).sum::<i64>() < 1 << 20);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn sixty_four_ranks_are_sampled_within_the_caps() {
    let case = instance("allgather", "ranks=64 M=4097 N=8192 dtype=bf16");
    match target("persistent-i32", &case).footprint(&case, &Caps::default()) {
        Footprint::Part { sample, groups, .. } => {
            assert!(sample.extremes && groups.contains(&(sample.of - 1)) && groups.contains(&0));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_knob_lists_all_and_every_rank_and_refuses_others() {
    let case = instance("allgather", "ranks=3 M=2 N=2");
    let target = target("persistent-i32", &case);
    let values: Vec<String> = target.knobs(&case)[ONLY_RANK].iter().map(Value::to_string).collect();
    assert_eq!(values, ["all", "0", "1", "2"]);
    let beyond = instance("allgather", "ranks=3 M=2 N=2 only-rank=3");
    match target.footprint(&beyond, &Caps::default()) {
        Footprint::Refused(why) => assert!(why.contains("from 0 to 2"), "{why}"),
        other => panic!("{other:?}"),
    }
}
