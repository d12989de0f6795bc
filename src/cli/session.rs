//! What every command that runs cases needs: target, problem, pins, pool.

use super::args::{Exec, Library, Pins, Profile};
use super::exit::Failure;
use crate::device::Device;
use crate::exec::foreign::Foreign;
use crate::exec::interrupt::Interrupt;
use crate::exec::pool::{Pool, Settings};
use crate::exec::protocol::ArenaSpan;
use crate::exec::worker::WorkerSpec;
use crate::exec::{ProbeError, selftest};
use crate::manifest::Manifest;
use crate::problem::{Builtin, Case, Knobs, Narrow, Placement, Problem, Value};
use crate::report::event::Event;
use crate::report::stdout::aside;
use crate::target::cuda::kernel;
use crate::target::{Caps, TargetSpec, cblas, load, sim};
use crate::worker::Layout;
use crate::worker::layout::{MIN_MOAT, TINY_MOAT};
use crate::worker::oracle::BREAK_VARIABLE;
use bytesize::ByteSize;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Work of one case of a model, some 10 ms; above it only some work-groups run, which is all that offsets need.
pub const MODEL_WORK: u64 = 1 << 22;
/// Work of one case in a hunt of a manifest: most elements of all its operands, times two. Programs in a scripting language
/// move that many in a second or so.
const MANIFEST_WORK: u64 = 1 << 24;
const CASE_TIMEOUT: Duration = Duration::from_secs(10);
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Addresses that a worker asks for, bytes.
const ARENA_BYTES: u64 = crate::device::cpu::CpuArena::WANTED_BYTES;

/// A pool that is ready for a problem under limits and pins.
#[derive(Debug)]
pub struct Session {
    pub pool: Pool,
    /// The problem as it describes itself, without limits and pins.
    pub described: Arc<Problem>,
    pub target: TargetSpec,
    pub pins: Vec<Narrow>,
    pub interrupt: Interrupt,
    pub started: Instant,
}

/// What is tested: a problem, and where its targets come from.
#[derive(Debug, Clone)]
pub enum Subject {
    Builtin(Builtin),
    /// A problem with its one target.
    Manifest(Arc<Manifest>),
}

impl Subject {
    fn problem(&self) -> Arc<Problem> {
        match self {
            Subject::Builtin(b) => b.problem(),
            Subject::Manifest(m) => Arc::clone(&m.problem),
        }
    }

    pub fn manifest(&self) -> Option<&Arc<Manifest>> {
        match self {
            Subject::Builtin(_) => None,
            Subject::Manifest(m) => Some(m),
        }
    }

    /// Largest work of a case in a hunt, on a library and on a model.
    pub fn hunt_work(&self) -> (u64, u64) {
        match self {
            Subject::Builtin(b) => b.hunt_work,
            Subject::Manifest(_) => (MANIFEST_WORK, MANIFEST_WORK),
        }
    }

    /// The target that the user means.
    fn target(&self, request: &Request<'_>) -> Result<TargetSpec, Failure> {
        let library = request.library;
        match self {
            Subject::Builtin(b) => {
                let target = pick_target(b.name, request.target, library)?;
                load::check(&target, &b.problem(), library.int_width).map_err(Failure::usage)?;
                Ok(target)
            }
            Subject::Manifest(m)
                if request.target == "auto" && library.lib.is_none() && library.int_width.is_none() =>
            {
                Ok(m.spec())
            }
            Subject::Manifest(_) => {
                Err(Failure::usage("a manifest names its own program; leave out --target, --lib and --int-width"))
            }
        }
    }
}

