//! Cases a second of a worker that lives on, against a fork per case and an exec per case, on the same cases.
//!
//! The lists are what a hunt generates, without a corpus, under the packed profile and under the strided one. All
//! three ways run the same worker code; a fork has its target loaded and its arena reserved already, an exec has not. The
//! cases of a layout share its pages in the persistent worker; a process of its own maps the pages of its case alone.
//! A process per case is measured on some layouts of each list, and so is the persistent worker on those very cases, a few
//! layouts one way, then the same ones the other way: other work on the machine weighs on both. A few large cases weigh more than many small ones, so
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
use shrinkfault::worker::ground::HostGround;
use shrinkfault::worker::session::{Listener, Session};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const SEED: u64 = 1;
/// One layout in so many of a list is run with a process per case.
const ALONE: usize = 4;
/// Layouts that are run one way before they are run the other way: a quarter of what a hunt has under way at once.
const TURN: usize = 8;

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
        alone(one, target, &name, "fork per case", &some, table, forked(target));
        alone(one, target, &name, "exec per case", &some, table, executed(target));
    }
}

/// What running some layouts came to.
#[derive(Clone, Copy, Default)]
struct Came {
    cases: usize,
    seconds: f64,
    remapped: u64,
    not_passed: usize,
}

impl Came {
    fn rate(self) -> f64 {
        self.cases as f64 / self.seconds
    }

    fn of(pool: &Pool, target: &str, jobs: &[Job]) -> Came {
        let before = pool.counters.remapped.load(Ordering::Relaxed);
        let began = Instant::now();
        let (results, error) = pool.run(jobs, &|_| {});
        let seconds = began.elapsed().as_secs_f64();
        assert!(error.is_none(), "{target}: {error:?}");
        let not_passed = results.iter().flatten().filter(|r| !r.verdict.is_pass()).count();
        let remapped = pool.counters.remapped.load(Ordering::Relaxed) - before;
        Came { cases: count(jobs), seconds, remapped, not_passed }
    }

    fn add(&mut self, other: Came) {
        self.cases += other.cases;
        self.seconds += other.seconds;
        self.remapped += other.remapped;
        self.not_passed += other.not_passed;
    }

    fn row(self, target: &str, cases: &str, way: &str, base: Option<f64>) -> Vec<String> {
        let share = base.map_or("1".to_owned(), |b| format!("{:.3}", self.rate() / b));
        let remapped = format!("{:.1}", self.remapped as f64 / self.cases as f64);
        let other = format!("{} of {}", self.not_passed, self.cases);
        row(&[&target, &cases, &way, &format!("{:.0}", self.rate()), &share, &"", &remapped, &other])
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
) -> Came {
    Came::of(pool, target, &jobs[..jobs.len().min(4)]);
    let came = Came::of(pool, target, jobs);
    table.push(came.row(target, cases, way, base));
    came
}

/// Layouts on the pool, and `run` on lines of one case each, every one in a process of its own: it gives the number of
/// those that did not answer.
fn alone(
    pool: &Pool,
    target: &str,
    cases: &str,
    way: &str,
    jobs: &[Job],
    table: &mut Vec<Vec<String>>,
    mut run: impl FnMut(&[LayoutLine]) -> usize,
) {
    let line = |seed: u64, id: u64, case: &Case| LayoutLine {
        layout: id,
        cases: vec![WireCase::new(id, seed, pool.problem(), case)],
        run: vec![id],
        caps: pool.settings().caps,
    };
    let (mut together, mut apart, mut lost) = (Came::default(), 0.0, 0);
    for jobs in jobs.chunks(TURN) {
        together.add(Came::of(pool, target, jobs));
        let each = jobs.iter().flat_map(|j| j.cases.iter().map(move |(id, case)| line(j.seed, *id, case)));
        let lines: Vec<LayoutLine> = each.collect();
        let began = Instant::now();
        lost += run(&lines);
        apart += began.elapsed().as_secs_f64();
    }
    table.push(together.row(target, cases, "persistent, 1 worker", None));
    let (rate, base) = (together.cases as f64 / apart, together.rate());
    let (share, times) = (format!("{:.3}", rate / base), format!("{:.1} times as fast", base / rate));
    let lost = format!("{lost} of {} lost", together.cases);
    table.push(row(&[&target, &cases, &way, &format!("{rate:.0}"), &share, &times, &"all", &lost]));
}

/// One fork per line of a process that is ready; counts the children that did not come back with 0.
fn forked(target: &str) -> impl FnMut(&[LayoutLine]) -> usize {
    let builtin = gemm();
    let spec = target.parse().expect("benches name targets that parse");
    let loaded = load::load(&spec, &builtin.problem(), None).expect("a worker has loaded it before");
    let arena = CpuArena::reserve(CpuArena::WANTED_BYTES, 8 << 30).expect("a worker has reserved as much");
    let mut session = Session::new(builtin, loaded, Box::new(HostGround::new(arena, None)), None);
    let mut failed = move |line: &LayoutLine| {
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
        unsafe { libc::waitpid(pid, &mut status, 0) != pid || status != 0 }
    };
    move |lines| lines.iter().filter(|line| failed(line)).count()
}

/// One worker process per line; counts those that gave no answer.
fn executed(target: &str) -> impl FnMut(&[LayoutLine]) -> usize {
    let (spawner, spec) = (Spawner::start().expect("the pool has started it"), common::spec(target));
    let (interrupt, patience) = (Interrupt::default(), Duration::from_secs(10));
    let answered = move |line: &LayoutLine| {
        let mut worker = Starting::start(&spawner, &spec, false).ok()?.ready(&spec, &interrupt).ok()?;
        worker.send(line, patience).ok()?;
        matches!(worker.hear(line.run[0], patience, &interrupt), Ok(Heard::Answer(_))).then_some(())
    };
    move |lines| lines.iter().filter(|line| answered(line).is_none()).count()
}
