//! Implementations under test: what they say of themselves, and how a worker drives them.

pub mod cblas;
pub mod cuda;
pub mod load;
pub mod selftest;
pub mod sim;
pub mod spec;

pub use spec::TargetSpec;

use crate::problem::{Instance, Knobs, Narrow, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a target says of itself once it is loaded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// One line for people: "ATLAS 3.10.3, cblas, 32-bit integers".
    pub title: String,
    /// What of the problem it supports.
    pub limits: Vec<Narrow>,
    /// What [`Target::identity`] says, for the finding's environment; empty in workers that were not asked.
    pub identity: Vec<(String, String)>,
    /// Runs on a built-in model: no library of this machine is tested.
    pub model: bool,
    /// The core type that the target's name or the environment forced upon a library, and that it took.
    #[serde(default)]
    pub core: Option<String>,
}

/// One rectangle of logical indices of one copy of an operand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexBox {
    pub operand: usize,
    pub copy: u32,
    /// Per dimension of the operand: first index and one past the last.
    pub ranges: Vec<(i64, i64)>,
}

/// What a launch will touch: decides which pages are mapped, filled and compared.
#[derive(Debug, Clone, PartialEq)]
pub enum Footprint {
    /// Every element of every operand.
    Whole,
    /// Some work-groups only. Boxes of one copy of an operand do not overlap.
    Part { sample: crate::exec::verdict::Sample, boxes: Vec<IndexBox>, groups: Vec<u64> },
    /// The target declines the case.
    Refused(String),
    /// The case is above a cap.
    Skipped(String),
}

/// Elements that a case may have under any cap.
const FREE_ELEMENTS: i128 = 1 << 16;

/// Caps of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caps {
    /// Largest work of one case, in the problem's own unit (multiply-adds, moved elements); see also [`Caps::elements`].
    pub work: u64,
    /// Largest number of bytes mapped for one case.
    pub memory: u64,
}

impl Caps {
    /// Most elements of all operands of one case. Filling and comparing one takes as long as two to ten multiply-adds,
    /// whatever the work on it is; a few are free.
    pub fn elements(&self) -> i128 {
        (i128::from(self.work) / 2).max(FREE_ELEMENTS)
    }
}

impl Default for Caps {
    fn default() -> Caps {
        Caps { work: 1 << 28, memory: 1 << 30 }
    }
}

/// Base pointers of a placed case.
pub trait Bases {
    /// Address of element offset 0 of a copy of an operand; an alias has the base of the operand it lies in.
    fn base(&self, operand: usize, copy: u32) -> *mut u8;
}

/// What came of a launch, before any content is compared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Launched {
    /// Kernel or model that ran, where the target knows.
    pub kernel: Option<String>,
    /// Knobs as resolved.
    pub resolved: Knobs,
    /// The target declined with a clean status.
    pub refused: Option<String>,
    /// A status that no valid call may give; what the device itself says of a failure counts before it.
    pub failed: Option<String>,
}

/// An implementation of a problem, loaded in a worker.
pub trait Target {
    /// Title, limits, and whether it is a model; cheap, every worker says it.
    fn describe(&self) -> Description;

    /// Versions, paths, build ids: name and value. May read whole files: only the first worker of a run is asked.
    fn identity(&self) -> Vec<(String, String)> {
        vec![]
    }

    /// The knobs that this case has, and their values, plainest first.
    fn knobs(&self, _instance: &Instance) -> BTreeMap<String, Vec<Value>> {
        BTreeMap::new()
    }

    /// What a launch of the case touches under the caps. Pure: depends on its arguments only.
    fn footprint(&self, instance: &Instance, caps: &Caps) -> Footprint;

    /// Runs the case. May fault, hang or abort: the worker is there to be lost.
    ///
    /// # Safety
    /// Every element of the footprint is mapped at its place relative to `bases`.
    unsafe fn launch(&mut self, instance: &Instance, footprint: &Footprint, bases: &dyn Bases) -> Launched;
}

/// `Whole`, or skipped where the work is above the cap: the rule of targets that cannot run a part.
pub fn whole_or_skipped(instance: &Instance, caps: &Caps) -> Footprint {
    let work = instance.problem.work(&instance.case.params);
    if work > i128::from(caps.work) {
        return Footprint::Skipped(format!("{work} units of work are above --max-work {}", caps.work));
    }
    let elements = instance.elements();
    if elements > caps.elements() {
        let most = caps.elements();
        return Footprint::Skipped(format!("{elements} elements are above the {most} under --max-work {}", caps.work));
    }
    Footprint::Whole
}
