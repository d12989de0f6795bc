//! What the benches share: pools, lists of cases, tables.

#![allow(dead_code)] // each bench uses its own part

use shrinkfault::exec::interrupt::Interrupt;
use shrinkfault::exec::job::Job;
use shrinkfault::exec::pool::{Pool, Settings};
use shrinkfault::exec::worker::WorkerSpec;
use shrinkfault::problem::{Builtin, Problem};
use shrinkfault::search::{self, Generator, Profile, SpanLimits};
use shrinkfault::target::{Caps, TargetSpec};
use std::sync::Arc;
use std::time::Duration;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_shrinkfault");

/// Processor, versions and load: what a number depends on.
pub fn print_machine() {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let model = info.lines().find_map(|l| l.strip_prefix("model name")).unwrap_or(": unknown");
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let load: Vec<String> = read("/proc/loadavg").split(' ').take(2).map(str::to_owned).collect();
    println!(
        "{}, {cores} cores; shrinkfault {}",
        model.trim_start_matches([':', '\t', ' ']),
        env!("CARGO_PKG_VERSION")
    );
    println!("load before: {} (a load above 0 is other work on this machine)", load.join(" "));
}

/// A row of text per line, columns as wide as their widest cell.
pub fn print_table(rows: &[Vec<String>]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(String::len).max().unwrap_or(0);
    for row in rows {
        let cells: Vec<String> = row.iter().enumerate().map(|(c, text)| format!("{text:<0$}", width(c))).collect();
        println!("{}", cells[..columns.min(cells.len())].join("  ").trim_end());
    }
}

pub fn row(cells: &[&dyn std::fmt::Display]) -> Vec<String> {
    cells.iter().map(ToString::to_string).collect()
}

/// `--name VALUE` of the bench's own command line, after `cargo bench --bench NAME --`.
pub fn option(name: &str) -> Option<u64> {
    let args: Vec<String> = std::env::args().collect();
    let at = args.iter().position(|a| a == name)?;
    args.get(at + 1)?.parse().ok()
}

pub fn gemm() -> Builtin {
    Builtin::find("gemm").expect("gemm is built in")
}

/// The targets that are measured: the clean model, and a BLAS where one is installed or named.
pub fn targets() -> [(&'static str, String); 2] {
    let library = std::env::var("SHRINKFAULT_BENCH_LIB").map_or("cblas".to_owned(), |path| format!("cblas@{path}"));
    [("clean model", "sim:clean".to_owned()), ("library", library)]
}

pub fn spec(target: &str) -> WorkerSpec {
    WorkerSpec {
        program: PROGRAM.into(),
        problem: "gemm".to_owned(),
        target: target.parse::<TargetSpec>().expect("benches name targets that parse"),
        int_width: None,
        arena_bytes: shrinkfault::device::cpu::CpuArena::WANTED_BYTES,
        data_limit: None,
        start_timeout: Duration::from_secs(60),
        case_timeout: Duration::from_secs(10),
        wrapper: vec![],
        env: vec![],
        foreign: None,
    }
}

/// A pool as a hunt makes it; `Err` says why there is none.
pub fn pool(target: &str, jobs: usize) -> Result<Pool, String> {
    let settings = Settings { jobs, caps: Caps::default(), case_timeout: Duration::from_secs(10), until: None };
    let mut pool =
        Pool::start(spec(target), gemm().problem(), settings, Interrupt::default()).map_err(|e| e.to_string())?;
    let (library, model) = gemm().hunt_work;
    pool.set_work(if pool.hello().description.model { model } else { library });
    let limited = pool.problem().narrowed(&pool.hello().description.limits)?;
    pool.narrow(Arc::new(limited));
    Ok(pool)
}

/// What a hunt on that pool generates, without a corpus.
pub fn generator(pool: &Pool, problem: &Arc<Problem>, profile: Profile, seed: u64) -> Result<Generator, String> {
    let (caps, hello) = (pool.settings().caps, pool.hello());
    let len = i128::from(hello.arena.len);
    let limits = SpanLimits {
        span_bytes: len / 8,
        arena_bytes: len / 4 * 3,
        work: i128::from(caps.work),
        elements: caps.elements(),
        memory: i128::from(caps.memory),
        page_bytes: hello.arena.page_bytes as i64,
        sampled: hello.description.model,
        ..SpanLimits::default()
    };
    let options = search::Options { profile, limits, ..search::Options::default() };
    Generator::new(Arc::clone(problem), seed, options, vec![]).map_err(|e| e.to_string())
}

/// Jobs of the first rounds, cases numbered from `first`.
pub fn jobs(generator: &Generator, rounds: u64, first: u64) -> Vec<Job> {
    let mut id = first;
    let groups = (0..rounds).flat_map(|r| generator.round(r));
    groups
        .map(|group| {
            let number = |planned: search::Planned| {
                id += 1;
                (id - 1, planned.case)
            };
            Job {
                layout: group.number,
                cases: group.cases.into_iter().map(number).collect(),
                seed: 1,
                also_map: vec![],
                patience: 1,
                repeat: 1,
            }
        })
        .collect()
}

pub fn count(jobs: &[Job]) -> usize {
    jobs.iter().map(|j| j.cases.len()).sum()
}
