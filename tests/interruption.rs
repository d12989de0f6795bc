//! Signals and kills at any instant, to the program and to its workers.

mod common;

use common::{Run, count, program, run};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// A hunt under way, whose events are read as they come.
struct Hunt {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Hunt {
    fn start(out: &Path, words: &str) -> Hunt {
        let words = format!("{words} --json --out {{out}}/out --regressions {{out}}/regressions");
        let args = words.split_whitespace().map(|w| w.replace("{out}", &out.display().to_string()));
        let mut child = program().args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|l| sender.send(l))
        });
        Hunt { child, lines, seen: vec![] }
    }

    /// Waits for an event.
    fn until(&mut self, event: &str) -> &mut Hunt {
        let wanted = format!("{{\"event\":\"{event}\"");
        while !self.seen.last().is_some_and(|l| l.starts_with(&wanted)) {
            let line = self.lines.recv_timeout(Duration::from_secs(60));
            self.seen.push(line.unwrap_or_else(|e| panic!("no event '{event}': {e}; seen {:#?}", self.seen)));
        }
        self
    }

    fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    fn signal(&self, signal: i32) {
        kill(self.pid(), signal);
    }

    fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for the end, and checks that no worker outlives it.
    fn end(mut self) -> Run {
        let workers = children(self.pid());
        let status = self.child.wait().unwrap();
        self.seen.extend(self.lines.iter());
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        for worker in workers {
            let deadline = Instant::now() + Duration::from_secs(10);
            while is_alive(worker) {
                assert!(Instant::now() < deadline, "worker {worker} outlives its supervisor");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        Run { code: status.code().unwrap_or(-1), stdout: self.seen.join("\n"), stderr }
    }
}

/// Sends a signal; a process that is gone already does not matter.
fn kill(pid: i32, signal: i32) {
    // SAFETY: a plain system call on the number of a process that this test started.
    unsafe { libc::kill(pid, signal) };
}

fn stat(pid: i32) -> Option<(char, i32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

fn is_alive(pid: i32) -> bool {
    stat(pid).is_some_and(|(state, _)| state != 'Z')
}

fn children(parent: i32) -> Vec<i32> {
    let numbers = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
    numbers.filter(|pid| stat(*pid).is_some_and(|(state, of)| of == parent && state != 'Z')).collect()
}

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

/// Numbers that look random, the same in every run of the test.
fn instants(n: u64, most_ms: u64) -> impl Iterator<Item = Duration> {
    (1..=n).map(move |i| Duration::from_millis(i.wrapping_mul(0x9E37_79B9_7F4A_7C15) % most_ms))
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
