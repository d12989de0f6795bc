//! The lines between supervisor and worker: JSON, one object a line.
//!
//! Our own workers use the `layout` form of the contract in docs/protocol.md: one line carries a layout, all the cases that
//! share its mapped pages, and which of them to run. The mapped pages are a function of that line alone, so a verdict
//! never depends on what the worker ran before.

use super::verdict::{Sample, Verdict, Wrong};
use crate::device::Access;
use crate::evidence::GpuFault;
use crate::evidence::symbol::Modules;
use crate::problem::{Assignment, Case, Knobs, Placement, Problem, Value};
use crate::target::{Caps, Description};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the contract.
pub const VERSION: u32 = 1;

/// The verdict of a library that broke down and said so.
pub const CRASH: &str = "crash";

/// First line of a worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Hello {
    pub shrinkfault: u32,
    #[serde(default)]
    pub can: Vec<String>,
    #[serde(default)]
    pub description: Description,
    /// Where the arena lies: the supervisor plans the same layouts to tie an address to an operand.
    #[serde(default)]
    pub arena: ArenaSpan,
    #[serde(default)]
    pub modules: Modules,
}

/// A worker that cannot start says why instead of a hello.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetupFailed {
    pub setup_failed: String,
}

/// Reserved addresses of a worker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArenaSpan {
    pub base: u64,
    pub len: u64,
    pub page_bytes: u64,
}

/// One case on the wire. Parameters are in outside form, every parameter of the problem named.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WireCase {
    pub id: u64,
    /// Seed of the operand contents.
    pub seed: u64,
    pub params: BTreeMap<String, Value>,
    #[serde(default)]
    pub knobs: Knobs,
    /// Placement of every operand.
    pub place: Placement,
    /// Pages that are mapped besides: offsets from the start of the arena of gap pages that a correct run may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_map: Vec<u64>,
}

/// A layout: the union of what its cases touch is mapped, then the cases in `run` are run in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LayoutLine {
    pub layout: u64,
    pub cases: Vec<WireCase>,
    /// Ids of the cases to run, as often as they stand here; the others only take part in the mapping.
    pub run: Vec<u64>,
    pub caps: Caps,
}

/// Asks which knobs a case has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AskKnobs {
    pub id: u64,
    /// Always "knobs".
    pub ask: String,
    pub params: BTreeMap<String, Value>,
    /// Values that the asker has in mind: a target whose values are too many to list adds one that it takes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub knobs: Knobs,
}

/// Answer to [`AskKnobs`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnobsAnswer {
    pub id: u64,
    pub knobs: BTreeMap<String, Vec<Value>>,
}

/// Answer to one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    pub id: u64,
    /// `pass`, `wrong`, `refused`, `skipped`, `fault` or [`CRASH`]. A worker that faults on the host cannot answer; one whose
    /// device faulted, or whose library ended in a status that no valid call may give, says so and ends.
    pub verdict: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<Sample>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrong: Option<Wrong>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<GpuFault>,
    /// Access of the damage, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// A skip by state: another moment may answer otherwise.
    #[serde(default)]
    pub state: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resolved: Knobs,
    /// Page ranges mapped or unmapped for this case; the first case of a layout carries them all.
    #[serde(default)]
    pub remapped: u32,
}

impl WireCase {
    pub fn new(id: u64, seed: u64, problem: &Problem, case: &Case) -> WireCase {
        WireCase {
            id,
            seed,
            params: problem.show(&case.params).into_iter().collect(),
            knobs: case.knobs.clone(),
            place: case.placement,
            also_map: vec![],
        }
    }

    /// The case under a problem that has every named parameter.
    ///
    /// # Errors
    /// A sentence, where a parameter is missing, unknown or out of its domain.
    pub fn case(&self, problem: &Problem) -> Result<Case, String> {
        let mut values = Vec::with_capacity(problem.params.len());
        for p in &problem.params {
            let value = self.params.get(&p.name).ok_or_else(|| format!("case {} lacks {}", self.id, p.name))?;
            values.push(p.store(value)?);
        }
        Ok(Case { params: Assignment(values), knobs: self.knobs.clone(), placement: self.place })
    }
}

impl Answer {
    /// The verdict that the answer states.
    ///
    /// # Errors
    /// A sentence, where the answer is none of the contract.
    pub fn verdict(&self) -> Result<Verdict, String> {
        let detail = || self.detail.clone().unwrap_or_default();
        match (self.verdict.as_str(), &self.wrong) {
            ("pass", _) => Ok(Verdict::Pass { sample: self.sample }),
            ("wrong", Some(w)) => Ok(Verdict::Wrong(w.clone())),
            ("refused", _) => Ok(Verdict::Refused { detail: detail() }),
            (CRASH, _) => Ok(Verdict::Crash { how: detail(), code: None }),
            ("skipped", _) => Ok(Verdict::Skipped { detail: detail(), state: self.state }),
            (other, _) => Err(format!("case {}: '{other}' is no verdict of a worker", self.id)),
        }
    }
}
