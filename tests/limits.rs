//! Machines that grant little: addresses, descriptors, memory, disk, streams, folders.

mod common;

use common::{Run, findings, run};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Runs a line of bash in which `$SF` is the program; `set` comes first.
fn bash(dir: &Path, set: &str, line: &str) -> Run {
    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("{set}\n{line}")]).env("SF", env!("CARGO_BIN_EXE_shrinkfault")).current_dir(dir);
    let started = Instant::now();
    let r = Run::of(shell.output().unwrap());
    assert!(!r.stderr.contains("panicked"), "{set}; {line}\n{}", r.stderr);
    assert!(started.elapsed() < common::within(60), "{set}; {line}: {:?}", started.elapsed());
    r
}

const CLEAN: &str = "$SF gemm --target sim:clean --cases 64 --out out --regressions none";

#[test]
fn few_addresses_give_small_moats_and_the_report_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let small = "ulimit -v $((64 << 20))";
    let note = "instead of 128.0 GiB";
    for line in [CLEAN, "$SF run gemm:m=4", "$SF doctor"] {
        let r = bash(dir.path(), small, line).expect(0);
        assert!(r.stdout.contains(note) && r.stdout.contains("ulimit -v"), "{}", r.stdout);
    }
    let events = bash(dir.path(), small, &format!("{CLEAN} --json")).expect(0);
    assert!(events.events_of("started")[0]["arena_bytes"].as_u64().unwrap() < 64 << 30);
    assert!(events.events_of("warning")[0]["text"].as_str().unwrap().contains(note));
    assert!(!bash(dir.path(), "", CLEAN).expect(0).stdout.contains(note));
    for kib in [8 << 20, 1 << 20, 200 << 10] {
        let r = bash(dir.path(), &format!("ulimit -v {kib}"), CLEAN).expect(3);
        assert!(r.stderr.contains("ulimit -v"), "{}", r.stderr);
    }
}

#[test]
fn a_fault_is_found_with_small_moats_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let line = "$SF gemm --target sim:edge-overread --out out --regressions none --json";
    bash(dir.path(), "ulimit -v $((64 << 20))", line).expect(1);
}

#[test]
fn few_descriptors_or_little_memory_are_named() {
    let dir = tempfile::tempdir().unwrap();
    for n in [8, 12, 16, 20] {
        let r = bash(dir.path(), &format!("ulimit -n {n}"), &format!("{CLEAN} --jobs 2")).expect(3);
        assert!(r.stderr.contains("ulimit -n"), "{}", r.stderr);
    }
    bash(dir.path(), "ulimit -n 64", &format!("{CLEAN} --jobs 2")).expect(0);
    bash(dir.path(), "ulimit -d 200000", CLEAN).expect(0);
}

#[test]
fn a_full_disk_is_one_sentence_and_prints_what_cannot_be_filed() {
    let dir = tempfile::tempdir().unwrap();
    // In units of 1024 bytes. Output to a pipe is not limited.
    for kib in [0, 1] {
        let r = bash(dir.path(), &format!("ulimit -f {kib}"), &format!("{CLEAN} | cat; exit ${{PIPESTATUS[0]}}"));
        let r = r.expect(3);
        assert_eq!(r.stderr.lines().filter(|l| l.starts_with("error: ")).count(), 1, "{}", r.stderr);
    }
    // The journal of earlier hunts has nearly reached the limit; a finding is a file of its own.
    let line = "{\"event\":\"intent\",\"first\":0,\"last\":0}\n";
    let earlier = line.repeat((1 << 20) / line.len());
    std::fs::create_dir(dir.path().join("out2")).unwrap();
    std::fs::write(dir.path().join("out2/journal.jsonl"), earlier).unwrap();
    let line = "$SF gemm --seed 42 --cases 1000 --keep-going --out out2 --regressions none --json";
    let piped = "| cat; exit ${PIPESTATUS[0]}";
    let cut = bash(dir.path(), "ulimit -f 1040", &format!("{line} {piped}")).expect(3);
    assert!(cut.stderr.contains("no room to write out2/journal.jsonl"), "{}", cut.stderr);
    let found = findings(&dir.path().join("out2"));
    assert_eq!(cut.events_of("finding").len(), found.len());
    let whole = bash(dir.path(), "", &line.replace("out2", "out3")).expect(1).summary();
    let resumed = bash(dir.path(), "", &format!("{line} --resume")).summary();
    assert_eq!(findings(&dir.path().join("out2")).len(), whole["findings"].as_array().unwrap().len());
    assert!(found.iter().all(|f| f.exists()));
    for sum in ["tally", "case_digest", "verdict_digest"] {
        assert_eq!(resumed[sum], whole[sum]);
    }
}