/// What a session is for.
#[derive(Debug)]
pub struct Request<'a> {
    pub subject: Subject,
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
        warn_of_a_broken_oracle();
        let mut target = request.subject.target(&request)?;
        let problem = request.subject.problem();
        let pins = pins(request.pins, &request.also);
        // Pins that do not fit the problem are the user's to change, whatever the target is.
        problem.narrowed(&pins).map_err(Failure::usage)?;

        let spec = worker_spec(&request, &problem, &target)?;
        let settings = Settings {
            jobs: jobs(request.exec, request.subject.manifest().and_then(|m| m.workers), load::device(&spec.target)),
            caps: Caps { work: request.exec.max_work.unwrap_or(Caps::default().work), memory: request.exec.max_memory },
            case_timeout: spec.case_timeout,
            until: request.time.map(|t| started + t),
        };
        let mut pool =
            Pool::start(spec, Arc::clone(&problem), settings, interrupt.clone()).map_err(ProbeError::from)?;
        if let Some(core) = pool.hello().description.core.clone() {
            // A finding made under OPENBLAS_CORETYPE and the like must be found again without it.
            target.settings.insert("core".to_owned(), core);
        }
        if request.exec.max_work.is_none() {
            pool.set_work(if pool.hello().description.model { request.work.1 } else { request.work.0 });
        }
        let described = match request.subject.manifest() {
            Some(m) if pool.hello().can.iter().any(|c| c == "place") => Arc::new(m.problem_placed_by_case()),
            _ => problem,
        };
        let mut limits = pool.hello().description.limits.clone();
        limits.extend(request.subject.manifest().and_then(|m| m.memory_limit(request.exec.max_memory)));
        let mut narrowed = restricted(&described, &limits, &pins).map_err(Failure::usage)?;
        if request.profile == Profile::Packed {
            narrowed = narrowed.narrowed(&narrowed.packed()).map_err(Failure::usage)?;
        }
        pool.describe(Arc::clone(&described));
        pool.narrow(Arc::new(narrowed));
        Ok(Session { pool, described, target, pins, interrupt, started })
    }

    /// A session that shows whether a device of this machine can run anything: on the host a model without a defect, on a GPU the
    /// self-test.
    ///
    /// # Errors
    /// Setup, where no worker can be started.
    pub fn plain(exec: &Exec, device: Device) -> Result<Session, Failure> {
        let target = match device {
            Device::Cpu => "sim:clean".to_owned(),
            Device::Cuda => format!("selftest,{}={}", load::DEVICE_SETTING, device.name()),
        };
        Session::open(Request {
            subject: Subject::Builtin(builtin("gemm")?),
            target: &target,
            library: &Library { lib: None, int_width: None },
            pins: &Pins { set: vec![], range: vec![], dtype: None },
            also: vec![],
            profile: Profile::Strided,
            exec,
            time: None,
            work: (Caps::default().work, Caps::default().work),
        })
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
            not_proven: report.not_proven,
            seconds: started.elapsed().as_secs_f64(),
        })
    }

    /// Learns the health probe. What limits this run, in sentences.
    ///
    /// # Errors
    /// Where no verdict can be had.
    pub fn learn(&mut self) -> Result<Vec<Event>, Failure> {
        let health = self.pool.learn_health()?;
        let small = small_moats(self.pool.problem(), self.pool.hello().arena);
        Ok(small.into_iter().chain(health).map(|text| Event::Warning { text }).collect())
    }

    pub fn problem(&self) -> &Arc<Problem> {
        self.pool.problem()
    }

    /// Where cases run.
    pub fn device(&self) -> &'static str {
        if self.pool.spec().foreign.is_some() { "that of the program" } else { load::device(&self.target).name() }
    }
}

/// What small moats mean, where the system grants so few addresses that there are any.
pub fn small_moats(problem: &Arc<Problem>, arena: ArenaSpan) -> Option<String> {
    if arena.len == 0 {
        // A foreign program places its operands itself.
        return None;
    }
    let params = problem.plainest()?;
    let case = Case { params, knobs: Knobs::new(), placement: Placement::END };
    let instance = problem.instance(case).ok()?;
    let moat = Layout::plan(&arena, &[&instance]).map_or(TINY_MOAT, |l| l.moat_bytes());
    (moat < MIN_MOAT).then(|| {
        format!(
            "only {} of addresses could be reserved, so operands have moats of {} at most instead of {}, and an offset that \
             wraps may land on another operand; raise the limit that `ulimit -v` shows",
            ByteSize::b(arena.len),
            ByteSize::b(moat),
            ByteSize::b(MIN_MOAT)
        )
    })
}

