//! The all-gather report as a model: boundary to the row, and which ranks fail at which size.

mod common;

use common::{findings, run};
use std::time::Instant;

fn boundary(ranks: u32) -> (String, serde_json::Value) {
    let dir = tempfile::tempdir().unwrap();
    let case = "corpus/allgather/iris-1024-mib.toml";
    let words = format!("shrink {case} --set ranks={ranks} --set N=8192 --profile packed --json --out {{out}}/out");
    let shrunk = run(dir.path(), &words).expect(1);
    let found = shrunk.events_of("finding");
    let text = std::fs::read_to_string(&findings(&dir.path().join("out"))[0]).unwrap();
    let witness = found[0]["summary"]["witnesses"].as_array().unwrap().iter().find(|w| w["param"] == "M").cloned();
    (text, witness.unwrap())
}

#[test]
fn eight_ranks_are_good_at_32768_rows_and_bad_at_32769_on_rank_7() {
    let (text, m) = boundary(8);
    assert_eq!((m["good"].as_i64(), m["bad"].as_i64()), (Some(32768), Some(32769)), "{text}");
    let file: toml::Table = text.parse().unwrap();
    assert_eq!(file["ranks"]["failing"].to_string(), "[7]", "{text}");
}

#[test]
fn sixty_four_ranks_are_good_at_4096_rows_and_bad_at_4097_on_rank_63() {
    let (text, m) = boundary(64);
    assert_eq!((m["good"].as_i64(), m["bad"].as_i64()), (Some(4096), Some(4097)), "{text}");
    let file: toml::Table = text.parse().unwrap();
    assert_eq!(file["ranks"]["failing"].to_string(), "[63]", "{text}");
}

/// Rows per rank and the ranks whose last offset, (r + 1) * M * 8192, exceeds 2^31 elements: the arithmetic of the report.
#[test]
fn the_set_of_failing_ranks_per_size_is_that_of_the_report() {
    let dir = tempfile::tempdir().unwrap();
    for rows in [16384i64, 32768, 32769, 37450, 43691, 49152, 52429, 65536] {
        let bad: Vec<i64> = (0..8).filter(|r| (r + 1) * rows * 8192 > 1 << 31).collect();
        let began = Instant::now();
        let words = format!("run allgather:ranks=8,M={rows},N=8192,dtype=bf16 --each-rank --json --out {{out}}/out");
        let r = run(dir.path(), &words).expect(i32::from(!bad.is_empty()));
        // Milliseconds a rank; the rest is what a busy machine may add.
        assert!(began.elapsed() < common::within(10), "M = {rows}: {:?}", began.elapsed());
        let table = r.events_of("ranks").pop().unwrap();
        let failing: Vec<i64> = table["failing"].as_array().unwrap().iter().map(|v| v.as_i64().unwrap()).collect();
        assert_eq!(failing, bad, "M = {rows}");
    }
}
