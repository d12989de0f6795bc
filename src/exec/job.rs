//! A layout's worth of cases, and running it to the end over as many workers as it takes.

use super::death;
use super::foreign::lines::Word;
use super::pool::Pool;
use super::probe::ProbeError;
use super::process::Process;
use super::protocol::{ArenaSpan, LayoutLine, WireCase};
use super::verdict::Verdict;
use super::worker::{Death, Heard};
use crate::problem::{Case, Instance, Knobs};
use crate::worker::layout::Layout;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Cases that share mapped pages. Ids are unique in a run.
#[derive(Debug, Clone)]
pub struct Job {
    pub layout: u64,
    pub cases: Vec<(u64, Case)>,
    /// Seed of the operand contents.
    pub seed: u64,
    /// Gap pages that are mapped besides, for every case: offsets from the start of the arena.
    pub also_map: Vec<u64>,
    /// Time limit of a case, in multiples of the pool's.
    pub patience: u32,
    /// Launches of every case, one after another in one process; at least 1.
    pub repeat: u32,
}

impl Job {
    /// A job of one case: nothing else shares its pages.
    pub fn single(id: u64, case: &Case, seed: u64) -> Job {
        Job { layout: id, cases: vec![(id, case.clone())], seed, also_map: vec![], patience: 1, repeat: 1 }
    }
}

/// What one case of a job came to.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseResult {
    pub id: u64,
    pub verdict: Verdict,
    /// Where the arena of the worker lay that ran it: addresses in the verdict are relative to that.
    pub arena: ArenaSpan,
    pub kernel: Option<String>,
    pub resolved: Knobs,
    pub remapped: u32,
    pub took: Duration,
    /// For a bad verdict: what this worker had run before.
    pub history: History,
}

/// What a worker ran, oldest first: the lines that are kept, each with the launches of it that came about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    pub lines: Vec<Arc<LayoutLine>>,
    /// It ran more than these, longer ago.
    pub is_cut: bool,
}

impl History {
    fn push(&mut self, line: Arc<LayoutLine>) {
        if self.lines.len() == HISTORY_LINES {
            self.lines.remove(0);
            self.is_cut = true;
        }
        self.lines.push(line);
    }
}

/// Lines of a worker that are kept for a replay of its history.
pub const HISTORY_LINES: usize = 32;

/// Workers that must be killed in one case, one after another, before the case is blamed.
const KILLS: u32 = 3;

/// Workers, beside the spares, that must end without announcing a case, one after another, before the run is given up.
const LOST: usize = 3;

/// Page ranges mapped or unmapped after which a worker is replaced by a fresh one. The kernel keeps the page tables of
/// ranges far apart when they are unmapped, up to 8 KiB a range: 512 MiB at worst (docs/benchmarks.md).
const RECYCLE_AFTER: u64 = 1 << 17;

/// A worker with what it has run.
#[derive(Debug)]
pub struct Seat {
    pub worker: Process,
    history: History,
    /// Page ranges that it mapped or unmapped.
    remapped: u64,
}

impl Seat {
    /// A worker that has run nothing.
    pub fn new(worker: Process) -> Seat {
        Seat { worker, history: History::default(), remapped: 0 }
    }

    /// Whether a fresh worker should take its place before the next job.
    pub fn is_worn(&self) -> bool {
        self.remapped >= RECYCLE_AFTER
    }

    /// What the worker ran before the launch that is `left` first of a line, in that line, too.
    fn history(&self, line: &LayoutLine, left: &[u64]) -> History {
        let mut history = self.history.clone();
        let run = line.run[..line.run.len().saturating_sub(left.len())].to_vec();
        if !run.is_empty() {
            history.push(Arc::new(LayoutLine { run, ..line.clone() }));
        }
        history
    }
}

/// Runs the cases of a job in order; `seat` is taken over and left with a usable worker or none.
///
/// # Errors
/// Where no verdict can be had any more.
pub fn run(pool: &Pool, seat: &mut Option<Seat>, job: &Job) -> Result<Vec<CaseResult>, ProbeError> {
    let mut results = Vec::with_capacity(job.cases.len());
    run_into(pool, seat, job, &mut results)?;
    Ok(results)
}

