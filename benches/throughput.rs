//! Cases a second of a worker that lives on, against a fork per case and an exec per case, on the same cases.
//!
//! The lists are what a hunt generates, without a corpus, under the packed profile and under the strided one. All
//! three ways run the same worker code; a fork has its target loaded and its arena reserved already, an exec has not. The
//! cases of a layout share its pages in the persistent worker; a process of its own maps the pages of its case alone.
//! A process per case is measured on some layouts of each list, between two runs of the persistent worker on those very
//! cases: the ratio of cases a second is to the two together. A few large cases weigh more than many small ones, so
//! another selection has another rate.

mod common;

use common::{count, gemm, generator, jobs, option, pool, print_machine, print_table, row, targets};
use shrinkfault::device::cpu::CpuArena;
use shrinkfault::exec::interrupt::Interrupt;
use shrinkfault::exec::job::Job;
use shrinkfault::exec::pool::Pool;
use shrinkfault::exec::protocol::{Answer, LayoutLine, WireCase};
use shrinkfault::exec::spawn::Spawner;
use shrinkfault::exec::worker::{Heard, Starting};
use shrinkfault::problem::Case;
use shrinkfault::search::Profile;
use shrinkfault::target::load;
use shrinkfault::worker::session::{Listener, Session};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const SEED: u64 = 1;
/// One layout in so many of a list is run with a process per case.
const ALONE: usize = 8;

struct Silent;

impl Listener for Silent {
    fn launching(&mut self, _: u64) {}

    fn step(&mut self) {}

    fn answer(&mut self, _: &Answer) -> Result<(), String> {
        Ok(())
    }
}

fn main() {
    print_machine();
    let rounds = option("--rounds").unwrap_or(8);
    let mut table = vec![row(&[
        &"target",
        &"cases",
        &"way",
        &"cases/s",
        &"of persistent",
        &"persistent is",
        &"entries remapped per case",
        &"not passed",
    ])];
    for (name, target) in targets() {
        match pool(&target, 1) {
            Err(why) => table.push(row(&[&name, &"", &format!("not run: {why}")])),
            Ok(one) => measure(&one, &target, rounds, &mut table),
        }
    }
    print_table(&table);
}

fn measure(one: &Pool, target: &str, rounds: u64, table: &mut Vec<Vec<String>>) {
    let of = |profile, first| {
        generator(one, one.problem(), profile, SEED).map(|g| jobs(&g, rounds, first)).expect("the problem has cases")
    };
    let (strided, packed) = (of(Profile::Strided, 0), of(Profile::Packed, 1 << 32));
    // One layout of each in turn.
    let mixed: Vec<Job> = strided.iter().zip(&packed).flat_map(|(s, p)| [s.clone(), p.clone()]).collect();
    let base = persistent(one, target, "mixed", "persistent, 1 worker", &mixed, None, table).rate();
    if let Ok(two) = pool(target, 2) {
        persistent(&two, target, "mixed", "persistent, 2 workers", &mixed, Some(base), table);
    }
    for (name, list) in [("strided", strided), ("packed", packed)] {
        persistent(one, target, name, "persistent, 1 worker", &list, Some(base), table);
        // From the middle of a stretch: the first layouts of a hunt are small.
        let some: Vec<Job> = list.into_iter().skip(ALONE / 2).step_by(ALONE).collect();
        let name = format!("{name}, some");
        for (way, run) in [("fork per case", forked as Alone), ("exec per case", executed)] {
            alone(one, target, &name, way, &some, table, run);
        }
    }
}

/// Cases and the seconds that they took.
#[derive(Clone, Copy)]
struct Took {
    cases: usize,
    seconds: f64,
}

impl Took {
    fn rate(self) -> f64 {
        self.cases as f64 / self.seconds
    }
}

