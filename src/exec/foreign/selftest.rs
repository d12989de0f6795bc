//! The self-test of a run on a foreign program: what the supervisor makes of each way in which such a program can end.
//!
//! Its memory is its own: whether an access that leaves an operand faults there at all, nothing here can prove.

use super::Foreign;
use super::plant::KNOB;
use crate::device::Access;
use crate::exec::interrupt::Interrupt;
use crate::exec::pool::{Pool, Settings};
use crate::exec::probe::ProbeError;
use crate::exec::selftest::{PATIENCE, Report, SHORT, deadline};
use crate::exec::verdict::{Place, Verdict};
use crate::exec::worker::WorkerSpec;
use crate::manifest::Manifest;
use crate::problem::{Case, Knobs, Placement, Value};
use crate::target::Caps;
use std::path::Path;
use std::sync::Arc;

/// Hidden subcommand that turns the program into [`super::plant`].
pub const PLANT_COMMAND: &str = "__program";

/// What is claimed, the plant that proves it, and whether a verdict is the right one.
type Check = (&'static str, &'static str, fn(&Verdict) -> bool);

const CHECKS: [Check; 7] = [
    ("control", "none", Verdict::is_pass),
    ("answers", "wrong", |v| matches!(v, Verdict::Wrong(w) if w.operand == "A" && w.first == [3])),
    ("answers", "fault", first_byte_past_a),
    ("signals", "signal", first_byte_past_a),
    ("device texts", "stderr", first_byte_past_a_of_unknown_access),
    ("exits", "exit", |v| matches!(v, Verdict::Crash { how, .. } if how.starts_with("exit status 7"))),
    ("control", "none", Verdict::is_pass),
];

fn first_byte_past_a(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Fault(f) if f.access == Some(Access::Read)) && is_past_a(verdict)
}

fn first_byte_past_a_of_unknown_access(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Fault(f) if f.access.is_none()) && is_past_a(verdict)
}

fn is_past_a(verdict: &Verdict) -> bool {
    let Verdict::Fault(fault) = verdict else { return false };
    fault.hit.as_ref().is_some_and(|h| h.operand == "A" && h.place == Place::PastEnd && h.from_edge == 0)
}

/// A manifest of the planted program; `n` elements are [`super::plant::OPERAND_BYTES`] at its only value.
const MANIFEST: &str = r#"
name = "self-test"
command = ["shrinkfault"]
[params.n]
min = 4
max = 4
[[operands]]
name = "A"
dtype = "f32"
access = "rw"
dims = [["n", "1"]]
[knobs]
plant = ["none", "wrong", "fault", "signal", "stderr", "exit", "hang"]
"#;

/// Proves that answers, signals, device texts, exits and silence are told apart, and that a clean case passes.
///
/// # Errors
/// Setup, naming what was not seen.
pub fn run(spec: &WorkerSpec, settings: &Settings, interrupt: &Interrupt) -> Result<Report, ProbeError> {
    let mut manifest =
        Manifest::parse(Path::new("self-test"), MANIFEST).map_err(|e| ProbeError::Setup(e.to_string()))?;
    manifest.command = vec![spec.program.display().to_string(), PLANT_COMMAND.to_owned()];
    let problem = Arc::clone(&manifest.problem);
    let spec = WorkerSpec { foreign: Some(Foreign::new(Arc::new(manifest), false)), ..spec.clone() };
    let case_timeout = settings.case_timeout.max(PATIENCE);
    let settings = Settings { jobs: 1, until: None, caps: Caps::default(), case_timeout };
    let start = |settings, interrupt| -> Result<Pool, ProbeError> {
        Ok(Pool::start(spec.clone(), Arc::clone(&problem), settings, interrupt)?)
    };
    let mut proven: Vec<String> = vec![];
    let pool = start(settings.clone(), interrupt.clone())?;
    for check in &CHECKS {
        prove(&pool, check)?;
        if check.0 != "control" && proven.last().is_none_or(|p| p != check.0) {
            proven.push(check.0.to_owned());
        }
    }
    drop(pool);
    let hang: Check = ("deadline", "hang", |v| matches!(v, Verdict::Hang { .. }));
    let short = Settings { case_timeout: SHORT, ..settings };
    deadline(interrupt, |own| prove(&start(short, own)?, &hang))?;
    proven.push("deadline".to_owned());
    let not_proven = vec!["the program's memory is its own".to_owned()];
    Ok(Report { proven, not_detectable: vec![], not_proven })
}

fn prove(pool: &Pool, (claim, plant, is_right): &Check) -> Result<(), ProbeError> {
    let params = pool.problem().plainest().ok_or_else(|| ProbeError::Setup("self-test: no case".to_owned()))?;
    let knobs = Knobs::from([(KNOB.to_owned(), Value::from(*plant))]);
    let verdict = pool.probe(&Case { params, knobs, placement: Placement::END }, 1, false)?.verdict;
    if is_right(&verdict) {
        return Ok(());
    }
    Err(ProbeError::Setup(format!(
        "the self-test failed: the planted failure '{plant}', which proves {claim}, came to '{}'; results of this machine cannot \
         be trusted",
        verdict.word()
    )))
}
