//! Programs of other people: hunted, shrunk, replayed, known; and what becomes of those that do not keep to the protocol.

mod common;

use common::{Run, findings, hunt, program, run};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A copy of an example, so that its program is built where nobody else looks.
fn example(dir: &Path, name: &str) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/targets");
    for entry in std::fs::read_dir(&from).unwrap().map(|e| e.unwrap().path()) {
        if entry.is_file() && entry.extension().is_some() {
            std::fs::copy(&entry, dir.join(entry.file_name().unwrap())).unwrap();
        }
    }
    if name == "row_sums" {
        let (program, source) = (dir.join("row_sums"), dir.join("row_sums.c"));
        let built = Command::new("cc").arg("-O1").arg("-o").args([&program, &source]).status().unwrap();
        assert!(built.success());
    }
    dir.join(format!("{name}.toml"))
}

fn witness(run: &Run, param: &str) -> (i64, i64) {
    let found = run.events_of("finding");
    assert_eq!(found.len(), 1, "{found:?}");
    let witnesses = found[0]["summary"]["witnesses"].as_array().unwrap();
    let w = witnesses.iter().find(|w| w["param"] == param).unwrap_or_else(|| panic!("{witnesses:?}"));
    (w["good"].as_i64().unwrap(), w["bad"].as_i64().unwrap())
}

fn minimal(run: &Run, param: &str) -> i64 {
    run.events_of("finding")[0]["summary"]["minimal"]["params"][param].as_i64().unwrap()
}

/// Hunts, checks the file by hand, hunts again.
fn found_replayed_and_known(dir: &Path, manifest: &Path, word: &str, line: (&str, i64)) -> Run {
    let command = format!("fuzz {} --seed 7 --jobs 2 --cases 3000", manifest.display());
    let first = hunt(dir, &command).expect(1);
    assert_eq!(witness(&first, line.0), (line.1 - 1, line.1));
    let files = findings(&dir.join("out"));
    assert_eq!(files.len(), 1, "{files:?}");
    let file = files[0].display().to_string();
    let text = std::fs::read_to_string(&files[0]).unwrap();
    assert!(text.contains(&format!("verdict = \"{word}\"")) && text.contains("sha256="), "{text}");

    run(dir, &format!("run {file}")).expect(1);
    run(dir, &format!("run {file} --set {}={}", line.0, line.1 - 1)).expect(0);
    run(dir, &format!("run {file} --set {}={}", line.0, line.1)).expect(1);
    let again = hunt(dir, &command).expect(0);
    assert!(again.events_of("finding").is_empty() && !again.events_of("known").is_empty());
    let cases = |r: &Run| r.summary()["case_digest"].clone();
    assert_eq!(cases(&first), cases(&again));
    first
}

#[test]
fn the_c_example_is_hunted_shrunk_to_its_wrap_replayed_and_known() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = example(dir.path(), "row_sums");
    // The offset of row r is r * lda, kept in 32 bits: with two rows it wraps at lda = 2^31.
    let first = found_replayed_and_known(dir.path(), &manifest, "fault", ("lda", 1 << 31));
    assert_eq!((minimal(&first, "rows"), minimal(&first, "cols")), (2, 1));
    let tests = first.events_of("self-test");
    assert_eq!(tests[0]["not_proven"][0], "the program's memory is its own", "{tests:?}");
    let finding = &first.events_of("finding")[0];
    let title = finding["summary"]["title"].as_str().unwrap();
    assert_eq!(title, "row-sums on row_sums.toml reads 2147483648 elements (8589934592 bytes) below the base of A");

    // Shrinking from a case on the command line comes to the same line.
    let words = "shrink row-sums:rows=40,cols=100,lda=70000000 --out {out}/other --json --manifest";
    let shrunk = run(dir.path(), &format!("{words} {}", manifest.display())).expect(1);
    assert_eq!(witness(&shrunk, "lda"), ((1 << 31) - 1, 1 << 31));

    // Kept, it is found by name next to its manifest.
    let file = findings(&dir.path().join("out"))[0].display().to_string();
    run(dir.path(), &format!("keep {file} --regressions {{out}}/regressions")).expect(0);
    assert!(dir.path().join("regressions/row-sums").is_dir());
}

#[test]
fn the_python_example_is_hunted_shrunk_to_its_wrap_replayed_and_known() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = example(dir.path(), "pack_columns");
    // Offsets are kept in 16 bits: element 65536 is read from offset 0.
    let first = found_replayed_and_known(dir.path(), &manifest, "wrong", ("ld", 1 << 16));
    assert_eq!((minimal(&first, "rows"), minimal(&first, "cols")), (2, 1));
    let cases = first.events_of("case");
    assert!(cases.iter().any(|c| c["case"]["knobs"]["unroll"] == 4), "knobs are drawn");
    let known_knob = format!("run pack-columns:rows=8 --manifest {} --knob unroll=2", manifest.display());
    assert!(run(dir.path(), &known_knob).expect(2).stderr.contains("not one of 1, 4"));
}

