//! What becomes of programs that do not keep to the protocol: a documented verdict or one sentence, never a hang or a panic.

mod common;

use common::{Run, findings, hunt, run};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The manifest of a program that misbehaves in the named way.
fn torture(dir: &Path, how: &str) -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/torture.py");
    let path = dir.join(format!("{how}.toml"));
    let start = if how.ends_with("no-hello") { 1 } else { 20 };
    let text = format!(
        r#"
name = "torture"
command = ["python3", "{}", "{how}"]
start_timeout_s = {start}
case_timeout_s = 1
fault_text = ["left its lane"]
[params.n]
min = 1
max = 100000
[[operands]]
name = "A"
dtype = "f32"
access = "rw"
dims = [["n", "1"]]
[env]
TORTURE_PID = "{}"
"#,
        script.display(),
        dir.join("pid").display()
    );
    std::fs::write(&path, text).unwrap();
    path
}

/// Runs one case of a program that misbehaves; the processes that it left must be gone.
fn tortured(dir: &Path, how: &str) -> Run {
    let manifest = torture(dir, how);
    let started = Instant::now();
    let run = run(dir, &format!("run torture:n=1 --json --out {{out}}/out --manifest {}", manifest.display()));
    let pid: u32 = std::fs::read_to_string(dir.join("pid")).unwrap().parse().unwrap();
    let is_alive = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.is_ok_and(|s| !s.contains(") Z "))
    };
    while is_alive() {
        assert!(started.elapsed() < Duration::from_secs(120), "{how}: process {pid} is left");
        std::thread::sleep(Duration::from_millis(5));
    }
    run
}

#[test]
fn every_misbehaviour_comes_to_its_documented_verdict() {
    let dir = tempfile::tempdir().unwrap();
    // What the program does, exit code, verdict, and a part of what is said of it.
    let expected = [
        ("ok", 0, "pass", ""),
        ("members", 0, "pass", ""),
        ("flood-stdout", 0, "pass", ""),
        ("flood-stderr", 0, "pass", ""),
        ("invalid-bytes", 0, "pass", ""),
        ("twice", 0, "pass", ""),
        ("flood-stdout-forever", 1, "hang", ""),
        ("flood-stderr-forever", 1, "hang", ""),
        ("silent", 1, "hang", ""),
        ("ignore-sigterm", 1, "hang", ""),
        ("fork", 1, "crash", "exit status 5"),
        ("fork-and-escape", 1, "crash", "exit status 5"),
        ("exit-0", 1, "crash", "exit status 0"),
        ("exit-3", 1, "crash", "the driver is out of tune"),
        ("last-words", 1, "crash", "exit status 0"),
        ("abort", 1, "crash", "SIGABRT"),
        ("null", 1, "crash", "in the first 64 KiB"),
        ("segv", 1, "fault", "SIGSEGV"),
        ("rocm", 1, "fault", "Memory access fault by GPU node-1"),
        ("cuda", 1, "fault", "an illegal memory access"),
        ("own-text", 1, "fault", "frobnicator"),
        ("fault", 1, "fault", "error 700"),
        ("refused", 6, "refused", "not for me"),
        ("skipped", 6, "skipped", "no memory now"),
    ];
    for (how, code, word, part) in expected {
        let run = tortured(dir.path(), how).expect(code);
        let event = &run.events()[0];
        let verdict = &event["verdict"];
        assert!(verdict.get(word).is_some(), "{how}: {verdict}");
        assert!(verdict.to_string().contains(part), "{how}: {verdict}");
        if how == "rocm" {
            assert_eq!(verdict["fault"]["address"].as_u64(), Some(0x7f64_59a0_0000), "{verdict}");
        }
    }
}