#[test]
fn a_disk_without_room_for_findings_is_said_before_anything_runs() {
    let dir = tempfile::tempdir().unwrap();
    let r = bash(dir.path(), "ulimit -f 1000", &format!("{CLEAN} | cat; exit ${{PIPESTATUS[0]}}")).expect(3);
    assert!(
        r.stderr.contains("no room to write out/reserve") && r.stderr.contains("kept free for findings"),
        "{}",
        r.stderr
    );
    assert_eq!(r.stdout, "");
}

#[test]
fn closed_and_full_streams_neither_panic_nor_hang() {
    let dir = tempfile::tempdir().unwrap();
    for line in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", "| head -1; exit ${PIPESTATUS[0]}", "2>/dev/full"] {
        bash(dir.path(), "", &format!("{CLEAN} {line}")).expect(0);
    }
    for line in ["$SF targets", "$SF doctor", "$SF run gemm:m=4", "$SF gemm --help"] {
        bash(dir.path(), "", &format!("{line} | head -1; exit ${{PIPESTATUS[0]}}")).expect(0);
        bash(dir.path(), "", &format!("{line} >&-")).expect(0);
    }
    for line in [CLEAN, "$SF targets", "$SF doctor", "$SF run gemm:m=4", &format!("{CLEAN} --json")] {
        let r = bash(dir.path(), "", &format!("{line} >/dev/full")).expect(3);
        assert!(r.stderr.contains("failed to write to stdout"), "{line}\n{}", r.stderr);
    }
    bash(dir.path(), "", "$SF run /no/such.toml 2>/dev/full").expect(2);
    let r = bash(dir.path(), "", &format!("{CLEAN} --json | head -1; exit ${{PIPESTATUS[0]}}")).expect(130);
    assert!(r.stderr.contains("the reader of the events went away"), "{}", r.stderr);
}

#[test]
fn a_bare_environment_is_enough() {
    let dir = tempfile::tempdir().unwrap();
    for set in [
        "export TERM=dumb",
        "unset HOME",
        "export PATH= TMPDIR=/no/such/folder",
        "trap '' CHLD",
        "trap '' PIPE INT TERM HUP",
        "ulimit -s 64",
    ] {
        bash(dir.path(), set, CLEAN).expect(0);
    }
    bash(dir.path(), "", CLEAN.replace("$SF", "exec env -i $SF").as_str()).expect(0);
    let gone = "mkdir gone && cd gone && rmdir ../gone";
    assert!(bash(dir.path(), gone, CLEAN).expect(3).stderr.contains("make the folder writable"));
    bash(dir.path(), gone, "$SF run gemm:m=4").expect(0);
    run(dir.path(), "gemm --target sim:clean --cases 64 --out {out}/new/deep/out --regressions {out}/none").expect(0);
}

#[test]
fn few_processes_mean_fewer_threads_or_one_sentence() {
    let dir = tempfile::tempdir().unwrap();
    // The limit does not bind root, and other processes of the same user count: the program runs as a user of its own.
    let user = Command::new("setpriv").args(["--reuid=54321", "--clear-groups", "true"]).output();
    if !user.is_ok_and(|o| o.status.success()) {
        println!("not run: this user may not become another one");
        return;
    }
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(dir.path(), open).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_shrinkfault"), dir.path().join("sf")).unwrap();
    for limit in 1..12 {
        let line = format!("setpriv --reuid=54321 --clear-groups bash -c 'ulimit -u {limit}; exec {CLEAN} --jobs 2'");
        let r = bash(dir.path(), "SF=$PWD/sf; export SF", &line);
        match r.code {
            0 => {}
            3 => assert!(r.stderr.contains("ulimit -u"), "{limit}: {}", r.stderr),
            code => panic!("{limit}: {code}\n{}", r.stderr),
        }
    }
}
