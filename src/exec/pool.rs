//! Workers side by side, and spares kept started: a fault kills the worker in use, and starting one takes milliseconds.

use super::health::{Health, Learned};
use super::interrupt::Interrupt;
use super::job::{self, CaseResult, Job, Seat};
use super::probe::ProbeError;
use super::process::{Process, StartingProcess};
use super::protocol::Hello;
use super::signature::Family;
use super::spawn::Spawner;
use super::verdict::Verdict;
use super::worker::{WorkerError, WorkerSpec};
use crate::problem::{Assignment, Case, Knobs, Problem, Value};
use crate::target::Caps;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Further workers that are started where one dies of a signal before it is ready.
const STARTS: u32 = 3;

/// How many times the time limit a case gets before its silence counts as a hang, and by how much the limit of a run
/// grows where a case answers only then.
pub const LONG_LOOK: u32 = 4;

/// How a pool runs.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Workers side by side.
    pub jobs: usize,
    pub caps: Caps,
    /// Time limit of a case, at first: [`Pool::raise_limit`].
    pub case_timeout: Duration,
    /// When the run ends.
    pub until: Option<Instant>,
}

/// Counters of a run.
#[derive(Debug, Default)]
pub struct Counters {
    pub processes: AtomicU64,
    pub passes: AtomicU64,
    pub bad: AtomicU64,
    pub other: AtomicU64,
    pub remapped: AtomicU64,
    pass_nanos: AtomicU64,
    bad_nanos: AtomicU64,
}

/// Workers of one target for one problem.
#[derive(Debug)]
pub struct Pool {
    spawner: Spawner,
    spec: WorkerSpec,
    problem: Arc<Problem>,
    described: Arc<Problem>,
    settings: Settings,
    interrupt: Interrupt,
    hello: Hello,
    spares: Mutex<VecDeque<StartingProcess>>,
    seats: Vec<Mutex<Option<Seat>>>,
    health: Option<Health>,
    /// The time limit of a case, in multiples of the one set.
    stretch: AtomicU32,
    pub counters: Counters,
}

impl Pool {
    /// Starts the first worker and learns what the target says of itself; then narrows nothing: the caller does.
    ///
    /// # Errors
    /// A sentence, where no worker can be started.
    pub fn start(
        spec: WorkerSpec,
        problem: Arc<Problem>,
        settings: Settings,
        interrupt: Interrupt,
    ) -> Result<Pool, WorkerError> {
        let spawner = Spawner::start().map_err(|e| WorkerError::Setup(e.to_string()))?;
        let first = StartingProcess::start(&spawner, &spec, true)?.ready(&spec, &interrupt)?;
        let mut seats: Vec<Mutex<Option<Seat>>> = (0..settings.jobs.max(1)).map(|_| Mutex::new(None)).collect();
        let hello = first.hello().clone();
        seats[0] = Mutex::new(Some(Seat::new(first)));
        let counters = Counters::default();
        counters.processes.fetch_add(1, Ordering::Relaxed);
        Ok(Pool {
            spawner,
            spec,
            described: Arc::clone(&problem),
            problem,
            settings,
            interrupt,
            hello,
            spares: Mutex::new(VecDeque::new()),
            seats,
            health: None,
            stretch: AtomicU32::new(1),
            counters,
        })
    }

    pub fn problem(&self) -> &Arc<Problem> {
        &self.problem
    }

    /// As the problem describes itself: what runs before a case may lie outside what was narrowed.
    pub(super) fn described(&self) -> &Arc<Problem> {
        &self.described
    }

    /// Replaces what the problem says of itself: a program may let cases place its operands.
    pub fn describe(&mut self, problem: Arc<Problem>) {
        self.described = problem;
    }