/// As [`run`], with what the first cases came to in `results` also where a later one ends in an error.
///
/// # Errors
/// Where no verdict can be had any more.
pub fn run_into(
    pool: &Pool,
    seat: &mut Option<Seat>,
    job: &Job,
    results: &mut Vec<CaseResult>,
) -> Result<(), ProbeError> {
    let wire = |(id, case): &(u64, Case)| WireCase {
        also_map: job.also_map.clone(),
        ..WireCase::new(*id, job.seed, pool.problem(), case)
    };
    let repeat = job.repeat.max(1) as usize;
    let mut left: Vec<u64> = job.cases.iter().flat_map(|c| std::iter::repeat_n(c.0, repeat)).collect();
    let (mut lost, mut killed) = (0, 0);
    while !left.is_empty() {
        if seat.is_none() {
            *seat = Some(pool.take()?);
        }
        let Some(here) = seat.as_mut() else { continue };
        let (layout, caps) = (job.layout, pool.settings().caps);
        let cases = job.cases.iter().map(wire).collect();
        let line = Arc::new(LayoutLine { layout, cases, run: left.clone(), caps });
        let first = left.first().copied();
        let believed = first.filter(|_| killed + 1 >= KILLS);
        let ended = one_line(pool, here, job, &line, believed, &mut left, results)?;
        if left.first().copied() != first {
            (lost, killed) = (0, 0);
        }
        match ended {
            None => here.history.push(line),
            Some(Ended::Culprit) => *seat = None,
            Some(Ended::Outside) => {
                *seat = None;
                killed += 1;
                start_over(&mut left, repeat);
            }
            Some(Ended::Unclaimed(why)) => {
                start_over(&mut left, repeat);
                // Died before it announced anything: not the case's fault, unless it keeps happening.
                *seat = None;
                lost += 1;
                // Spares may all have been stopped or killed at once.
                if lost == LOST + pool.settings().jobs {
                    return Err(ProbeError::Setup(format!("workers end before they announce a case: {why}")));
                }
            }
        }
    }
    Ok(())
}

/// A case whose launches a death cut short gets all of them in the next process.
fn start_over(left: &mut Vec<u64>, repeat: usize) {
    let Some(id) = left.first().copied() else { return };
    left.retain(|other| *other != id);
    left.splice(0..0, std::iter::repeat_n(id, repeat));
}

/// Takes the result of one launch: the first that is no pass is the result of its case.
fn take(results: &mut Vec<CaseResult>, result: CaseResult) {
    match results.last_mut().filter(|last| last.id == result.id) {
        Some(last) if last.verdict.is_pass() => *last = result,
        Some(_) => {}
        None => results.push(result),
    }
}

enum Ended {
    Culprit,
    /// In a case, by a signal that another process may have sent: the case is run again.
    Outside,
    Unclaimed(String),
}

