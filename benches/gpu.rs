//! On an NVIDIA GPU: cases a second of workers that live on against a process per case, and what faults in a row cost.
//!
//! `SHRINKFAULT_BENCH_TARGET` names the target of the first part (`cublaslt`). The second runs a kernel that wraps an offset,
//! by turns with a control that passes, and checks every verdict. Without a GPU it says so and ends.

mod common;

use common::{count, generator, jobs, option, pool, print_machine, print_table, row};
use shrinkfault::device::cuda;
use shrinkfault::exec::interrupt::Interrupt;
use shrinkfault::exec::pool::Pool;
use shrinkfault::exec::protocol::{LayoutLine, WireCase};
use shrinkfault::exec::spawn::Spawner;
use shrinkfault::exec::verdict::{Place, Verdict};
use shrinkfault::exec::worker::{Heard, Starting};
use shrinkfault::problem::{Case, Knobs, Placement, Value};
use shrinkfault::search::Profile;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const KERNEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/targets/cuda/planted_wrap_b.toml");
/// One in so many cases of the second part is the control.
const CONTROL: u64 = 10;

fn main() {
    if let Err(why) = cuda::count() {
        println!("not run: {why}");
        return;
    }
    print_machine();
    let target = std::env::var("SHRINKFAULT_BENCH_TARGET").unwrap_or("cublaslt".to_owned());
    match pool(&target, 1) {
        Ok(one) => throughput(&one, &target),
        Err(why) => println!("{target}: not run: {why}"),
    }
    faults(option("--faults").unwrap_or(100));
}

fn throughput(one: &Pool, target: &str) {
    let mut table = vec![row(&[
        &"cases",
        &"way",
        &"cases/s",
        &"times a process per case",
        &"ranges remapped per case",
        &"verdicts",
    ])];
    for (name, profile) in [("packed", Profile::Packed), ("strided", Profile::Strided)] {
        let made = generator(one, one.problem(), profile, 1).map(|g| jobs(&g, option("--rounds").unwrap_or(2), 0));
        let Ok(jobs) = made else { continue };
        let line = |id: u64, case: &Case| LayoutLine {
            layout: id,
            cases: vec![WireCase::new(id, 1, one.problem(), case)],
            run: vec![id],
            caps: one.settings().caps,
        };
        let all: Vec<LayoutLine> = jobs.iter().flat_map(|j| j.cases.iter().map(|(id, c)| line(*id, c))).collect();
        let some: Vec<&LayoutLine> = all.iter().step_by(all.len().div_ceil(40)).collect();
        let began = Instant::now();
        let answered = executed(target, &some);
        let alone = some.len() as f64 / began.elapsed().as_secs_f64();
        let note = format!("{answered} of {} answered", some.len());
        table.push(row(&[&name, &"a process per case", &format!("{alone:.2}"), &1, &"all", &note]));
        for workers in [1, 2, 4] {
            let Ok(pool) = pool(target, workers) else { continue };
            pool.run(&jobs[..jobs.len().min(4)], &|_| {});
            let before = pool.counters.remapped.load(Ordering::Relaxed);
            let began = Instant::now();
            let (results, error) = pool.run(&jobs, &|_| {});
            let rate = count(&jobs) as f64 / began.elapsed().as_secs_f64();
            let remapped = (pool.counters.remapped.load(Ordering::Relaxed) - before) as f64 / count(&jobs) as f64;
            let of = |word: &str| results.iter().flatten().filter(|r| r.verdict.word() == word).count();
            let words = ["pass", "refused", "skipped", "fault", "wrong", "crash"];
            let verdicts: Vec<String> = words
                .iter()
                .filter(|w| of(w) > 0)
                .map(|w| format!("{} {w}", of(w)))
                .chain(error.map(|e| e.to_string()))
                .collect();
            let way = format!("persistent, {workers} workers");
            let cells: [&dyn std::fmt::Display; 6] = [
                &name,
                &way,
                &format!("{rate:.0}"),
                &format!("{:.0}", rate / alone),
                &format!("{remapped:.1}"),
                &verdicts.join(", "),
            ];
            table.push(row(&cells));
        }
    }
    print_table(&table);
}

/// One worker process per line; those that answered.
fn executed(target: &str, lines: &[&LayoutLine]) -> usize {
    let (spawner, spec) = (Spawner::start().expect("the pool has started one"), common::spec(target));
    let (interrupt, patience) = (Interrupt::default(), Duration::from_secs(10));
    let answered = |line: &LayoutLine| {
        let mut worker = Starting::start(&spawner, &spec, false).ok()?.ready(&spec, &interrupt).ok()?;
        worker.send(line, patience).ok()?;
        matches!(worker.hear(line.run[0], patience, &interrupt), Ok(Heard::Answer(_))).then_some(())
    };
    lines.iter().filter(|line| answered(line).is_some()).count()
}

fn faults(wanted: u64) {
    let pool = match pool(&format!("kernel:wrap@{KERNEL}"), 2) {
        Ok(pool) => pool,
        Err(why) => return println!("faults: not run: {why}"),
    };
    let case = |n: i64| {
        let named = [("n", n), ("ldb", 1 << 31)].map(|(name, v)| (name.to_owned(), Value::Int(v))).into();
        let params = pool.problem().complete(&named).expect("the kernel takes it");
        Case { params, knobs: Knobs::new(), placement: Placement::END }
    };
    let (bad, good) = (case(2), case(1));
    let (mut seen, mut controls, mut misread) = (0, 0, 0);
    let began = Instant::now();
    for turn in 0.. {
        if seen == wanted {
            break;
        }
        let control = turn % CONTROL == 0;
        let verdict = pool.probe(if control { &good } else { &bad }, turn, false).expect("a verdict").verdict;
        let right = match &verdict {
            Verdict::Pass { .. } => control,
            Verdict::Fault(f) => !control && f.hit.as_ref().is_none_or(|h| h.operand == "B" && h.place == Place::Far),
            _ => false,
        };
        if !right {
            println!("turn {turn}: {verdict:?}");
        }
        misread += u64::from(!right);
        controls += u64::from(control);
        seen += u64::from(!control);
    }
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{seen} faults and {controls} controls in {seconds:.1} s ({:.2} faults/s, spares kept started), {misread} misread",
        seen as f64 / seconds
    );
}
