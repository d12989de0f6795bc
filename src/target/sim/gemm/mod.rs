//! The gemm models as targets.

mod footprint;
pub mod kernel;
pub mod models;
pub mod shape;
#[cfg(test)]
mod tests;

use super::element::Element;
use super::grid::Groups;
use super::registry::GemmKind;
use super::settings::Settings;
use super::{describe, groups_of, identity};
use crate::problem::gemm::{A, B, C, D};
use crate::problem::{Dtype, Instance, Narrow, Value};
use crate::target::{Bases, Caps, Description, Footprint, Launched, Target};
use half::{bf16, f16};
use kernel::{Kernel, Local, Memory, run};
use models::*;
use shape::Shape;

/// The models compute in one real type and transpose without conjugating.
pub(super) fn limits() -> Vec<Narrow> {
    let one_of = |param: &str, values: &[&str]| Narrow::OneOf {
        param: param.to_owned(),
        values: values.iter().map(|v| Value::from(*v)).collect(),
    };
    vec![one_of("transA", &["N", "T"]), one_of("transB", &["N", "T"]), one_of("dtype", &["f32", "f64", "f16", "bf16"])]
}

/// A gemm model with its settings.
#[derive(Debug)]
pub struct GemmModel {
    kind: GemmKind,
    settings: Settings,
    /// Kept from launch to launch.
    local: Local,
}

impl GemmModel {
    pub fn new(kind: GemmKind, settings: Settings) -> GemmModel {
        GemmModel { kind, settings, local: Local::default() }
    }
}

/// A launch that waits for its kernel.
struct Start<'a> {
    shape: &'a Shape,
    memory: Memory,
    groups: Groups<'a>,
    local: &'a mut Local,
}

impl Start<'_> {
    /// # Safety
    /// As for [`run`].
    unsafe fn model(self, kind: GemmKind, settings: &Settings) {
        let operand = settings.operand;
        // SAFETY: passed on from the caller, in every arm.
        unsafe {
            match kind {
                GemmKind::Clean => self.kernel(&Clean),
                GemmKind::I32Sum => self.kernel(&I32Sum(operand)),
                GemmKind::I32Term => self.kernel(&I32Term(operand)),
                GemmKind::BatchI32 => self.kernel(&BatchI32(operand)),
                GemmKind::BytesDrop => self.kernel(&BytesDrop { bits: settings.bits }),
                GemmKind::EdgeOverread => self.kernel(&EdgeOverread(operand)),
                GemmKind::KOverread => self.kernel(&KOverread(operand)),
                GemmKind::EdgeOverwrite => self.kernel(&EdgeOverwrite),
                GemmKind::GridU16 => self.kernel(&GridU16),
                GemmKind::GridNegative => self.kernel(&GridNegative),
                GemmKind::IndexF32 => self.kernel(&IndexF32),
                GemmKind::Hang => self.kernel(&Hang),
                GemmKind::Abort => self.kernel(&Abort),
                GemmKind::Flaky if rand::random::<f64>() < settings.rate => self.kernel(&I32Sum(operand)),
                GemmKind::Flaky => self.kernel(&Clean),
            }
        }
    }

    unsafe fn kernel<K: Kernel>(self, kernel: &K) {
        // SAFETY: passed on from the caller, in every arm.
        unsafe {
            match self.shape.dtype {
                Dtype::F64 => self.typed::<f64, K>(kernel),
                Dtype::F16 => self.typed::<f16, K>(kernel),
                Dtype::Bf16 => self.typed::<bf16, K>(kernel),
                _ => self.typed::<f32, K>(kernel),
            }
        }
    }

    unsafe fn typed<T: Element, K: Kernel>(self, kernel: &K) {
        // SAFETY: passed on from the caller.
        unsafe { run::<T, K>(kernel, self.shape, self.memory, self.groups, self.local) }
    }
}

impl Target for GemmModel {
    fn describe(&self) -> Description {
        describe(&self.settings)
    }

    fn identity(&self) -> Vec<(String, String)> {
        identity(&self.settings)
    }

    fn footprint(&self, instance: &Instance, caps: &Caps) -> Footprint {
        footprint::footprint(instance, &Shape::of(instance, self.settings.tile), caps)
    }

    unsafe fn launch(&mut self, instance: &Instance, footprint: &Footprint, bases: &dyn Bases) -> Launched {
        let shape = Shape::of(instance, self.settings.tile);
        let base = |operand| bases.base(operand, 0);
        let c = base(C);
        let memory = Memory { a: base(A), b: base(B), c, d: if shape.separate_d { base(D) } else { c } };
        if let Some(groups) = groups_of(footprint, shape.grid().total()) {
            let start = Start { shape: &shape, memory, groups, local: &mut self.local };
            // SAFETY: the caller's promise: what a right kernel touches in these groups is mapped.
            unsafe { start.model(self.kind, &self.settings) };
        }
        Launched { kernel: Some(self.settings.kernel()), ..Launched::default() }
    }
}