/// Runs whole layouts on a pool.
fn persistent(
    pool: &Pool,
    target: &str,
    cases: &str,
    way: &str,
    jobs: &[Job],
    base: Option<f64>,
    table: &mut Vec<Vec<String>>,
) -> Took {
    pool.run(&jobs[..jobs.len().min(4)], &|_| {});
    let before = pool.counters.remapped.load(Ordering::Relaxed);
    let began = Instant::now();
    let (results, error) = pool.run(jobs, &|_| {});
    let took = Took { cases: count(jobs), seconds: began.elapsed().as_secs_f64() };
    assert!(error.is_none(), "{target}: {error:?}");
    let remapped = (pool.counters.remapped.load(Ordering::Relaxed) - before) as f64 / count(jobs) as f64;
    let other = results.iter().flatten().filter(|r| !r.verdict.is_pass()).count();
    let share = base.map_or("1".to_owned(), |b| format!("{:.3}", took.rate() / b));
    let (rate, other) = (format!("{:.0}", took.rate()), format!("{other} of {}", count(jobs)));
    table.push(row(&[&target, &cases, &way, &rate, &share, &"", &format!("{remapped:.1}"), &other]));
    took
}

/// Runs lines of one case each, every one in a process of its own; how many gave no answer.
type Alone = fn(&str, &[LayoutLine]) -> usize;

fn alone(pool: &Pool, target: &str, cases: &str, way: &str, jobs: &[Job], table: &mut Vec<Vec<String>>, run: Alone) {
    let before = persistent(pool, target, cases, "persistent, 1 worker", jobs, None, table);
    let line = |seed: u64, id: u64, case: &Case| LayoutLine {
        layout: id,
        cases: vec![WireCase::new(id, seed, pool.problem(), case)],
        run: vec![id],
        caps: pool.settings().caps,
    };
    let lines: Vec<LayoutLine> =
        jobs.iter().flat_map(|j| j.cases.iter().map(move |(id, case)| line(j.seed, *id, case))).collect();
    let began = Instant::now();
    let lost = run(target, &lines);
    let rate = lines.len() as f64 / began.elapsed().as_secs_f64();
    let after = persistent(pool, target, cases, "persistent, 1 worker", jobs, Some(before.rate()), table);
    let both = Took { cases: before.cases + after.cases, seconds: before.seconds + after.seconds }.rate();
    let (share, times) = (format!("{:.3}", rate / both), format!("{:.1} times as fast", both / rate));
    let lost = format!("{lost} of {} lost", lines.len());
    table.push(row(&[&target, &cases, &way, &format!("{rate:.0}"), &share, &times, &"all", &lost]));
}

/// One fork per line of a process that is ready; children that did not come back with 0.
fn forked(target: &str, lines: &[LayoutLine]) -> usize {
    let builtin = gemm();
    let spec = target.parse().expect("benches name targets that parse");
    let loaded = load::load(&spec, &builtin.problem(), None).expect("a worker has loaded it before");
    let arena = CpuArena::reserve(CpuArena::WANTED_BYTES, 8 << 30).expect("a worker has reserved as much");
    let mut session = Session::new(builtin, loaded, arena, None);
    let mut lost = 0;
    for line in lines {
        // SAFETY: the child runs one line on memory that is its own copy and leaves by `_exit`; the other threads of
        // this process only wait.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let code = i32::from(session.layout(line, &mut Silent).is_err());
            // SAFETY: ends the child without running what its parent registered.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: `status` outlives the call.
        lost += usize::from(unsafe { libc::waitpid(pid, &mut status, 0) } != pid || status != 0);
    }
    lost
}

/// One worker process per line; those that gave no answer.
fn executed(target: &str, lines: &[LayoutLine]) -> usize {
    let (spawner, spec) = (Spawner::start().expect("the pool has started it"), common::spec(target));
    let interrupt = Interrupt::default();
    let patience = Duration::from_secs(10);
    let answered = |line: &LayoutLine| {
        let mut worker = Starting::start(&spawner, &spec, false).ok()?.ready(&spec, &interrupt).ok()?;
        worker.send(line, patience).ok()?;
        matches!(worker.hear(line.run[0], patience, &interrupt), Ok(Heard::Answer(_))).then_some(())
    };
    lines.iter().filter(|line| answered(line).is_none()).count()
}