#[test]
fn a_finding_follows_its_manifest_and_says_that_it_changed() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = example(dir.path(), "pack_columns");
    hunt(dir.path(), &format!("fuzz {} --seed 7 --cases 3000", manifest.display())).expect(1);
    let file = findings(&dir.path().join("out"))[0].display().to_string();

    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, format!("# another line\n{text}")).unwrap();
    let changed = run(dir.path(), &format!("run {file}")).expect(1);
    assert!(changed.stderr.contains("has changed since it was filed"), "{}", changed.stderr);
    let known = hunt(dir.path(), &format!("fuzz {} --seed 7 --cases 3000", manifest.display())).expect(0);
    assert!(known.stderr.contains("has changed since it was filed"), "{}", known.stderr);

    std::fs::write(&manifest, text.replace("max = 131072", "max = 1000")).unwrap();
    let gone = run(dir.path(), &format!("run {file}")).expect(2);
    assert!(gone.stderr.contains("outside 1..=1000") && gone.stderr.contains("has changed"), "{}", gone.stderr);

    let moved = dir.path().join("moved.toml");
    std::fs::write(&moved, text).unwrap();
    std::fs::remove_file(&manifest).unwrap();
    let lost = run(dir.path(), &format!("run {file}")).expect(2);
    assert!(lost.stderr.contains("was not found") && lost.stderr.contains("--manifest"), "{}", lost.stderr);
    run(dir.path(), &format!("run {file} --manifest {}", moved.display())).expect(1);
    let other = example(dir.path(), "row_sums");
    run(dir.path(), &format!("run {file} --manifest {}", other.display())).expect(2);
}

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
fn a_program_that_may_run_once_never_runs_twice_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("alone.toml");
    let script = "import fcntl, json, sys\n\
        lock = open('lock', 'w')\n\
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)\n\
        print('{\"shrinkfault\":1}', flush=True)\n\
        for line in sys.stdin:\n\
        \x20   case = json.loads(line)\n\
        \x20   bad = case['params']['n'] >= 20\n\
        \x20   print(json.dumps({'id': case['id'], 'verdict': 'fault' if bad else 'pass'}), flush=True)\n";
    std::fs::write(dir.path().join("alone.py"), script).unwrap();
    let text = "name = 'alone'\ncommand = ['python3', 'alone.py']\nworkers = 1\n[params.n]\nmin = 1\nmax = 30\n\
        [[operands]]\nname = 'A'\ndtype = 'f32'\naccess = 'rw'\ndims = [['n', '1']]\n";
    std::fs::write(&path, text).unwrap();
    let found = hunt(dir.path(), &format!("fuzz {} --cases 16 --jobs 4 --confirm 1", path.display())).expect(1);
    assert_eq!(witness(&found, "n"), (19, 20));
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

#[test]
fn a_program_can_ask_for_placement_and_name_its_own_knobs() {
    let dir = tempfile::tempdir().unwrap();
    let script = "import json, sys\n\
        print('{\"shrinkfault\":1,\"can\":[\"knobs\",\"place\",\"layout\"]}', flush=True)\n\
        for line in sys.stdin:\n\
        \x20   case = json.loads(line)\n\
        \x20   if case.get('ask') == 'knobs':\n\
        \x20       print(json.dumps({'id': case['id'], 'knobs': {'algo': [0, 1, 2]}}), flush=True)\n\
        \x20       continue\n\
        \x20   place = case['place']['A']\n\
        \x20   assert place['align'] >= 64 and isinstance(case['layout'], int), case\n\
        \x20   bad = place['flush'] == 'start' and case['knobs'].get('algo') == 2 and case['params']['n'] >= 33\n\
        \x20   answer = {'id': case['id'], 'verdict': 'wrong' if bad else 'pass', 'resolved': {'algo': 2}}\n\
        \x20   print(json.dumps(answer), flush=True)\n";
    std::fs::write(dir.path().join("placed.py"), script).unwrap();
    let text = "name = 'placed'\ncommand = ['python3', 'placed.py']\n[params.n]\nmin = 1\nmax = 1000\n\
        [[operands]]\nname = 'A'\ndtype = 'f32'\naccess = 'rw'\nalign = 64\ndims = [['n', '1']]\n";
    let path = dir.path().join("placed.toml");
    std::fs::write(&path, text).unwrap();
    let found = hunt(dir.path(), &format!("fuzz {} --cases 2000", path.display())).expect(1);
    assert_eq!(witness(&found, "n"), (32, 33));
    let minimal = &found.events_of("finding")[0]["summary"]["minimal"];
    assert!(minimal["placement"].as_str().unwrap().starts_with("start"), "{minimal}");
    assert_eq!(minimal["knobs"]["algo"], 2);
}

#[test]
fn help_names_the_exit_codes_and_the_documentation() {
    let output = program().args(["fuzz", "--help"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("Exit codes:") && text.contains("docs/manifest.md"), "{text}");
}
