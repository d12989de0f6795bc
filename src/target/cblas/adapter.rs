//! A CBLAS as a target of the routines of BLAS.

use super::invoke::{self, Arg, Int, Passed};
use super::routine::{Kind, Routine, Slot, TYPES, Type, Variant, wanted, writes_elsewhere};
use super::symbols::Interface;
use super::{Choice, IntWidth, Library, find};
use crate::problem::{Instance, Narrow, Problem, Role, Value};
use crate::target::{Bases, Caps, Description, Footprint, Launched, Target, TargetSpec, whole_or_skipped};
use std::ffi::c_void;
use std::path::Path;

/// One function of a library that cases can call.
struct Function {
    of: Type,
    variant: Variant,
    address: *mut c_void,
    kind: Kind,
    slots: Vec<Slot>,
}

/// A routine of a loaded library.
pub struct Adapter {
    library: Library,
    /// The core type that was forced upon the library.
    core: Option<String>,
    functions: Vec<Function>,
    limits: Vec<Narrow>,
    /// Arguments of the call under way.
    args: Vec<Arg>,
}

impl Adapter {
    /// Opens the library that the spec names, or the first one found, as its settings say.
    ///
    /// # Errors
    /// One sentence, where there is none or it does not have the routine.
    pub fn load(spec: &TargetSpec, problem: &Problem, int_width: Option<IntWidth>) -> Result<Adapter, String> {
        let (routine, choice) = parse(spec, problem)?;
        let path = match &spec.library {
            Some(path) => path.into(),
            None => find().into_iter().next().ok_or("no CBLAS was found; name its file with --lib".to_owned())?,
        };
        let (library, core) = choice.open(Path::new(&path), int_width)?;
        let functions = functions(&library, routine, problem);
        if functions.is_empty() {
            let names: Vec<String> = TYPES.iter().flat_map(|t| routine.functions(*t, Variant::Plain)).collect();
            let names: Vec<String> = names.iter().filter_map(|n| library.exported(n)).collect();
            let path = path.display();
            return Err(match library.interface() {
                Interface::Fortran => {
                    format!("{path} has no CBLAS; without it only gemm is called, not {}", problem.name)
                }
                Interface::Cblas => format!("{path} has no {}: looked for {}", problem.name, names.join(", ")),
            });
        }
        let limits = limits(&library, &functions, problem);
        Ok(Adapter { library, core, functions, limits, args: vec![] })
    }

    /// Whether the spec is one of this family.
    ///
    /// # Errors
    /// One sentence, where it says something that the family does not have, or the problem is none of its routines.
    pub fn check(spec: &TargetSpec, problem: &Problem) -> Result<(), String> {
        parse(spec, problem).map(drop)
    }

    /// The function of a case, or why there is none.
    fn function(&self, instance: &Instance) -> Result<&Function, String> {
        if writes_elsewhere(instance) {
            return Err(format!("out={}: CBLAS writes its result to C", instance.word("out")));
        }
        let (of, variant) = wanted(instance);
        self.functions.iter().find(|f| Some(f.of) == of && f.variant == variant).ok_or_else(|| {
            let dtype = instance.word("dtype");
            match variant {
                Variant::Plain => format!("dtype={dtype}: the library has no {} of that type", instance.problem.name),
                Variant::Conj => format!("conj=true with dtype={dtype}: the library has no such function"),
                Variant::Batch => {
                    format!(
                        "batch={} with dtype={dtype}: the library has no gemm_batch_strided",
                        instance.word("batch")
                    )
                }
            }
        })
    }
}

fn parse(spec: &TargetSpec, problem: &Problem) -> Result<(Routine, Choice), String> {
    let routine = Routine::find(&problem.name).ok_or_else(|| {
        let names: Vec<&str> = Routine::names().collect();
        format!("a CBLAS has no {}; cblas runs {}", problem.name, names.join(", "))
    })?;
    if !spec.model.is_empty() {
        return Err(format!("'{spec}': cblas takes no model; name the library with --lib"));
    }
    Ok((routine, Choice::read(spec)?))
}

fn functions(library: &Library, routine: Routine, problem: &Problem) -> Vec<Function> {
    let mut all = vec![];
    for of in TYPES {
        for variant in [Variant::Plain, Variant::Conj, Variant::Batch] {
            let Some(address) = library.function(&routine.functions(of, variant)) else { continue };
            let (kind, args) = routine.prototype(of, variant);
            if let Some(slots) = Slot::all(problem, &args) {
                all.push(Function { of, variant, address, kind, slots });
            }
        }
    }
    all
}

/// What of the problem the library has functions for.
fn limits(library: &Library, functions: &[Function], problem: &Problem) -> Vec<Narrow> {
    let types = |variant: Variant| functions.iter().filter(move |f| f.variant == variant).map(|f| f.of.dtype);
    let mut limits =
        vec![Narrow::OneOf { param: "dtype".into(), values: types(Variant::Plain).map(Value::from).collect() }];
    for (param, plain, variant) in [("batch", "batch == 1", Variant::Batch), ("conj", "not conj", Variant::Conj)] {
        if problem.param(param).is_some() {
            let with = types(variant).map(|dtype| format!(" or dtype == '{dtype}'"));
            let condition = format!("{plain}{}", with.collect::<String>());
            limits.push(Narrow::Require { condition });
        }
    }
    if problem.param("out").is_some() {
        limits.push(Narrow::Set { param: "out".into(), value: "C".into() });
    }
    if library.int_width() == IntWidth::I32 {
        let passed = |name: &str| {
            let int = |slot: &Slot| matches!(slot, Slot::Int { name: passed, .. } if *passed == name);
            functions.iter().any(|f| f.slots.iter().any(int))
        };
        let ints = problem.params.iter().filter(|p| !p.is_choice() && p.role != Role::Offset && passed(&p.name));
        limits.extend(ints.map(|p| Narrow::Range { param: p.name.clone(), min: p.least(), max: i32::MAX.into() }));
    }
    let batched = functions.iter().any(|f| f.variant == Variant::Batch);
    if library.version().name == "MKL" && batched {
        // Its reference asks for whole matrices: each batch stride is at least the leading dimension times the columns.
        for (stride, least) in [
            ("strideA", "lda * if(transA == 'N', k, m)"),
            ("strideB", "ldb * if(transB == 'N', n, k)"),
            ("strideC", "ldc * n"),
        ] {
            limits.push(Narrow::Require { condition: format!("{stride} >= if(batch > 1, {least}, 0)") });
        }
    }
    limits
}