/// A run whose oracles are switched off must not pass for one that proves something.
fn warn_of_a_broken_oracle() {
    if let Some(word) = std::env::var_os(BREAK_VARIABLE) {
        let word = word.to_string_lossy();
        aside!(
            "warning: {BREAK_VARIABLE}={word} switches an oracle off to test the self-test; this run proves nothing"
        );
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

/// The target that a word means; `auto` is a GPU target whose device opened (there is none yet), else the default model, else a
/// library.
///
/// # Errors
/// Usage, where the word is no target.
pub fn pick_target(problem: &str, word: &str, library: &Library) -> Result<TargetSpec, Failure> {
    let word = match (word, &library.lib) {
        ("auto", Some(_)) => "cblas".to_owned(),
        ("auto", None) => match sim::default_spec(problem) {
            Some(model) => return Ok(model),
            // What no model has, a library may have.
            None => "cblas".to_owned(),
        },
        (word, _) => word.to_owned(),
    };
    let spec: TargetSpec = word.parse().map_err(Failure::usage)?;
    if spec.family == kernel::FAMILY {
        if library.lib.is_some() {
            return Err(Failure::usage("a kernel is compiled from its file; leave out --lib"));
        }
        return kernel::named(&spec).map_err(Failure::usage);
    }
    match &library.lib {
        // The report and a finding name the file that was tested.
        None if spec.family == "cblas" && spec.library.is_none() => {
            let found = cblas::find().into_iter().next();
            let path = found.ok_or_else(|| Failure::setup("no CBLAS was found; name its file with --lib"))?;
            Ok(spec.with_library(Some(path.display().to_string())))
        }
        None => Ok(spec),
        Some(lib) if lib.is_empty() => Err(Failure::usage("--lib names no file; write --lib PATH")),
        Some(lib) if spec.library.as_ref().is_some_and(|named| named != lib) => {
            let named = spec.library.unwrap_or_default();
            Err(Failure::usage(format!("--target names {named} and --lib {lib}; leave out one of them")))
        }
        Some(_) if spec.family == "sim" => {
            Err(Failure::usage("--lib names a library, but a sim model loads none; add --target cblas"))
        }
        Some(lib) => {
            is_file(lib)?;
            Ok(spec.with_library(Some(lib.clone())))
        }
    }
}

/// What --lib names has to be there.
///
/// # Errors
/// Usage, where it is no file.
pub fn is_file(lib: &str) -> Result<(), Failure> {
    if Path::new(lib).is_file() {
        return Ok(());
    }
    Err(Failure::usage(format!("--lib {lib} is no file; name the file of a library")))
}

fn worker_spec(request: &Request<'_>, problem: &Problem, target: &TargetSpec) -> Result<WorkerSpec, Failure> {
    let (exec, manifest) = (request.exec, request.subject.manifest());
    Ok(WorkerSpec {
        program: std::env::current_exe().map_err(Failure::setup)?,
        problem: problem.name.clone(),
        target: target.clone(),
        int_width: request.library.int_width,
        arena_bytes: ARENA_BYTES,
        // A GPU's driver maps far more than it uses.
        data_limit: (manifest.is_none() && load::device(target) == Device::Cpu)
            .then(|| data_limit(exec.max_memory, target)),
        start_timeout: exec.start_timeout.or(manifest.map(|m| m.start_timeout)).unwrap_or(START_TIMEOUT),
        case_timeout: exec.case_timeout.or(manifest.map(|m| m.case_timeout)).unwrap_or(CASE_TIMEOUT),
        wrapper: vec![],
        env: vec![],
        foreign: manifest.map(|m| Foreign::new(Arc::clone(m), exec.strict_gaps)),
    })
}

/// Workers side by side; never more than the target allows.
fn jobs(exec: &Exec, most: Option<usize>, device: Device) -> usize {
    // The driver maps for one process at a time.
    let most_jobs = if device == Device::Cuda { 4 } else { 8 };
    let wanted = match exec.jobs {
        Some(n) => usize::from(n),
        None => std::thread::available_parallelism().map_or(1, |n| n.get().min(most_jobs)),
    };
    wanted.min(most.unwrap_or(usize::MAX))
}

/// Room for the operands, their copies for comparison, the library itself, and the buffers of its threads (OpenBLAS takes
/// 128 MiB for each, and waits for ever where it cannot have them).
fn data_limit(max_memory: u64, target: &TargetSpec) -> u64 {
    let threads = target.settings.get("threads").and_then(|n| n.parse::<u64>().ok()).unwrap_or(1);
    max_memory.saturating_mul(3).saturating_add(2 << 30).saturating_add(threads.saturating_mul(256 << 20))
}
