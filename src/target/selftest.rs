//! Planted failures of known address, to prove every oracle through the path that real cases take.
//!
//! A reference gemm in 64-bit offsets that, beside its work, does the one bad thing that its knob `plant` names.

use super::{Bases, Caps, Description, Footprint, Launched, Target, TargetSpec, whole_or_skipped};
use crate::device::Access;
use crate::exec::verdict::{Place, Verdict, WrongKind};
use crate::problem::{Instance, Problem, Value, View, gemm};
use crate::worker::Layout;
use std::collections::BTreeMap;
use std::time::Duration;

/// Name of the knob.
pub const KNOB: &str = "plant";

/// A planted failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Plant {
    /// Nothing: the clean control.
    None,
    /// Reads the first byte past A's pages. A must be flush to its end.
    Guard,
    /// Reads the last byte before A's pages. A must be flush to its start.
    GuardBefore,
    /// Writes to an unmapped page half-way between two rows of B, which must be at least [`GAP_STRIDE`] bytes apart.
    Gap,
    /// Writes the byte after C, which the placement's padding must have mapped.
    Canary,
    /// Leaves the last element of C unwritten.
    Sentinel,
    /// Adds 1 to the first element of C.
    Value,
    /// Never returns.
    Hang,
}

/// Least distance of two rows of B, bytes: far beyond what a disabled guard maps beside them.
pub const GAP_STRIDE: i64 = 1 << 20;

/// All plants and the values of the knob.
pub const PLANTS: [(Plant, &str); 8] = [
    (Plant::None, "none"),
    (Plant::Guard, "guard"),
    (Plant::GuardBefore, "guard-before"),
    (Plant::Gap, "gap"),
    (Plant::Canary, "canary"),
    (Plant::Sentinel, "sentinel"),
    (Plant::Value, "value"),
    (Plant::Hang, "hang"),
];

/// What a working oracle must say of a plant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    Pass,
    /// A fault at this address.
    Fault {
        address: u64,
        access: Access,
        operand: &'static str,
        place: Place,
    },
    /// One changed byte, so far from the operand's base pointer.
    Stray {
        operand: &'static str,
        from_base: i64,
        place: Place,
    },
    /// One wrong element of C.
    Element {
        kind: WrongKind,
        first: Vec<i64>,
    },
    Hang,
}

impl std::fmt::Display for Expected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Expected::Pass => f.write_str("a pass"),
            Expected::Fault { address, access, operand, place } => {
                let access = match access {
                    Access::Read => "read",
                    Access::Write => "write",
                };
                write!(f, "a fault on the {access} at {address:#x}, {place} of {operand}")
            }
            Expected::Stray { operand, from_base, .. } => write!(f, "a changed byte {from_base} bytes from {operand}"),
            Expected::Element { kind: WrongKind::Unwritten, first } => {
                write!(f, "an unwritten element of C at {first:?}")
            }
            Expected::Element { first, .. } => write!(f, "a wrong element of C at {first:?}"),
            Expected::Hang => f.write_str("a hang"),
        }
    }
}

impl Plant {
    pub fn word(self) -> &'static str {
        PLANTS[self as usize].1
    }

    /// # Errors
    /// A sentence, where the knob has another value.
    pub fn of(instance: &Instance) -> Result<Plant, String> {
        let word = match instance.case.knobs.get(KNOB) {
            None => return Ok(Plant::None),
            Some(value) => value.to_string(),
        };
        let known = PLANTS.iter().find(|(_, w)| *w == word).map(|(p, _)| *p);
        known.ok_or_else(|| format!("the self-test has no plant '{word}'"))
    }
}

impl Expected {
    /// Whether a verdict is what the plant must give. A device that is not the host tells the page of a fault at best: `page`
    /// bytes, or nothing.
    pub fn agrees(&self, verdict: &Verdict, page: Option<u64>) -> bool {
        match (self, verdict) {
            (Expected::Pass, Verdict::Pass { .. }) | (Expected::Hang, Verdict::Hang { .. }) => true,
            (Expected::Fault { address, access, operand, place }, Verdict::Fault(f)) => {
                let told = match page {
                    None => (Some(*address), Some(*access)),
                    Some(_) if f.address.is_none() => return f.access.is_none_or(|a| a == *access),
                    Some(page) => (Some(address / page * page), f.access.and(Some(*access))),
                };
                (f.address, f.access) == told
                    && f.hit.as_ref().is_some_and(|h| h.operand == *operand && h.place == *place)
            }
            (Expected::Stray { operand, from_base, place }, Verdict::Wrong(w)) => {
                let Some(hit) = &w.hit else { return false };
                (w.kind, w.count) == (WrongKind::Stray, 1)
                    && (hit.operand.as_str(), hit.from_base, hit.place) == (*operand, *from_base, *place)
            }
            (Expected::Element { kind, first }, Verdict::Wrong(w)) => {
                (w.kind, w.count, &w.first) == (*kind, 1, first) && w.operand == "C"
            }
            _ => false,
        }
    }
}