    /// Replaces the problem by a narrowed one: same parameters, smaller domains.
    pub fn narrow(&mut self, problem: Arc<Problem>) {
        self.problem = problem;
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Changes the cap on the work of one case.
    pub fn set_work(&mut self, work: u64) {
        self.settings.caps.work = work;
    }

    /// Time that a case has to answer.
    pub fn limit(&self) -> Duration {
        self.settings.case_timeout.saturating_mul(self.stretch.load(Ordering::Relaxed))
    }

    /// Gives every later case [`LONG_LOOK`] times as long: one was slow, and others of its size may be.
    pub fn raise_limit(&self) {
        let stretch = self.stretch.load(Ordering::Relaxed).saturating_mul(LONG_LOOK);
        self.stretch.store(stretch, Ordering::Relaxed);
    }

    /// What the time limit of a case has grown to, in multiples of the one set.
    pub fn stretch(&self) -> u32 {
        self.stretch.load(Ordering::Relaxed)
    }

    /// Sets what the time limit of a case had grown to.
    pub fn set_stretch(&self, stretch: u32) {
        self.stretch.store(stretch.max(1), Ordering::Relaxed);
    }

    pub fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    pub fn spec(&self) -> &WorkerSpec {
        &self.spec
    }

    /// What the first worker said.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// A worker that has run nothing: a spare if one is started.
    ///
    /// # Errors
    /// Where none can be started, or the run is over.
    pub fn take(&self) -> Result<Seat, ProbeError> {
        self.check()?;
        if self.side_by_side().is_some() {
            self.clear_idle_seats();
        }
        let worker = self.ready_one()?;
        // Refill now: the next one starts while this one works.
        let spares = if self.side_by_side().is_some() { 0 } else { self.settings.jobs };
        while lock(&self.spares).len() < spares {
            let next = self.launch()?;
            lock(&self.spares).push_back(next);
        }
        Ok(Seat::new(worker))
    }

    /// Processes that may run at one time, where the target limits them.
    fn side_by_side(&self) -> Option<usize> {
        self.spec.foreign.as_ref().and_then(|f| f.manifest.workers)
    }

    /// Ends the processes of seats that nobody plays on.
    fn clear_idle_seats(&self) {
        for seat in &self.seats {
            if let Ok(mut seat) = seat.try_lock() {
                *seat = None;
            }
        }
    }

    /// A worker that is ready; one that another process killed while it started is replaced.
    fn ready_one(&self) -> Result<Process, ProbeError> {
        let mut died = 0;
        loop {
            let starting = match self.living_spare() {
                Some(spare) => spare,
                None => self.launch()?,
            };
            match starting.ready(&self.spec, &self.interrupt) {
                Err(WorkerError::Died(_)) if died < STARTS => died += 1,
                other => return Ok(other?),
            }
        }
    }

    /// A spare that still runs, if there is one.
    fn living_spare(&self) -> Option<StartingProcess> {
        let mut spares = lock(&self.spares);
        std::iter::from_fn(|| spares.pop_front()).find_map(|mut s| s.is_alive().then_some(s))
    }

    fn launch(&self) -> Result<StartingProcess, WorkerError> {
        self.counters.processes.fetch_add(1, Ordering::Relaxed);
        StartingProcess::start(&self.spawner, &self.spec, false)
    }

    /// Whether the run may go on.
    ///
    /// # Errors
    /// Where it was interrupted or its time is used up.
    pub fn check(&self) -> Result<(), ProbeError> {
        if self.interrupt.is_set() {
            return Err(ProbeError::Interrupted);
        }
        match self.settings.until {
            Some(t) if Instant::now() >= t => Err(ProbeError::OutOfTime),
            _ => Ok(()),
        }
    }

    /// Runs jobs side by side; results in the order of the jobs. `on` hears of each job as it ends.
    ///
    /// The first error ends the run of the others; what had ended before is returned with it, so that jobs may have fewer
    /// results than cases.
    pub fn run(&self, jobs: &[Job], on: &(dyn Fn(&[CaseResult]) + Sync)) -> (Vec<Vec<CaseResult>>, Option<ProbeError>) {
        let next = AtomicUsize::new(0);
        let stop = AtomicBool::new(false);
        let results: Vec<Mutex<Vec<CaseResult>>> = jobs.iter().map(|_| Mutex::new(vec![])).collect();
        let error = Mutex::new(None);
        let play = |seat: &Mutex<Option<Seat>>| {
            let mut seat = lock(seat);
            while !stop.load(Ordering::Relaxed) {
                let i = next.fetch_add(1, Ordering::Relaxed);
                let Some(job) = jobs.get(i) else { break };
                recycle(&mut seat);
                let mut ended = vec![];
                if let Err(e) = self.check().and_then(|()| job::run_into(self, &mut seat, job, &mut ended)) {
                    *seat = None;
                    stop.store(true, Ordering::Relaxed);
                    lock(&error).get_or_insert(e);
                }
                on(&ended);
                *lock(&results[i]) = ended;
            }
        };
        std::thread::scope(|scope| {
            let (first, others) = self.seats.split_at(1);
            for seat in others {
                let play = &play;
                // Where the system grants no further thread, fewer seats play.
                if std::thread::Builder::new().spawn_scoped(scope, move || play(seat)).is_err() {
                    break;
                }
            }
            first.iter().for_each(play);
        });
        let results = results.into_iter().map(|r| r.into_inner().unwrap_or_else(PoisonError::into_inner)).collect();
        (results, error.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs one job on the first seat's worker.
    ///
    /// # Errors
    /// As [`job::run`].
    pub fn run_warm(&self, job: &Job) -> Result<Vec<CaseResult>, ProbeError> {
        self.check()?;
        let mut seat = lock(&self.seats[0]);
        recycle(&mut seat);
        let outcome = job::run(self, &mut seat, job);
        if outcome.is_err() {
            *seat = None;
        }
        outcome
    }

    /// Runs one job on a worker that has run nothing. If it survives, it takes the first seat.
    ///
    /// # Errors
    /// As [`job::run`].
    pub fn run_fresh(&self, job: &Job) -> Result<Vec<CaseResult>, ProbeError> {
        let mut fresh = Some(self.take()?);
        let outcome = job::run(self, &mut fresh, job)?;
        if fresh.is_some() {
            *lock(&self.seats[0]) = fresh;
        }
        Ok(outcome)
    }

    /// Runs cases one after another in one fresh process, then the one case of `job`: its result, or `None` where one of
    /// the others ended the process first.
    ///
    /// # Errors
    /// As [`job::run`].
    pub fn run_after(&self, before: &[Case], job: &Job) -> Result<Option<CaseResult>, ProbeError> {
        let mut seat = Some(self.take()?);
        for (i, earlier) in before.iter().enumerate() {
            job::run(self, &mut seat, &Job::single(i as u64, earlier, job.seed))?;
            if seat.is_none() {
                return Ok(None);
            }
        }
        // One process never sees a number twice.
        let mut last = job.clone();
        last.layout = before.len() as u64;
        last.cases.iter_mut().for_each(|(id, _)| *id = before.len() as u64);
        Ok(job::run(self, &mut seat, &last)?.into_iter().next())
    }

    /// Runs a case up to `times` times in one fresh process, after others; what each run came to. It ends with the run that
    /// ends the process; `None` where one of the others did.
    ///
    /// # Errors
    /// As [`job::run`].
    pub fn run_repeated(
        &self,
        before: &[Case],
        case: &Case,
        seed: u64,
        times: u32,
    ) -> Result<Option<Vec<CaseResult>>, ProbeError> {
        let mut seat = Some(self.take()?);
        let mut results = vec![];
        for (i, now) in before.iter().chain(std::iter::repeat_n(case, times as usize)).enumerate() {
            let result = job::run(self, &mut seat, &Job::single(i as u64, now, seed))?;
            if i >= before.len() {
                results.extend(result);
            } else if seat.is_none() {
                return Ok(None);
            }
            if seat.is_none() {
                break;
            }
        }
        Ok(Some(results))
    }

    /// Learns which case shows that the device is healthy; a sentence where none can.
    ///
    /// # Errors
    /// Where no verdict can be had.
    pub fn learn_health(&mut self) -> Result<Option<String>, ProbeError> {
        match Health::learn(&self.problem, &mut |case| Ok(self.probe(case, 0, true)?.verdict))? {
            Learned::Passes(health) => {
                self.health = Some(health);
                Ok(None)
            }
            Learned::Nothing(why) => Ok(Some(why)),
        }
    }

    /// Whether the device still passes what it passed at the start, in a fresh process.
    ///
    /// # Errors
    /// [`ProbeError::Unhealthy`] where it does not, three times in a row; else where no verdict can be had any more.
    pub fn check_health(&self) -> Result<(), ProbeError> {
        match &self.health {
            Some(health) => health.check(&mut |case| Ok(self.probe(case, 0, true)?.verdict)),
            None => Ok(()),
        }
    }

    /// The knobs that a case has.
    ///
    /// # Errors
    /// Where the worker does not answer.
    pub fn knobs(&self, params: &Assignment) -> Result<BTreeMap<String, Vec<Value>>, ProbeError> {
        self.knobs_with(params, &Knobs::new())
    }

    /// As [`knobs`](Self::knobs), and which of these values it takes besides.
    fn knobs_with(&self, params: &Assignment, in_mind: &Knobs) -> Result<BTreeMap<String, Vec<Value>>, ProbeError> {
        let mut seat = lock(&self.seats[0]);
        if seat.is_none() {
            *seat = Some(self.take()?);
        }
        let Some(here) = seat.as_mut() else { return Ok(BTreeMap::new()) };
        let shown = self.problem.show(params).into_iter().collect();
        Ok(here.worker.knobs(shown, in_mind, self.limit(), &self.interrupt)?)
    }

    /// What of a case's knobs the target does not have, or a value that it does not take; such a case would silently be
    /// another one.
    ///
    /// # Errors
    /// Where the worker does not answer.
    pub fn lacks(&self, case: &Case) -> Result<Option<String>, ProbeError> {
        if case.knobs.is_empty() {
            return Ok(None);
        }
        let known = self.knobs_with(&case.params, &case.knobs)?;
        for (name, value) in &case.knobs {
            let Some(values) = known.get(name) else {
                let names: Vec<&str> = known.keys().map(String::as_str).collect();
                let has =
                    if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) };
                return Ok(Some(format!("{} has no knob '{name}' for this case; {has}", self.spec.target)));
            };
            if !values.contains(value) {
                let values: Vec<String> = values.iter().map(Value::to_string).collect();
                return Ok(Some(format!("knob {name} = {value} is not one of {}", values.join(", "))));
            }
        }
        Ok(None)
    }

    pub(super) fn count(&self, verdict: &Verdict, took: Duration, remapped: u32) {
        let c = &self.counters;
        c.remapped.fetch_add(u64::from(remapped), Ordering::Relaxed);
        let nanos = took.as_nanos() as u64;
        if verdict.is_pass() {
            c.passes.fetch_add(1, Ordering::Relaxed);
            c.pass_nanos.fetch_add(nanos, Ordering::Relaxed);
        } else if verdict.ends_worker() && !matches!(verdict, Verdict::Hang { .. }) {
            c.bad.fetch_add(1, Ordering::Relaxed);
            c.bad_nanos.fetch_add(nanos, Ordering::Relaxed);
        } else if verdict.is_bad() {
            c.bad.fetch_add(1, Ordering::Relaxed);
        } else {
            c.other.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Mean cost of a failure of this family over mean cost of a pass, as measured so far; 10 before both were seen; at
    /// least 1. A hang costs its deadline. `pass`: what a pass costs just now.
    pub fn cost_ratio(&self, family: Family, pass: Option<Duration>) -> f64 {
        let c = &self.counters;
        let mean = |nanos: &AtomicU64, n: &AtomicU64| match n.load(Ordering::Relaxed) {
            0 => None,
            n => Some(nanos.load(Ordering::Relaxed) as f64 / n as f64),
        };
        let bad = match family {
            Family::Hang => Some(self.limit().as_nanos() as f64),
            Family::Memory | Family::Crash => mean(&c.bad_nanos, &c.bad),
        };
        let pass = pass.map(|p| p.as_nanos() as f64).or_else(|| mean(&c.pass_nanos, &c.passes));
        match (pass, bad) {
            (Some(pass), Some(bad)) if pass > 0.0 => (bad / pass).max(1.0),
            _ => 10.0,
        }
    }

    /// Runs a single case with its own pages.
    ///
    /// # Errors
    /// As [`job::run`].
    pub fn probe(&self, case: &Case, seed: u64, fresh: bool) -> Result<CaseResult, ProbeError> {
        let job = Job::single(0, case, seed);
        let results = if fresh { self.run_fresh(&job)? } else { self.run_warm(&job)? };
        only(results)
    }

    /// As a fresh [`Pool::probe`], with [`LONG_LOOK`] times the time limit: silence is told from slowness.
    ///
    /// # Errors
    /// As [`job::run`].
    pub fn long_look(&self, case: &Case, seed: u64) -> Result<CaseResult, ProbeError> {
        only(self.run_fresh(&Job { patience: LONG_LOOK, ..Job::single(0, case, seed) })?)
    }
}

fn only(results: Vec<CaseResult>) -> Result<CaseResult, ProbeError> {
    results.into_iter().next().ok_or_else(|| ProbeError::Setup("a worker gave no verdict".to_owned()))
}

/// Leaves the seat of a worn worker empty: the next job takes a spare.
fn recycle(seat: &mut Option<Seat>) {
    if seat.as_ref().is_some_and(Seat::is_worn) {
        *seat = None;
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