#[test]
fn every_breach_of_the_protocol_comes_to_one_sentence() {
    let dir = tempfile::tempdir().unwrap();
    let expected = [
        ("long-line", "more than 1 MiB"),
        ("other-id", "spoke of case 1 where case 0 was due"),
        ("text-id", "the number of a case"),
        ("no-id", "a line without id"),
        ("negative-id", "the number of a case"),
        ("number-verdict", "one of pass, fault, wrong, refused, skipped"),
        ("unknown-verdict", "one of pass, fault, wrong, refused, skipped"),
        ("hang-verdict", "one of pass, fault, wrong, refused, skipped"),
        ("unknown-operand", "none of A"),
        ("bad-address", "which is not an address"),
        ("bad-evidence", "\"r\" or \"w\""),
        ("bad-launch", "launch.A"),
        ("no-json", "no JSON"),
        ("two-hellos", "a second time"),
        ("knobs-unasked", "without being asked"),
        ("close-stdout", "stayed alive"),
        ("close-stdin", "closed its stdin"),
        ("no-hello", "was not ready within 1 s"),
        ("chatter-no-hello", "was not ready within 1 s"),
        ("exit-at-start", "there is no such device"),
        ("killed-at-start", "SIGABRT"),
        ("cannot-start", "the device is on holiday"),
        ("answers-first", "before {\"shrinkfault\":1}"),
        ("version-2", "version 2 of the protocol"),
    ];
    for (how, part) in expected {
        let run = tortured(dir.path(), how).expect(3);
        assert!(run.stderr.contains(part) && run.stderr.contains("torture.py"), "{how}: {}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{how}: {}", run.stderr);
        assert!(!run.stderr.contains("panicked"), "{how}: {}", run.stderr);
    }
}

#[test]
fn a_hunt_on_a_program_that_answers_twice_or_dies_before_it_announces_is_a_setup_error() {
    let dir = tempfile::tempdir().unwrap();
    for (how, part) in [("twice", "which it had answered already"), ("die-unannounced", "before they announce a case")]
    {
        let manifest = torture(dir.path(), how);
        let run = hunt(dir.path(), &format!("fuzz {} --cases 2000 --jobs 1", manifest.display())).expect(3);
        assert!(run.stderr.contains(part), "{how}: {}", run.stderr);
        assert!(findings(&dir.path().join("out")).is_empty(), "{how}");
    }
}

#[test]
fn a_clean_program_is_clean_and_cases_after_a_death_are_sent_again() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = torture(dir.path(), "ok");
    let clean = hunt(dir.path(), &format!("fuzz {} --cases 500", manifest.display())).expect(0);
    assert_eq!(clean.summary()["tally"]["pass"], 500);
    // Every case of a group dies in turn: each is answered for, none twice.
    let manifest = torture(dir.path(), "exit-0");
    let words = format!("fuzz {} --cases 12 --keep-going --confirm 1 --shrinks 1", manifest.display());
    let all = hunt(dir.path(), &words).expect(1);
    let ids: Vec<u64> = all.events_of("case").iter().map(|c| c["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, (0..12).collect::<Vec<u64>>());
    assert_eq!(all.summary()["tally"]["crash"], 12);
}

#[test]
fn options_that_a_manifest_leaves_no_room_for_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = torture(dir.path(), "ok").display().to_string();
    for (words, part) in [
        (format!("fuzz {manifest} --target cblas"), "leave out --target"),
        (format!("fuzz {manifest} --lib libx.so"), "leave out --target, --lib"),
        (format!("fuzz {manifest} --placement end"), "leave out --placement"),
        (format!("fuzz {manifest} --set m=1"), "no parameter 'm'"),
        ("fuzz /no/such/manifest.toml".to_owned(), "/no/such/manifest.toml"),
        ("fuzz /dev/null".to_owned(), "no manifest"),
        (format!("run gemm:m=1 --manifest {manifest}"), "leave out --manifest"),
        (format!("run other:n=1 --manifest {manifest}"), "other"),
    ] {
        let run = run(dir.path(), &format!("{words} --out {{out}}/out")).expect(2);
        assert!(run.stderr.contains(part) && run.stderr.lines().count() == 1, "{words}: {}", run.stderr);
    }
}
