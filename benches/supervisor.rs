//! What the supervisor adds to a case: time from end to end on a pool, less the time that the same lines take in a session
//! in this process. And what generating a case costs.
//!
//! The case is as small as there is (m = n = k = 1 on the clean model), so that little is left but the overhead: encoding,
//! the socket, two context switches, decoding, planning. Both sides take the least of several runs, because other work on
//! the machine only adds.

mod common;

use common::{gemm, generator, option, pool, print_machine, print_table, row};
use shrinkfault::device::cpu::CpuArena;
use shrinkfault::exec::job::Job;
use shrinkfault::exec::pool::Pool;
use shrinkfault::exec::protocol::{Answer, LayoutLine, WireCase};
use shrinkfault::problem::{Case, Placement};
use shrinkfault::search::Profile;
use shrinkfault::target::load;
use shrinkfault::worker::ground::HostGround;
use shrinkfault::worker::session::{Listener, Session};
use std::sync::Arc;
use std::time::{Duration, Instant};

const TARGET: &str = "sim:clean";
const BATCHES: [usize; 4] = [1, 8, 16, 64];
/// Cases of one run, and runs of which the least counts: short ones, so that some meet no other work on the machine.
const CASES: usize = 512;
const RUNS: u32 = 100;

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
    let pool = pool(TARGET, 1).expect("the clean model is built in");
    overhead(&pool);
    generation(&pool);
}

fn overhead(pool: &Pool) {
    let builtin = gemm();
    let loaded = load::load(&TARGET.parse().expect("it parses"), &builtin.problem(), None).expect("it is built in");
    let arena = CpuArena::reserve(CpuArena::WANTED_BYTES, 8 << 30).expect("a worker has reserved as much");
    let mut session = Session::new(builtin, loaded, Box::new(HostGround::new(arena, None)), None);
    let params = pool.problem().plainest().expect("gemm has cases");
    let case = Case { params, knobs: Default::default(), placement: Placement::END };
    let mut table = vec![row(&[&"batch", &"end to end, us a case", &"in the worker", &"supervisor"])];
    for batch in BATCHES {
        let cases: Vec<(u64, Case)> = (0..batch as u64).map(|id| (id, case.clone())).collect();
        let job = Job { layout: 0, cases, seed: 1, also_map: vec![], patience: 1, repeat: 1 };
        let line = LayoutLine {
            layout: 0,
            cases: job.cases.iter().map(|(id, case)| WireCase::new(*id, 1, pool.problem(), case)).collect(),
            run: job.cases.iter().map(|c| c.0).collect(),
            caps: pool.settings().caps,
        };
        let outside = least(batch, || {
            pool.run_warm(&job).expect("the plainest case passes");
        });
        let inside = least(batch, || {
            session.layout(&line, &mut Silent).expect("the line is well formed");
        });
        let us = |d: Duration| format!("{:.1}", d.as_secs_f64() * 1e6);
        table.push(row(&[&batch, &us(outside), &us(inside), &us(outside.saturating_sub(inside))]));
    }
    print_table(&table);
}

/// Time of one case, the least of several runs.
fn least(batch: usize, mut one: impl FnMut()) -> Duration {
    let run = |_| {
        let began = Instant::now();
        (0..CASES / batch).for_each(|_| one());
        began.elapsed() / CASES as u32
    };
    (0..RUNS).map(run).min().unwrap_or_default()
}

fn generation(pool: &Pool) {
    let rounds = option("--rounds").unwrap_or(16);
    // One thread: the time of a case, not the share of it that is left where rounds run in parallel.
    let single = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread can be started");
    let mut table = vec![row(&[&"profile", &"cases", &"generation, us a case"])];
    for (name, profile) in [("strided", Profile::Strided), ("packed", Profile::Packed)] {
        let generator = generator(pool, &Arc::clone(pool.problem()), profile, 1).expect("gemm has cases");
        let mut cases = 0;
        let mut run = |_| {
            let began = Instant::now();
            let count = |r| single.install(|| generator.round(r)).iter().map(|g| g.cases.len()).sum::<usize>();
            cases = (0..rounds).map(count).sum();
            began.elapsed().as_secs_f64()
        };
        let best = (0..3).map(&mut run).fold(f64::INFINITY, f64::min);
        table.push(row(&[&name, &cases, &format!("{:.1}", best * 1e6 / cases as f64)]));
    }
    print_table(&table);
}