/// # Safety
/// As for [`Target::launch`]; the library's integers have the width of `I`.
unsafe fn run<I: Int>(library: &Library, f: &Function, args: &[Arg], result: *mut u8) {
    // SAFETY: CBLAS has these prototypes under these names; a result has the type of operand r, which is mapped.
    unsafe {
        match f.kind {
            Kind::Void(_) if library.interface() == Interface::Fortran => {
                invoke::fortran_gemm::<I>(f.of.passed, f.address, args);
            }
            Kind::Void(prototype) => invoke::invoke::<I>(prototype, f.of.passed, f.address, args),
            Kind::Number(prototype) => match f.of.passed {
                Passed::Single | Passed::SingleComplex => {
                    result.cast::<f32>().write_unaligned(invoke::number::<I, f32>(prototype, f.address, args));
                }
                Passed::Double | Passed::DoubleComplex => {
                    result.cast::<f64>().write_unaligned(invoke::number::<I, f64>(prototype, f.address, args));
                }
            },
            Kind::Root(prototype) => match f.of.passed {
                Passed::Single | Passed::SingleComplex => {
                    let root = invoke::number::<I, f32>(prototype, f.address, args);
                    result.cast::<f32>().write_unaligned(whole(root.into(), f32::EPSILON.into()) as f32);
                }
                Passed::Double | Passed::DoubleComplex => {
                    let root = invoke::number::<I, f64>(prototype, f.address, args);
                    result.cast::<f64>().write_unaligned(whole(root, f64::EPSILON));
                }
            },
            Kind::Index => {
                let index = invoke::index::<I>(f.address, args);
                // A build that returns an int leaves the upper half of the register undefined.
                let index = if library.int_width() == IntWidth::I32 { index & 0xffff_ffff } else { index };
                result.cast::<i64>().write_unaligned(index as i64);
            }
        }
    }
}

/// The whole number that a root is up to the rounding of its type; else the root itself. The norms that cases ask for are whole
/// (`problem/blas/level1.rs`), and MKL's dnrm2 is one place off for some of them.
fn whole(root: f64, epsilon: f64) -> f64 {
    let nearest = root.round();
    if (root - nearest).abs() <= 2.0 * epsilon * nearest.abs() { nearest } else { root }
}

impl Target for Adapter {
    fn describe(&self) -> Description {
        let about = self.library.describe();
        let name = match about.version.as_str() {
            "unknown" => about.name.clone(),
            version if version.starts_with(&about.name) => version.to_owned(),
            version => format!("{} {version}", about.name),
        };
        Description {
            title: format!("{name}, {} interface, {}-bit integers", about.interface, about.int_width),
            limits: self.limits.clone(),
            identity: vec![],
            model: false,
            core: self.core.clone(),
        }
    }

    fn identity(&self) -> Vec<(String, String)> {
        self.library.identity()
    }

    fn footprint(&self, instance: &Instance, caps: &Caps) -> Footprint {
        match self.function(instance) {
            Err(why) => Footprint::Refused(why),
            Ok(_) => whole_or_skipped(instance, caps),
        }
    }

    unsafe fn launch(&mut self, instance: &Instance, _footprint: &Footprint, bases: &dyn Bases) -> Launched {
        let mut args = std::mem::take(&mut self.args);
        args.clear();
        let outcome = self.function(instance).and_then(|f| {
            args.extend(f.slots.iter().map(|slot| slot.arg(instance, |operand| bases.base(operand, 0))));
            let result = instance.problem.operand("r").map_or(std::ptr::null_mut(), |r| bases.base(r, 0));
            match self.library.int_width() {
                IntWidth::I32 => {
                    // The limits say so already; a case from elsewhere must not be truncated.
                    let wide = |arg: &Arg| matches!(arg, Arg::Int(value) if i32::try_from(*value).is_err());
                    if let Some(Arg::Int(value)) = args.iter().find(|arg| wide(arg)) {
                        return Err(format!("{value} does not fit the library's 32-bit int"));
                    }
                    // SAFETY: base pointers are aligned to the element at least; the rest is the caller's promise.
                    unsafe { run::<i32>(&self.library, f, &args, result) };
                }
                // SAFETY: as above.
                IntWidth::I64 => unsafe { run::<i64>(&self.library, f, &args, result) },
            }
            Ok(())
        });
        self.args = args;
        Launched { refused: outcome.err(), ..Launched::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn a_root_that_is_whole_up_to_rounding_is_whole_and_no_other() {
        assert_eq!(whole(46.0_f64.next_up(), f64::EPSILON), 46.0);
        assert_eq!(whole(f64::from(46.0_f32.next_up()), f32::EPSILON.into()), 46.0);
        // One element more or less in the largest vectors of a hunt.
        let longer = (1024.0_f64 * 1024.0 + 1.0).sqrt();
        assert_eq!(whole(longer, f32::EPSILON.into()), longer);
        assert!(whole(f64::NAN, f64::EPSILON).is_nan());
    }
}
