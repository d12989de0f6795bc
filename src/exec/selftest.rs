//! Before a campaign: planted failures of known address, through the path that its cases take.
//!
//! The same program, arena, layout planner, worker loop, protocol and blame code; only the target differs.

use super::interrupt::Interrupt;
use super::pool::{Pool, Settings};
use super::probe::ProbeError;
use super::worker::WorkerSpec;
use crate::device::Device;
use crate::evidence::kernel_log::PAGE_BYTES;
use crate::problem::{Builtin, Case, Knobs, Placement, Problem, Value};
use crate::target::load::{self, DEVICE_SETTING};
use crate::target::selftest::{KNOB, Plant, expected};
use crate::target::{Caps, TargetSpec};
use crate::worker::Layout;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Deadline under which the planted hang must end.
pub(super) const SHORT: Duration = Duration::from_millis(300);
/// Least time that a case of the other checks may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// After so long without an end, the deadline does not work.
const LIMIT: Duration = Duration::from_secs(8);

/// What the self-test proved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub proven: Vec<String>,
    pub not_detectable: Vec<String>,
    /// What the run relies on and nothing here can prove.
    pub not_proven: Vec<String>,
}

/// An oracle, the failure that proves it, and the case in which it is planted.
struct Check {
    oracle: &'static str,
    plant: Plant,
    named: &'static [(&'static str, i64)],
    placement: Placement,
}

const TINY: &[(&str, i64)] = &[("m", 4), ("n", 3), ("k", 5)];
/// Rows of B are 4 MiB apart.
const FAR_ROWS: &[(&str, i64)] = &[("m", 4), ("n", 3), ("k", 5), ("ldb", 1 << 20)];
const PADDED: Placement = Placement { pad: 64, ..Placement::END };

const CHECKS: [Check; 8] = [
    Check { oracle: "control", plant: Plant::None, named: TINY, placement: Placement::END },
    Check { oracle: "guard", plant: Plant::Guard, named: TINY, placement: Placement::END },
    Check { oracle: "guard", plant: Plant::GuardBefore, named: TINY, placement: Placement::START },
    Check { oracle: "gap", plant: Plant::Gap, named: FAR_ROWS, placement: Placement::END },
    Check { oracle: "canary", plant: Plant::Canary, named: TINY, placement: PADDED },
    Check { oracle: "sentinel", plant: Plant::Sentinel, named: TINY, placement: Placement::END },
    Check { oracle: "values", plant: Plant::Value, named: TINY, placement: Placement::END },
    Check { oracle: "control", plant: Plant::None, named: FAR_ROWS, placement: Placement::START },
];

/// Proves guard, gap, canary, sentinel, values and deadline, and that a clean case passes.
///
/// # Errors
/// Setup, naming the oracle that did not see what was planted.
pub fn run(spec: &WorkerSpec, settings: &Settings, interrupt: &Interrupt) -> Result<Report, ProbeError> {
    if spec.foreign.is_some() {
        return super::foreign::selftest::run(spec, settings, interrupt);
    }
    let builtin = Builtin::find("gemm").ok_or_else(|| ProbeError::Setup("there is no gemm to test with".to_owned()))?;
    let problem = builtin.problem();
    let device = load::device(&spec.target);
    let target: TargetSpec = match device {
        Device::Cpu => "selftest".to_owned(),
        other => format!("selftest,{DEVICE_SETTING}={}", other.name()),
    }
    .parse()
    .map_err(ProbeError::Setup)?;
    let spec = WorkerSpec { problem: builtin.name.to_owned(), target, int_width: None, ..spec.clone() };
    // Its own caps and patience: what the user allows a case must not decide whether the oracles are trusted.
    let case_timeout = settings.case_timeout.max(PATIENCE);
    let settings = Settings { jobs: 1, until: None, caps: Caps::default(), case_timeout };
    let mut proven: Vec<String> = vec![];
    let pool = start(&spec, &problem, settings.clone(), interrupt.clone())?;
    for check in &CHECKS {
        prove(&pool, check)?;
        if check.oracle != "control" && proven.last().is_none_or(|p| p != check.oracle) {
            proven.push(check.oracle.to_owned());
        }
    }
    drop(pool);
    let settings = Settings { case_timeout: SHORT, ..settings };
    let check = Check { oracle: "deadline", plant: Plant::Hang, named: TINY, placement: Placement::END };
    deadline(interrupt, |own| prove(&start(&spec, &problem, settings, own)?, &check))?;
    proven.push("deadline".to_owned());
    Ok(Report { proven, not_detectable: vec![], not_proven: vec![] })
}

fn start(
    spec: &WorkerSpec,
    problem: &Arc<Problem>,
    settings: Settings,
    interrupt: Interrupt,
) -> Result<Pool, ProbeError> {
    Ok(Pool::start(spec.clone(), Arc::clone(problem), settings, interrupt)?)
}

fn case(problem: &Problem, check: &Check) -> Result<Case, ProbeError> {
    let named = check.named.iter().map(|(n, v)| ((*n).to_owned(), Value::Int(*v))).collect();
    let params = problem.complete(&named).map_err(|e| ProbeError::Setup(e.to_string()))?;
    let knobs = Knobs::from([(KNOB.to_owned(), Value::from(check.plant.word()))]);
    Ok(Case { params, knobs, placement: check.placement })
}

fn prove(pool: &Pool, check: &Check) -> Result<(), ProbeError> {
    let case = case(pool.problem(), check)?;
    let instance = pool.problem().instance(case.clone()).map_err(|e| ProbeError::Setup(e.to_string()))?;
    let result = pool.probe(&case, 1, false)?;
    let layout = Layout::plan(&result.arena, &[&instance]).map_err(|e| ProbeError::Setup(format!("self-test: {e}")))?;
    let wanted = expected(check.plant, &instance, &layout, 0).map_err(ProbeError::Setup)?;
    let verdict = result.verdict;
    let page = (load::device(&pool.spec().target) != Device::Cpu).then_some(PAGE_BYTES);
    if wanted.agrees(&verdict, page) {
        return Ok(());
    }
    Err(ProbeError::Setup(format!(
        "the self-test failed: the {} oracle answered '{}' to the planted failure '{}', where {wanted} was due; results of \
         this machine cannot be trusted",
        check.oracle,
        verdict.word(),
        check.plant.word(),
    )))
}

/// Proves, by `prove`, that a case that never returns is ended, with a watchdog in case the deadline is what does not work.
pub(super) fn deadline(
    interrupt: &Interrupt,
    prove: impl FnOnce(Interrupt) -> Result<(), ProbeError>,
) -> Result<(), ProbeError> {
    let own = Interrupt::default();
    let done = Arc::new(AtomicBool::new(false));
    let watchdog = {
        let (own, user, done) = (own.clone(), interrupt.clone(), Arc::clone(&done));
        let watch = move || {
            let started = Instant::now();
            while !done.load(Ordering::Relaxed) {
                if user.is_set() || started.elapsed() > LIMIT {
                    own.set();
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        let started = std::thread::Builder::new().spawn(watch);
        started.map_err(|e| {
            ProbeError::Setup(format!(
                "failed to start the thread that watches the deadline ({e}); raise the limit on processes (ulimit -u)"
            ))
        })?
    };
    let outcome = prove(own);
    done.store(true, Ordering::Relaxed);
    let _ = watchdog.join();
    match outcome {
        Err(ProbeError::Interrupted) if !interrupt.is_set() => Err(ProbeError::Setup(
            "the self-test failed: the deadline did not end a case that never returns; results of this machine cannot \
             be trusted"
                .to_owned(),
        )),
        other => other,
    }
}
