//! The list of cases and their verdicts do not depend on the number of workers.

mod common;

use common::{count, hunt, library};

/// Sums over the cases and over the verdicts of a hunt that keeps going, and how many verdicts were of one kind.
fn digests(words: &str, jobs: u32, kind: &str) -> (String, String, u64) {
    let dir = tempfile::tempdir().unwrap();
    let cases = count(2_000, 20_000);
    let run = hunt(dir.path(), &format!("{words} --cases {cases} --keep-going --jobs {jobs}"));
    assert!(run.code == 0 || run.code == 1, "code {}\n{}", run.code, run.stderr);
    let s = run.summary();
    let text = |name: &str| s[name].as_str().unwrap().to_owned();
    (text("case_digest"), text("verdict_digest"), s["tally"][kind].as_u64().unwrap())
}

fn one_and_four_workers_agree(words: &str, kind: &str, least: u64) {
    let (one, four) = (digests(words, 1, kind), digests(words, 4, kind));
    assert_eq!(one, four, "{words}");
    assert!(one.2 >= least, "{} verdicts are {kind}: too few to tell", one.2);
}

#[test]
fn one_and_four_workers_agree_on_a_faulting_model() {
    one_and_four_workers_agree("gemm --target sim:i32-sum,operand=B --seed 21 --shrinks 2", "fault", 50);
}

/// m and n pinned to 1, k below the line and a little above it: a few percent of the cases hang.
#[test]
fn one_and_four_workers_agree_on_a_hanging_model() {
    let words = "gemm --target sim:hang,unroll=1 --seed 22 --case-timeout 500ms --set m=1 --set n=1 --set batch=1 \
                 --range k=1..65540 --set transB=N --shrinks 1";
    one_and_four_workers_agree(words, "hang", 1);
}

#[test]
fn one_and_four_workers_agree_on_atlas() {
    let Some(lib) = library("atlas/libblas.so.3") else { return };
    one_and_four_workers_agree(
        &format!("gemm --target cblas --lib {} --seed 23 --shrinks 1", lib.display()),
        "fault",
        1,
    );
}
