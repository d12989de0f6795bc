//! The clean models pass everything, with the extreme offsets and the edges really reached; their faulty twins do not.

mod common;

use common::{count, hunt};

/// Runs a clean model to the end of its cases: nothing is found, and the counts show that the cases were worth running.
fn passes(problem: &str, model: &str, seed: u64, more: &str) {
    let dir = tempfile::tempdir().unwrap();
    let cases = count(5_000, 100_000);
    let words = format!("{problem} --target sim:{model},seed={seed} --seed {seed} --cases {cases} {more}");
    let s = hunt(dir.path(), &words).expect(0).summary();
    let number = |v: &serde_json::Value| v.as_u64().unwrap();
    let (tally, coverage) = (&s["tally"], &s["coverage"]);
    assert_eq!(number(&tally["pass"]) + number(&tally["skipped"]) + number(&tally["refused"]), cases, "{tally}");
    let ran = number(&coverage["ran"]);
    assert_eq!(ran, number(&tally["pass"]));
    assert!(10 * (number(&tally["skipped"]) + number(&tally["refused"])) <= cases, "skipped or refused: {tally}");
    assert!(4 * number(&coverage["past"]) >= ran, "past 2^31: {coverage}");
    assert!(4 * number(&coverage["at_edge"]) >= ran, "flush at an edge: {coverage}");
    // Every operand took part in both.
    for o in coverage["operands"].as_array().unwrap().iter().filter(|o| o["name"] != "own") {
        assert!(number(&o["past_bytes"][0]) > 0 && number(&o["past_elements"][1]) > 0, "{o}");
        assert!(4 * number(&o["at_edge"]) >= number(&o["present"]), "{o}");
    }
}

fn is_found(problem: &str, model: &str, seed: u64, more: &str) {
    let dir = tempfile::tempdir().unwrap();
    hunt(dir.path(), &format!("{problem} --target sim:{model},seed={seed} --seed {seed} {more}")).expect(1);
}

#[test]
fn the_clean_gemm_model_passes_and_its_twin_is_found_with_the_same_seed() {
    passes("gemm", "clean", 5, "");
    is_found("gemm", "i32-sum", 5, "");
}

#[test]
fn the_64_bit_persistent_all_gather_passes_and_its_twin_is_found_with_the_same_seed() {
    passes("allgather", "persistent-i64", 6, "--ranks 8");
    is_found("allgather", "persistent-i32", 6, "--ranks 8");
}

#[test]
fn the_64_bit_partitioned_all_gather_passes_and_its_twin_is_found_with_the_same_seed() {
    passes("allgather", "partitioned-i64", 7, "--ranks 8");
    is_found("allgather", "partitioned-i32", 7, "--ranks 8");
}
