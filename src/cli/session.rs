//! What every command that runs cases needs: target, problem, pins, pool.

use super::args::{Exec, Library, Pins, Profile};
use super::exit::Failure;
use crate::exec::interrupt::Interrupt;
use crate::exec::pool::{Pool, Settings};
use crate::exec::worker::WorkerSpec;
use crate::exec::{ProbeError, selftest};
use crate::problem::{Builtin, Narrow, Problem, Value};
use crate::report::event::Event;
use crate::target::{Caps, TargetSpec, sim};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Work of one case of a model, some 10 ms; above it only some work-groups run, which is all that offsets need.
pub const MODEL_WORK: u64 = 1 << 22;
/// Addresses that a worker asks for, bytes.
const ARENA_BYTES: u64 = crate::device::cpu::CpuArena::WANTED_BYTES;

/// A pool that is ready for a problem under limits and pins.
#[derive(Debug)]
pub struct Session {
    pub pool: Pool,
    pub builtin: Builtin,
    pub target: TargetSpec,
    pub pins: Vec<Narrow>,
    pub interrupt: Interrupt,
    pub started: Instant,
}

/// What a session is for.
#[derive(Debug)]
pub struct Request<'a> {
    pub problem: &'a str,
    /// As typed; `auto` picks a target.
    pub target: &'a str,
    pub library: &'a Library,
    pub pins: &'a Pins,
    /// Further restrictions, said by the command itself.
    pub also: Vec<Narrow>,
    pub profile: Profile,
    pub exec: &'a Exec,
    pub time: Option<Duration>,
    /// Default of --max-work, for a library and for a model.
    pub work: (u64, u64),
}

impl Session {
    /// Loads the target in a first worker, narrows the problem, and has the pool ready.
    ///
    /// # Errors
    /// One sentence and its exit status.
    pub fn open(request: Request<'_>) -> Result<Session, Failure> {
        let started = Instant::now();
        let interrupt = Interrupt::install().map_err(Failure::setup)?;
        let builtin = builtin(request.problem)?;
        let target = pick_target(builtin.name, request.target, request.library)?;
        let problem = builtin.problem();
        let pins = pins(request.pins, &request.also);
        // Pins that do not fit the problem are the user's to change, whatever the target is.
        problem.narrowed(&pins).map_err(Failure::usage)?;

        let settings = Settings {
            jobs: jobs(request.exec),
            caps: Caps { work: request.exec.max_work.unwrap_or(Caps::default().work), memory: request.exec.max_memory },
            case_timeout: request.exec.case_timeout,
            until: request.time.map(|t| started + t),
        };
        let spec = WorkerSpec {
            program: std::env::current_exe().map_err(Failure::setup)?,
            problem: builtin.name.to_owned(),
            target: target.clone(),
            int_width: request.library.int_width,
            arena_bytes: ARENA_BYTES,
            data_limit: Some(data_limit(request.exec.max_memory)),
            start_timeout: request.exec.start_timeout,
            case_timeout: request.exec.case_timeout,
            env: vec![],
        };
        let mut pool = Pool::start(spec, Arc::clone(&problem), settings, interrupt.clone())
            .map_err(|e| Failure::from(ProbeError::Setup(e.to_string())))?;
        if request.exec.max_work.is_none() {
            pool.set_work(if pool.hello().description.model { request.work.1 } else { request.work.0 });
        }
        let limits = pool.hello().description.limits.clone();
        let mut narrowed = restricted(&problem, &limits, &pins).map_err(Failure::usage)?;
        if request.profile == Profile::Packed {
            narrowed = narrowed.narrowed(&narrowed.packed()).map_err(Failure::usage)?;
        }
        pool.narrow(Arc::new(narrowed));
        Ok(Session { pool, builtin, target, pins, interrupt, started })
    }

    /// Proves the oracles through the same path as real cases.
    ///
    /// # Errors
    /// Setup, naming the oracle that failed.
    pub fn self_test(&self) -> Result<Event, Failure> {
        let started = Instant::now();
        let report = selftest::run(self.pool.spec(), self.pool.settings(), &self.interrupt)?;
        Ok(Event::SelfTest {
            proven: report.proven,
            not_detectable: report.not_detectable,
            seconds: started.elapsed().as_secs_f64(),
        })
    }

    pub fn problem(&self) -> &Arc<Problem> {
        self.pool.problem()
    }
}

/// The built-in problem of that name.
///
/// # Errors
/// Usage, naming those there are.
pub fn builtin(name: &str) -> Result<Builtin, Failure> {
    Builtin::find(name).ok_or_else(|| {
        let known: Vec<&str> = crate::problem::BUILTINS.iter().map(|b| b.name).collect();
        Failure::usage(format!("there is no problem '{name}'; there are {}", known.join(", ")))
    })
}

/// Limits of the target first, then what the user pinned: a pin outside the limits names the target.
fn restricted(problem: &Problem, limits: &[Narrow], pins: &[Narrow]) -> Result<Problem, String> {
    let limited = problem.narrowed(limits).map_err(|e| format!("the target's limits do not fit the problem: {e}"))?;
    limited.narrowed(pins).map_err(|e| format!("{e} (within what the target supports)"))
}

fn pins(pins: &Pins, also: &[Narrow]) -> Vec<Narrow> {
    let mut all: Vec<Narrow> = also.to_vec();
    if let Some(dtype) = &pins.dtype {
        all.push(Narrow::Set { param: "dtype".to_owned(), value: Value::Text(dtype.clone()) });
    }
    all.extend(pins.range.iter().cloned());
    all.extend(pins.set.iter().cloned());
    all
}

/// The target that a word means; `auto` is a GPU target whose device opened (there is none yet), else the default model.
///
/// # Errors
/// Usage, where the word is no target.
pub fn pick_target(problem: &str, word: &str, library: &Library) -> Result<TargetSpec, Failure> {
    let word = match (word, &library.lib) {
        ("auto", Some(_)) => "cblas".to_owned(),
        ("auto", None) => {
            return sim::default_spec(problem)
                .ok_or_else(|| Failure::usage(format!("no target has the problem {problem}")));
        }
        (word, _) => word.to_owned(),
    };
    let spec: TargetSpec = word.parse().map_err(Failure::usage)?;
    match &library.lib {
        None => Ok(spec),
        Some(_) if spec.family == "sim" => Err(Failure::usage("--lib names a library, but a sim model loads none")),
        Some(lib) => Ok(spec.with_library(Some(lib.clone()))),
    }
}

fn jobs(exec: &Exec) -> usize {
    match exec.jobs {
        Some(n) => usize::from(n),
        None => std::thread::available_parallelism().map_or(1, |n| n.get().min(8)),
    }
}

/// Room for the operands, their copies for comparison, and the library itself.
fn data_limit(max_memory: u64) -> u64 {
    max_memory.saturating_mul(3).saturating_add(2 << 30)
}