/// What must come of a plant in a case of a layout.
///
/// # Errors
/// A sentence, where the case is unfit for the plant.
pub fn expected(plant: Plant, instance: &Instance, layout: &Layout, case: usize) -> Result<Expected, String> {
    let fault = |operand, access, place| -> Result<Expected, String> {
        let base = |operand: usize| layout.base(case, operand, 0);
        let address = address(plant, instance, base, layout.page_bytes())?;
        Ok(Expected::Fault { address, access, operand, place })
    };
    Ok(match plant {
        Plant::None => Expected::Pass,
        Plant::Guard => fault("A", Access::Read, Place::PastEnd)?,
        Plant::GuardBefore => fault("A", Access::Read, Place::BeforeStart)?,
        Plant::Gap => fault("B", Access::Write, Place::Gap)?,
        Plant::Canary => {
            let base = layout.base(case, gemm::C, 0);
            let address = address(plant, instance, |o| layout.base(case, o, 0), layout.page_bytes())?;
            Expected::Stray { operand: "C", from_base: address.wrapping_sub(base) as i64, place: Place::PastEnd }
        }
        Plant::Sentinel => Expected::Element { kind: WrongKind::Unwritten, first: last(view(instance, gemm::C)?) },
        Plant::Value => {
            Expected::Element { kind: WrongKind::Value, first: vec![0; view(instance, gemm::C)?.dims.len()] }
        }
        Plant::Hang => Expected::Hang,
    })
}

fn view(instance: &Instance, operand: usize) -> Result<&View, String> {
    instance.view(operand).ok_or_else(|| "the self-test needs the operands A, B and C".to_owned())
}

fn last(view: &View) -> Vec<i64> {
    view.dims.iter().map(|d| d.extent - 1).collect()
}

/// The address that a plant touches, where pages have so many bytes.
///
/// # Errors
/// A sentence, where the case is unfit for the plant or the plant has no address.
pub fn address(plant: Plant, instance: &Instance, base: impl Fn(usize) -> u64, page: u64) -> Result<u64, String> {
    let edge = |operand: usize, after: bool| -> Result<u64, String> {
        let v = view(instance, operand)?;
        let element = if after { v.highest(0) + 1 } else { v.lowest(0) };
        Ok(base(operand).wrapping_add_signed(element * v.element_bytes))
    };
    match plant {
        Plant::Guard => Ok(edge(gemm::A, true)?.next_multiple_of(page)),
        Plant::GuardBefore => Ok(edge(gemm::A, false)? / page * page - 1),
        Plant::Canary if instance.case.placement.pad == 0 => Err("this plant needs padding after C".to_owned()),
        Plant::Canary => edge(gemm::C, true),
        Plant::Gap => {
            let v = view(instance, gemm::B)?;
            let far = |d: &&crate::problem::Step| d.extent > 1 && d.stride * v.element_bytes >= GAP_STRIDE;
            let step = v.dims.iter().find(far).ok_or("this plant needs rows of B that are far apart".to_owned())?;
            Ok(edge(gemm::B, false)?.wrapping_add_signed(step.stride * v.element_bytes / 2))
        }
        Plant::None | Plant::Sentinel | Plant::Value | Plant::Hang => Err("this plant has no address".to_owned()),
    }
}

/// What a planted case touches, beside its one bad access, where pages have so many bytes; refused where it is unfit for the plant.
pub fn footprint(instance: &Instance, caps: &Caps, page: u64) -> Footprint {
    let plant = match Plant::of(instance) {
        Ok(plant) => plant,
        Err(why) => return Footprint::Refused(why),
    };
    let touches = matches!(plant, Plant::Guard | Plant::GuardBefore | Plant::Gap | Plant::Canary);
    match touches.then(|| address(plant, instance, |_| 1 << 40, page)) {
        Some(Err(why)) => Footprint::Refused(why),
        _ => whole_or_skipped(instance, caps),
    }
}

/// The target `selftest`.
pub struct SelfTest {
    page: u64,
}

