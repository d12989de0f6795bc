//! Signals and kills at any instant, to the program and to its workers.

mod common;

use common::live::{Hunt, children, instants, kill};
use common::{Run, count, run};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

/// Every line of the journal is JSON; the words of the events.
fn journal(out: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(out.join("out/journal.jsonl")).unwrap();
    let line = |l: &str| serde_json::from_str::<Value>(l).unwrap_or_else(|e| panic!("{e}: {l}"));
    text.lines().map(|l| line(l)["event"].as_str().unwrap().to_owned()).collect()
}

/// Cases and findings that were kept, each readable and failing by itself.
fn kept(out: &Path) -> usize {
    let list = |folder: &str| std::fs::read_dir(out.join("out").join(folder)).unwrap().map(|e| e.unwrap().path());
    let files: Vec<_> = list("raw").chain(list("findings")).collect();
    for file in &files {
        assert!(file.extension().is_some_and(|e| e == "toml"), "left under way: {}", file.display());
        run(out, &format!("run {} --case-timeout 2s", file.display())).expect(1);
    }
    files.len()
}

#[test]
fn a_signal_ends_a_search_at_once_and_releases_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    let signals = [(libc::SIGINT, 130), (libc::SIGTERM, 143), (libc::SIGHUP, 143)];
    for (delay, (signal, code)) in instants(count(6, 60), 900).zip(signals.into_iter().cycle()) {
        let hunt = Hunt::start(dir.path(), "gemm --target sim:clean --cases 1000000000");
        std::thread::sleep(Duration::from_millis(100) + delay);
        hunt.signal(signal);
        let sent = Instant::now();
        hunt.end().expect(code);
        assert!(sent.elapsed() < common::within(3), "{:?}", sent.elapsed());
    }
    run(dir.path(), "gemm --target sim:clean --cases 64 --out {out}/out --regressions {out}/none").expect(0);
    journal(dir.path());
}

/// A few cases that hang: confirming and shrinking them takes seconds.
const HANGS: &str = "gemm --target sim:hang --set m=1 --set n=1 --set k=1048576 --set batch=1 --set lda=1 --set ldb=1048576 \
    --set transA=N --set transB=N --dtype f32 --max-work 4194304 --case-timeout 2s --cases 2 --placement end";

#[test]
fn a_signal_while_a_case_is_confirmed_leaves_it_in_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    let mut hunt = Hunt::start(dir.path(), HANGS);
    hunt.until("case");
    while !hunt.seen.last().unwrap().contains("\"hang\"") {
        hunt.seen.push(String::new());
        hunt.until("case");
    }
    hunt.signal(libc::SIGTERM);
    let sent = Instant::now();
    hunt.end().expect(143);
    assert!(sent.elapsed() < common::within(3), "{:?}", sent.elapsed());
    assert!(journal(dir.path()).contains(&"bad".to_owned()));
}

#[test]
fn a_signal_while_a_case_is_shrunk_keeps_it() {
    for delay in instants(count(2, 20), 1500) {
        let dir = tempfile::tempdir().unwrap();
        let mut hunt = Hunt::start(dir.path(), &HANGS.replace("--set n=1", "--range n=1..4"));
        hunt.until("shrinking");
        std::thread::sleep(delay);
        hunt.signal(libc::SIGINT);
        hunt.end().expect(130);
        assert!(kept(dir.path()) > 0);
        assert!(journal(dir.path()).contains(&"end".to_owned()));
    }
}

#[test]
fn a_kill_takes_the_workers_with_it_and_loses_nothing_confirmed() {
    let dir = tempfile::tempdir().unwrap();
    for (i, delay) in instants(count(5, 100), 1500).enumerate() {
        let mut hunt = Hunt::start(dir.path(), &format!("gemm --keep-going --seed {i}"));
        if i % 2 == 0 {
            hunt.until("shrinking");
        }
        std::thread::sleep(delay);
        hunt.signal(libc::SIGKILL);
        let confirmed = hunt.end();
        assert_eq!(confirmed.code, -1);
        let confirmed = confirmed.stdout.contains("{\"event\":\"shrinking\"");
        // The next run finds a folder that it can use, and clears what was under way.
        run(dir.path(), "gemm --target sim:clean --cases 64 --out {out}/out --regressions {out}/none").expect(0);
        assert!(kept(dir.path()) > 0 || !confirmed);
        journal(dir.path());
    }
}

const CLEAN: &str = "gemm --target sim:clean --jobs 2 --cases 1500 --seed 7";

fn digests(summary: &Value) -> [&Value; 2] {
    [&summary["case_digest"], &summary["verdict_digest"]]
}

#[test]
fn workers_killed_from_outside_change_no_verdict() {
    let dir = tempfile::tempdir().unwrap();
    let undisturbed = Hunt::start(dir.path(), CLEAN).end().expect(0).summary();
    for signal in [libc::SIGKILL, libc::SIGSEGV, libc::SIGTERM] {
        let mut hunt = Hunt::start(dir.path(), CLEAN);
        hunt.until("case");
        let mut hits = 0;
        while hunt.is_running() && hits < count(5, 100) {
            let workers = children(hunt.pid());
            // Some of the times all at once, spares included.
            let n = if hits % 3 == 0 { workers.len() } else { 1 };
            workers.into_iter().take(n).for_each(|w| kill(w, signal));
            hits += 1;
            std::thread::sleep(Duration::from_millis(600));
        }
        let disturbed = hunt.end().expect(0).summary();
        assert_eq!(digests(&disturbed), digests(&undisturbed));
        assert!(disturbed["processes"].as_u64() > undisturbed["processes"].as_u64());
    }
}

#[test]
fn a_worker_that_is_stopped_is_no_finding() {
    let dir = tempfile::tempdir().unwrap();
    let mut hunt = Hunt::start(dir.path(), &format!("{CLEAN} --case-timeout 4s --start-timeout 5s"));
    hunt.until("case");
    children(hunt.pid()).into_iter().for_each(|w| kill(w, libc::SIGSTOP));
    let run = hunt.end().expect(0);
    assert_eq!(run.summary()["findings"], serde_json::json!([]));
    assert_eq!(kept(dir.path()), 0);
}

#[test]
fn workers_killed_while_a_case_is_shrunk_are_no_failures_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let words = "gemm --target sim:edge-overwrite --seed 3";
    let mut hunt = Hunt::start(dir.path(), words);
    hunt.until("shrinking");
    for _ in 0..10 {
        children(hunt.pid()).into_iter().take(1).for_each(|w| kill(w, libc::SIGKILL));
        std::thread::sleep(Duration::from_millis(200));
    }
    let killed = hunt.end().expect(1);
    let quiet = tempfile::tempdir().unwrap();
    let calm = Hunt::start(quiet.path(), words).end().expect(1);
    let found = |r: &Run| r.events_of("finding")[0]["summary"]["minimal"].clone();
    assert_eq!(found(&killed), found(&calm));
    assert!(!killed.stdout.contains("SIGKILL"), "{}", killed.stdout);
}
