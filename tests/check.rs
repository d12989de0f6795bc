//! `check`: shapes against a finding's line, without running anything.

mod common;

use common::{Run, program, run};
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

/// GSL reads A from m=1, n=1 and so on; the pairs of this finding are what the lists below are about.
const LAW: &str = "gslcblas-gemm-a-read-far-e17e7d";

/// Parameters of the law's minimal case, and its pairs: name, last good, first bad.
fn law() -> (toml::Table, Vec<(String, i64, i64)>) {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("regressions/gslcblas/{LAW}.toml"));
    let table: toml::Table = std::fs::read_to_string(file).unwrap().parse().unwrap();
    let side = |w: &toml::Value, s: &str| w[s]["value"].as_integer().unwrap();
    let pair = |w: &toml::Value| (w["param"].as_str().unwrap().into(), side(w, "last_good"), side(w, "first_bad"));
    let certified = |w: &&toml::Value| w["certified"].as_bool() == Some(true);
    let pairs = table["witness"].as_array().unwrap().iter().filter(certified).map(pair).collect();
    (table["minimal"]["params"].as_table().unwrap().clone(), pairs)
}

/// The minimal case as a line, with some parameters changed.
fn line(changes: &[(&str, i64)]) -> String {
    let (minimal, _) = law();
    let word = |v: &toml::Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    let value = |n: &str, v| changes.iter().find(|c| c.0 == n).map_or_else(|| word(v), |c| c.1.to_string());
    let words: Vec<String> = minimal.iter().map(|(n, v)| format!("{n}={}", value(n, v))).collect();
    words.join(",")
}

/// The minimal case with another value of a choice, with which the finding's case passes.
fn transposed() -> String {
    let other = line(&[]).replace("transA=N", "transA=T");
    assert!(other.contains("transA=T"));
    other
}

fn check(shapes: &str, more: &str) -> Run {
    let mut child = program();
    child.args(["check", "-", "--law", LAW]).args(more.split_whitespace());
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(shapes.as_bytes()).unwrap();
    Run::of(child.wait_with_output().unwrap())
}

#[test]
fn shapes_at_the_first_bad_value_are_past_and_at_the_last_good_one_before() {
    let (_, pairs) = law();
    assert!(!pairs.is_empty());
    for (name, good, bad) in &pairs {
        let r = check(&line(&[(name, *bad)]), "--json").expect(1);
        assert_eq!(r.events_of("shape")[0]["standing"], "past", "{name}");
        let r = check(&line(&[(name, *good)]), "--json").expect(0);
        assert_eq!(r.events_of("shape")[0]["standing"], "before", "{name}");
    }
}

#[test]
fn what_no_witness_covers_is_not_decided_and_nothing_is_run() {
    let r = check(&format!("{}\n{}\n", line(&[]), transposed()), "").expect(1);
    let lines: Vec<&str> = r.stdout.lines().collect();
    assert!(lines[0].starts_with("past        line 1: m="), "{}", r.stdout);
    assert!(lines[1].starts_with("cannot say  line 2: transA=T m="), "{}", r.stdout);
    assert!(lines[1].contains("(transA is T, and the finding knows N)"), "{}", r.stdout);
    assert_eq!(
        lines[2],
        format!("1 past the line of {LAW} (filed as open), 0 before it, 1 of which it cannot say; no case was run")
    );
    let quiet = check(&transposed(), "-q").expect(0);
    assert_eq!(quiet.stdout.lines().count(), 1, "{}", quiet.stdout);
}

#[test]
fn lists_come_as_toml_csv_lines_and_folders() {
    let dir = tempfile::tempdir().unwrap();
    let (minimal, pairs) = law();
    let word = |v: &toml::Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    let names: Vec<&str> = minimal.keys().map(String::as_str).collect();
    let values: Vec<String> = minimal.values().map(word).collect();
    let table = toml::to_string(&minimal).unwrap();
    let case = format!("format = 1\nproblem = \"gemm\"\n[params]\n{table}");
    std::fs::create_dir(dir.path().join("cases")).unwrap();
    for (file, text) in [
        ("x.csv", format!("{}\n{}\n", names.join(","), values.join(","))),
        ("x.toml", format!("[[shape]]\n{table}")),
        ("case.toml", case.clone()),
        ("cases/one.toml", case),
        ("x.txt", line(&[])),
    ] {
        std::fs::write(dir.path().join(file), text).unwrap();
    }
    for place in ["x.csv", "x.toml", "case.toml", "cases", "x.txt"] {
        let r = run(dir.path(), &format!("check {{out}}/{place} --law {LAW} --json")).expect(1);
        assert_eq!(r.events_of("shape").len(), 1, "{place}");
        let end = &r.events_of("checked")[0];
        assert_eq!((end["past"].as_u64(), end["finding"].as_str()), (Some(1), Some(LAW)), "{place}: {end}");
    }
    // What the list leaves out is given on the command line.
    let without: Vec<String> =
        line(&[]).split(',').filter(|w| !w.starts_with(&pairs[0].0)).map(str::to_owned).collect();
    check(&without.join(","), &format!("--set {}={}", pairs[0].0, pairs[0].2)).expect(1);
    check(&without.join(","), &format!("--set {}={}", pairs[0].0, pairs[0].1)).expect(0);
}

#[test]
fn what_is_no_list_or_no_finding_is_one_sentence() {
    for (shapes, says) in [
        ("m=1,q=2", "stdin: line 1: gemm has no parameter 'q'"),
        ("", "there is no shape in -"),
        ("m=9,lda=2", "stdin: line 1: "),
    ] {
        let r = check(shapes, "").expect(2);
        assert!(r.stderr.starts_with("error: ") && r.stderr.contains(says), "{}", r.stderr);
        assert_eq!(r.stderr.lines().count(), 1, "{}", r.stderr);
    }
    let dir = tempfile::tempdir().unwrap();
    let case = run(dir.path(), "check corpus/gemm --law gemm:m=1").expect(2);
    assert!(case.stderr.contains("this is a case, and a line takes a finding"), "{}", case.stderr);
    let none = run(dir.path(), &format!("check {{out}}/none.csv --law {LAW}")).expect(2);
    assert!(none.stderr.contains("failed to read"), "{}", none.stderr);
}