/// Sends what is left of a job and hears its answers. A death that may come from outside is blamed on the case `believed`
/// only.
fn one_line(
    pool: &Pool,
    seat: &mut Seat,
    job: &Job,
    line: &LayoutLine,
    believed: Option<u64>,
    left: &mut Vec<u64>,
    results: &mut Vec<CaseResult>,
) -> Result<Option<Ended>, ProbeError> {
    let patience = pool.limit().saturating_mul(job.patience);
    if seat.worker.send(line, patience).is_err() {
        // It died between two jobs; nothing was in flight.
        return Ok(Some(Ended::Unclaimed("the worker had ended".to_owned())));
    }
    let arena = seat.worker.hello().arena;
    let instance = |id| instance(pool, job, id);
    let mut before = Instant::now();
    while let Some(&id) = left.first() {
        let heard = seat.worker.hear(id, &instance, patience, pool.interrupt())?;
        let took = before.elapsed();
        before = Instant::now();
        match heard {
            Heard::Answer(answer) if answer.fault.is_some() => {
                let told = answer.fault.unwrap_or_default();
                let verdict = place(&seat.worker, pool, job, id, |placed| death::on_device(&told, placed));
                let history = seat.history(line, left);
                pool.count(&verdict, took, answer.remapped);
                let (kernel, resolved, remapped) = (answer.kernel, answer.resolved, answer.remapped);
                take(results, CaseResult { id, verdict, arena, kernel, resolved, remapped, took, history });
                left.retain(|other| *other != id);
                return Ok(Some(Ended::Culprit));
            }
            Heard::Answer(answer) => {
                let verdict = answer.verdict().map_err(ProbeError::Setup)?;
                let history = if verdict.is_bad() { seat.history(line, left) } else { History::default() };
                pool.count(&verdict, took, answer.remapped);
                seat.remapped += u64::from(answer.remapped);
                let (kernel, resolved, remapped) = (answer.kernel, answer.resolved, answer.remapped);
                let ends = verdict.ends_worker();
                take(results, CaseResult { id, verdict, arena, kernel, resolved, remapped, took, history });
                left.remove(0);
                if ends {
                    left.retain(|other| *other != id);
                    return Ok(Some(Ended::Culprit));
                }
            }
            Heard::Said(reply, told) => {
                let Process::Program(program) = &seat.worker else { return Ok(None) };
                let none = || ProbeError::Setup(format!("case {id} has no operands"));
                let verdict =
                    program.verdict(&reply, &told, &instance(id).ok_or_else(none)?).map_err(ProbeError::Setup)?;
                let history = if verdict.is_bad() { seat.history(line, left) } else { History::default() };
                pool.count(&verdict, took, 0);
                let (kernel, resolved) = (reply.kernel, reply.resolved);
                take(results, CaseResult { id, verdict, arena, kernel, resolved, remapped: 0, took, history });
                left.remove(0);
                if reply.word == Word::Fault {
                    left.retain(|other| *other != id);
                    return Ok(Some(Ended::Culprit));
                }
            }
            Heard::Died { culprit: Some(_), death } if believed != Some(id) && death.may_be_from_outside() => {
                return Ok(Some(Ended::Outside));
            }
            Heard::Died { culprit: Some(_), death } => {
                let verdict = blame(pool, &seat.worker, job, id, &death);
                pool.count(&verdict, took, 0);
                let history = seat.history(line, left);
                let (kernel, resolved) = (None, Knobs::new());
                take(results, CaseResult { id, verdict, arena, kernel, resolved, remapped: 0, took, history });
                left.retain(|other| *other != id);
                return Ok(Some(Ended::Culprit));
            }
            Heard::Died { culprit: None, death } => return Ok(Some(Ended::Unclaimed(describe(&death)))),
        }
    }
    Ok(None)
}

fn instance(pool: &Pool, job: &Job, id: u64) -> Option<Instance> {
    let (_, case) = job.cases.iter().find(|c| c.0 == id)?;
    pool.described().instance(case.clone()).ok()
}

/// The verdict on a culprit, its address tied to an operand by planning the same layout again, or by what a foreign program
/// said of it.
fn blame(pool: &Pool, worker: &Process, job: &Job, id: u64, death: &Death) -> Verdict {
    let hello = match worker {
        Process::Worker(worker) => &worker.hello,
        Process::Program(program) => return program.blame(death, instance(pool, job, id).as_ref()),
    };
    place(worker, pool, job, id, |placed| death::verdict(death, hello, placed))
}

/// Makes a verdict with the layout that a case ran in and its place there, planned again.
fn place(
    worker: &Process,
    pool: &Pool,
    job: &Job,
    id: u64,
    verdict: impl FnOnce(Option<(&Layout, usize, &Instance)>) -> Verdict,
) -> Verdict {
    let instances: Vec<Instance> =
        job.cases.iter().filter_map(|(_, c)| pool.described().instance(c.clone()).ok()).collect();
    let refs: Vec<&Instance> = instances.iter().collect();
    let index = job.cases.iter().position(|c| c.0 == id);
    let layout = Layout::plan(&worker.hello().arena, &refs).ok();
    verdict(match (&layout, index) {
        (Some(layout), Some(i)) if refs.len() == job.cases.len() => Some((layout, i, refs[i])),
        _ => None,
    })
}

fn describe(death: &Death) -> String {
    match death {
        Death::Deadline { after } => {
            format!("silent for {} s before it announced a case; raise --start-timeout", after.as_secs_f64())
        }
        Death::Protocol(what) => what.clone(),
        Death::Ended { exit, stderr_tail, .. } => {
            format!("{}: {}", super::worker::describe_exit(*exit), super::worker::last_line(stderr_tail))
        }
    }
}
