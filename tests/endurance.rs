//! Faults in a row, with known-good controls among them, leave nothing behind: no process, no descriptor, no memory.

mod common;

use common::count;
use shrinkfault::device::cpu::CpuArena;
use shrinkfault::exec::interrupt::Interrupt;
use shrinkfault::exec::job::Job;
use shrinkfault::exec::pool::{Pool, Settings};
use shrinkfault::exec::worker::WorkerSpec;
use shrinkfault::problem::{Builtin, Case, Placement, Value};
use shrinkfault::target::Caps;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const MODEL: &str = "sim:i32-sum,operand=B";

fn pool(jobs: usize) -> Pool {
    let spec = WorkerSpec {
        program: env!("CARGO_BIN_EXE_shrinkfault").into(),
        problem: "gemm".into(),
        target: MODEL.parse().unwrap(),
        int_width: None,
        arena_bytes: CpuArena::WANTED_BYTES,
        data_limit: None,
        start_timeout: Duration::from_secs(60),
        case_timeout: Duration::from_secs(30),
        wrapper: vec![],
        env: vec![],
        foreign: None,
    };
    let settings = Settings { jobs, caps: Caps::default(), case_timeout: spec.case_timeout, until: None };
    Pool::start(spec, Builtin::find("gemm").unwrap().problem(), settings, Interrupt::install().unwrap()).unwrap()
}

fn case(n: i64, ldb: i64) -> Case {
    let problem = Builtin::find("gemm").unwrap().problem();
    let named: BTreeMap<String, Value> = [("n", n), ("ldb", ldb)].map(|(k, v)| (k.to_owned(), Value::Int(v))).into();
    Case { params: problem.complete(&named).unwrap(), knobs: Default::default(), placement: Placement::END }
}

/// Nine cases past the line, each with a stride of its own, then one below it. With two columns no wrapped one of a case
/// lands on pages of another.
fn row(number: u64) -> Job {
    let past = |i: u64| (number * 10 + i, case(2, (1 << 31) + (number * 64 + i) as i64 * 8));
    let mut cases: Vec<(u64, Case)> = (0..9).map(past).collect();
    cases.push((number * 10 + 9, case(2, (1 << 31) - 1 - number as i64)));
    Job { layout: number, cases, seed: number, also_map: vec![], patience: 1, repeat: 1 }
}

/// What this process holds: descriptors, resident bytes, and live or unreaped children of it and of theirs.
#[derive(Debug, Clone)]
struct Held {
    descriptors: usize,
    resident: u64,
    children: Vec<i32>,
}

fn held() -> Held {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    Held {
        descriptors: std::fs::read_dir("/proc/self/fd").unwrap().count(),
        resident: pages * 4096,
        children: descendants(std::process::id() as i32),
    }
}

/// Processes below a process, zombies included.
fn descendants(root: i32) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    // The name in /proc/PID/stat may hold anything; what follows its last parenthesis is state, parent, ...
    let parent = |pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<i32>().ok()
    };
    let pairs: Vec<(i32, i32)> = pids.filter_map(|p| Some((p, parent(p)?))).collect();
    let mut all = vec![root];
    let mut at = 0;
    while at < all.len() {
        let here = all[at];
        all.extend(pairs.iter().filter(|(_, parent)| *parent == here).map(|(p, _)| *p));
        at += 1;
    }
    all.split_off(1)
}

#[test]
fn faults_in_a_row_leave_no_process_no_descriptor_and_no_memory_behind() {
    const ROWS: u64 = 10;
    let jobs = 2;
    let before = held();
    let pool = pool(jobs);
    // 2,070 faults, or ten times as many.
    let rounds = count(23, 230);
    let mut samples = vec![];
    let mut faults = 0;
    for round in 0..rounds {
        let work: Vec<Job> = (0..ROWS).map(|i| row(round * ROWS + i)).collect();
        let (results, error) = pool.run(&work, &|_| {});
        assert_eq!(error, None);
        for result in results {
            assert_eq!(result.len(), 10);
            for (i, r) in result.iter().enumerate() {
                let wanted = if i == 9 { "pass" } else { "fault" };
                assert_eq!(r.verdict.word(), wanted, "case {}: {:?}", r.id, r.verdict);
                faults += u64::from(i < 9);
            }
        }
        samples.push(held());
    }
    assert_eq!(faults, rounds * ROWS * 9);
    // Workers in their seats, spares, and those on their way; never one per fault.
    let (first, last) = (&samples[0], &samples[samples.len() - 1]);
    let most = |f: fn(&Held) -> usize| samples.iter().map(f).max().unwrap();
    assert!(most(|h| h.children.len()) <= 4 * jobs + 2, "{samples:?}");
    assert!(last.descriptors <= first.descriptors + 4 * jobs, "{samples:?}");
    assert!(last.resident <= first.resident + (8 << 20), "{samples:?}");
    drop(pool);
    // The ends of the last workers are heard of within moments.
    let patience = Instant::now() + Duration::from_secs(20);
    while Instant::now() < patience && !descendants(std::process::id() as i32).is_empty() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let after = held();
    assert_eq!(after.children, Vec::<i32>::new(), "left behind: {after:?}");
    assert!(after.descriptors <= before.descriptors + 2, "before {before:?}, after {after:?}");
}