impl SelfTest {
    /// # Errors
    /// One sentence, where the problem is not gemm or the spec says more than the family.
    pub fn load(spec: &TargetSpec, problem: &Problem) -> Result<SelfTest, String> {
        if problem.name != "gemm" {
            return Err(format!("the self-test has no {}; it runs gemm", problem.name));
        }
        if !spec.model.is_empty() || !spec.settings.is_empty() || spec.library.is_some() {
            return Err(format!("'{spec}': selftest takes no model, no settings and no library"));
        }
        // SAFETY: no preconditions. Linux always tells its page size; 4096 stands in for a refusal.
        let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        Ok(SelfTest { page })
    }
}

impl Target for SelfTest {
    fn describe(&self) -> Description {
        Description { title: "self-test".to_owned(), model: true, ..Description::default() }
    }

    fn knobs(&self, _instance: &Instance) -> BTreeMap<String, Vec<Value>> {
        BTreeMap::from([(KNOB.to_owned(), PLANTS.iter().map(|(_, word)| Value::from(*word)).collect())])
    }

    fn footprint(&self, instance: &Instance, caps: &Caps) -> Footprint {
        footprint(instance, caps, self.page)
    }

    unsafe fn launch(&mut self, instance: &Instance, _footprint: &Footprint, bases: &dyn Bases) -> Launched {
        let done = Launched { kernel: Some("selftest".to_owned()), ..Launched::default() };
        let refused = |why| Launched { refused: Some(why), ..done.clone() };
        let plant = match Plant::of(instance) {
            Ok(plant) => plant,
            Err(why) => return refused(why),
        };
        let base = |operand| bases.base(operand, 0).expose_provenance() as u64;
        // SAFETY: the elements are mapped; a plant touches what it is there to touch.
        unsafe {
            if let Err(why) = multiply(instance, bases, plant) {
                return refused(why);
            }
            match address(plant, instance, base, self.page) {
                Ok(at) => touch(plant, at),
                Err(why) if matches!(plant, Plant::Guard | Plant::GuardBefore | Plant::Gap | Plant::Canary) => {
                    return refused(why);
                }
                Err(_) => {}
            }
        }
        if plant == Plant::Hang {
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        }
        done
    }
}

/// # Safety
/// May fault, as planned.
unsafe fn touch(plant: Plant, address: u64) {
    let byte: *mut u8 = std::ptr::with_exposed_provenance_mut(address as usize);
    // SAFETY: the caller wants it.
    unsafe {
        match plant {
            Plant::Gap => byte.write_volatile(1),
            // The canary's bytes are never 0 in either half of a lane.
            Plant::Canary => byte.write_volatile(0),
            _ => {
                byte.read_volatile();
            }
        }
    }
}

/// The product, element by element.
///
/// # Safety
/// Every element of the views is mapped relative to `bases`.
unsafe fn multiply(instance: &Instance, bases: &dyn Bases, plant: Plant) -> Result<(), String> {
    let (a, b, c) = (view(instance, gemm::A)?, view(instance, gemm::B)?, view(instance, gemm::C)?);
    if instance.view(gemm::D).is_some() {
        return Err("the self-test writes its result to C".to_owned());
    }
    let Some(dtype) = c.dtype else { return Err("the self-test needs a number type".to_owned()) };
    let pointer = |v: &View, index: [i64; 3]| {
        bases.base(v.operand, 0).wrapping_offset((v.offset_of(0, &index) * v.element_bytes) as isize)
    };
    let load = |v: &View, index: [i64; 3]| {
        let mut bytes = [0; 8];
        // SAFETY: the element is mapped, says the caller.
        unsafe { std::ptr::copy_nonoverlapping(pointer(v, index), bytes.as_mut_ptr(), dtype.bytes() as usize) };
        dtype.decode(&bytes)
    };
    let factor = |name: &str| instance.word(name).parse().unwrap_or(f64::NAN);
    let (alpha, beta): (f64, f64) = (factor("alpha"), factor("beta"));
    let (m, n, k, batch) = (instance.get("m"), instance.get("n"), instance.get("k"), instance.get("batch"));
    for z in 0..batch {
        for j in 0..n {
            for i in 0..m {
                if plant == Plant::Sentinel && [i, j, z] == [m - 1, n - 1, batch - 1] {
                    continue;
                }
                let sum: f64 = (0..k).map(|l| load(a, [i, l, z]) * load(b, [l, j, z])).sum();
                let old = if beta == 0.0 { 0.0 } else { beta * load(c, [i, j, z]) };
                let planted = if plant == Plant::Value && [i, j, z] == [0, 0, 0] { 1.0 } else { 0.0 };
                let mut bytes = [0; 8];
                dtype.encode(alpha * sum + old + planted, &mut bytes);
                // SAFETY: as above.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), pointer(c, [i, j, z]), dtype.bytes() as usize) };
            }
        }
    }
    Ok(())
}
