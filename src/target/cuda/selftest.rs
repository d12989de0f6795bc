//! Planted failures on a GPU: a reference gemm in `f32` and 64-bit offsets, and one bad access beside it.

use crate::device::Device;
use crate::device::cuda::{Buffer, CudaError, Function, Gpu, Launch, kernels};
use crate::problem::{Instance, Narrow, Problem, Value, gemm};
use crate::target::load::DEVICE_SETTING;
use crate::target::selftest::{KNOB, PLANTS, Plant, address, footprint};
use crate::target::{Bases, Caps, Description, Footprint, Launched, Target, TargetSpec};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Pages of the arena, bytes: the unit of what a guard can see.
const PAGE_BYTES: u64 = 2 << 20;
const THREADS: u32 = 128;

/// The target `selftest,device=cuda`.
pub struct SelfTest {
    product: Function,
    touch: Function,
    hang: Function,
    /// A place to write what is read, and a zero to wait for.
    scratch: Buffer,
    gpu: Rc<Gpu>,
}

/// # Errors
/// One sentence, where the problem is not gemm or the spec says more than the family.
pub fn check(spec: &TargetSpec, problem: &Problem) -> Result<(), String> {
    if problem.name != "gemm" {
        return Err(format!("the self-test has no {}; it runs gemm", problem.name));
    }
    if !spec.model.is_empty() || spec.library.is_some() || spec.settings.keys().any(|k| k != DEVICE_SETTING) {
        return Err(format!(
            "'{spec}': on a GPU, selftest takes the setting {DEVICE_SETTING}={} and no other",
            Device::Cuda.name()
        ));
    }
    Ok(())
}

impl SelfTest {
    /// # Errors
    /// One sentence, where the problem is not gemm or the spec says more than the family, or where the kernels do not load.
    pub fn load(spec: &TargetSpec, problem: &Problem, gpu: &Rc<Gpu>) -> Result<SelfTest, String> {
        check(spec, problem)?;
        let module = kernels::SELFTEST.load(gpu)?;
        let text = |e: CudaError| e.to_string();
        let function = |name| module.function(name).map_err(text);
        let scratch = gpu.buffer(256).map_err(text)?;
        // SAFETY: the buffer has room; the copy is waited for before the zeros go.
        unsafe { gpu.upload(scratch.address, &[0; 256]) }.and_then(|()| gpu.wait()).map_err(text)?;
        Ok(SelfTest {
            product: function("product")?,
            touch: function("touch")?,
            hang: function("hang")?,
            scratch,
            gpu: Rc::clone(gpu),
        })
    }

    /// # Safety
    /// Every element of the views is mapped relative to `bases`; a plant touches what it is there to touch.
    unsafe fn run(&self, instance: &Instance, bases: &dyn Bases, plant: Plant) -> Result<(), String> {
        let base = |operand| bases.base(operand, 0).expose_provenance() as u64;
        let text = |e: CudaError| e.to_string();
        let product = product(instance, plant)?;
        let pointers = [gemm::A, gemm::B, gemm::C].map(|o| {
            let view = instance.view(o);
            let offset = view.map_or(0, |v| v.offset_of(0, &[0, 0, 0]) * v.element_bytes);
            base(o).wrapping_add_signed(offset).to_le_bytes()
        });
        let count = (instance.get("m") * instance.get("n") * instance.get("batch")) as u64;
        let blocks = count.div_ceil(u64::from(THREADS)).min(1 << 20) as u32;
        // SAFETY: the arguments are those of the kernel; the rest is the caller's promise.
        unsafe {
            let args = [&pointers[0][..], &pointers[1][..], &pointers[2][..], &product[..]];
            self.product.launch(Launch::flat(blocks, 1, THREADS), &args).map_err(text)?;
        }
        let how: u32 = match plant {
            Plant::Guard | Plant::GuardBefore => 0,
            Plant::Gap => 1,
            Plant::Canary => 2,
            Plant::Hang => {
                let zero = (self.scratch.address + 128).to_le_bytes();
                // SAFETY: waits for a word of the buffer that nobody writes.
                return unsafe { self.hang.launch(Launch::flat(1, 1, 1), &[&zero]) }.map_err(text);
            }
            Plant::None | Plant::Sentinel | Plant::Value => return Ok(()),
        };
        let at = address(plant, instance, base, PAGE_BYTES)?.to_le_bytes();
        let sink = self.scratch.address.to_le_bytes();
        // SAFETY: may fault, as planned.
        unsafe { self.touch.launch(Launch::flat(1, 1, 1), &[&at, &how.to_le_bytes(), &sink]) }.map_err(text)
    }
}

/// The kernel's struct `Product`.
fn product(instance: &Instance, plant: Plant) -> Result<Vec<u8>, String> {
    let mut words: Vec<i64> = ["m", "n", "k", "batch"].map(|name| instance.get(name)).to_vec();
    for operand in [gemm::A, gemm::B, gemm::C] {
        let view = instance.view(operand).ok_or("the self-test needs the operands A, B and C")?;
        words.extend((0..3).map(|d| view.dims.get(d).map_or(0, |step| step.stride)));
    }
    let factor = |name: &str| instance.word(name).parse().unwrap_or(f32::NAN);
    let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    bytes.extend([factor("alpha"), factor("beta")].iter().flat_map(|f| f.to_le_bytes()));
    bytes.extend([plant == Plant::Sentinel, plant == Plant::Value].iter().flat_map(|f| u32::from(*f).to_le_bytes()));
    Ok(bytes)
}

impl Target for SelfTest {
    fn describe(&self) -> Description {
        let only = |param: &str, value: &str| Narrow::Set { param: param.into(), value: value.into() };
        let real = |param: &str| Narrow::OneOf { param: param.into(), values: vec!["N".into(), "T".into()] };
        Description {
            title: "planted failures on a GPU".to_owned(),
            limits: vec![only("dtype", "f32"), only("out", "C"), real("transA"), real("transB")],
            ..Description::default()
        }
    }

    fn identity(&self) -> Vec<(String, String)> {
        super::card_facts(&self.gpu)
    }

    fn knobs(&self, _instance: &Instance) -> BTreeMap<String, Vec<Value>> {
        BTreeMap::from([(KNOB.to_owned(), PLANTS.iter().map(|(_, word)| Value::from(*word)).collect())])
    }

    fn footprint(&self, instance: &Instance, caps: &Caps) -> Footprint {
        footprint(instance, caps, PAGE_BYTES)
    }

    unsafe fn launch(&mut self, instance: &Instance, _footprint: &Footprint, bases: &dyn Bases) -> Launched {
        // SAFETY: passed on.
        let outcome = Plant::of(instance).and_then(|plant| unsafe { self.run(instance, bases, plant) });
        Launched { kernel: Some("selftest".to_owned()), refused: outcome.err(), ..Launched::default() }
    }
}
