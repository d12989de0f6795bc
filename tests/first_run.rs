//! What a newcomer does first, and what the second run says.

mod common;

use common::{findings, hunt, run};
use serde_json::Value;

fn a_run_finds_a_boundary_and_the_next_run_knows_it(command: &str) {
    let dir = tempfile::tempdir().unwrap();
    let first = hunt(dir.path(), command).expect(1);
    let found = first.events_of("finding");
    assert_eq!(found.len(), 1, "{found:?}");
    let files = findings(&dir.path().join("out"));
    assert_eq!(files.len(), 1);
    let bytes = std::fs::read(&files[0]).unwrap();

    // Every witness behaves as the file states, run by hand.
    let file = files[0].display().to_string();
    run(dir.path(), &format!("run {file}")).expect(1);
    let witnesses = found[0]["summary"]["witnesses"].as_array().unwrap();
    let pairs: Vec<&Value> = witnesses.iter().filter(|w| !w["good"].is_null()).collect();
    assert!(!pairs.is_empty(), "{witnesses:?}");
    for w in pairs {
        let param = w["param"].as_str().unwrap();
        let word = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
        run(dir.path(), &format!("run {file} --set {param}={}", word(&w["good"]))).expect(0);
        run(dir.path(), &format!("run {file} --set {param}={}", word(&w["bad"]))).expect(1);
    }

    // Run again: the same case is launched and faults again, and is known.
    let again = hunt(dir.path(), command).expect(0);
    let id = &first.events_of("confirmed")[0]["id"];
    let case = |r: &common::Run| r.events_of("case").into_iter().find(|c| c["id"] == *id).unwrap();
    assert_eq!(case(&first)["case"], case(&again)["case"]);
    assert!(case(&again)["verdict"]["fault"].is_object(), "{}", case(&again));
    assert!(again.events_of("known").iter().any(|k| k["id"] == *id));
    assert!(again.events_of("finding").is_empty());
    assert_eq!(std::fs::read(&files[0]).unwrap(), bytes, "the file of a known finding must not change");

    // With an empty output folder and the finding kept, it is known as well.
    run(dir.path(), &format!("keep {file} --regressions {{out}}/regressions")).expect(0);
    std::fs::remove_dir_all(dir.path().join("out")).unwrap();
    let kept = hunt(dir.path(), command).expect(0);
    assert!(kept.events_of("known").iter().any(|k| k["id"] == *id));
    assert!(findings(&dir.path().join("out")).is_empty());
}

#[test]
fn gemm_with_seed_42_finds_a_boundary_and_the_next_run_knows_it() {
    a_run_finds_a_boundary_and_the_next_run_knows_it("gemm --seed 42");
}

#[test]
fn allgather_with_8_ranks_finds_a_boundary_and_the_next_run_knows_it() {
    a_run_finds_a_boundary_and_the_next_run_knows_it("allgather --ranks 8");
}

#[test]
fn a_run_on_a_model_says_so_in_its_first_and_last_line() {
    let dir = tempfile::tempdir().unwrap();
    let words = "gemm --seed 42 --cases 64 --out {out}/out --regressions {out}/none";
    let said = run(dir.path(), words).stdout;
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[..2].join(" ").contains("tested no library of this machine"), "{said}");
    assert!(lines.last().unwrap().contains("tested no library of this machine"), "{said}");
    assert!(lines.last().unwrap().contains("--target"), "{said}");
}
