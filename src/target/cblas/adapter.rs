//! A CBLAS as a target of the problem gemm.

use super::{GemmCall, IntWidth, Library, Real, find};
use crate::problem::{Dtype, Instance, Narrow, Problem, gemm};
use crate::target::{Bases, Caps, Description, Footprint, Launched, Target, TargetSpec, whole_or_skipped};
use std::path::Path;

/// A loaded library.
pub struct Adapter {
    library: Library,
}

impl Adapter {
    /// Opens the library that the spec names, or the first one found.
    ///
    /// # Errors
    /// One sentence, where there is none or it has no GEMM that can be called.
    pub fn load(spec: &TargetSpec, problem: &Problem, int_width: Option<IntWidth>) -> Result<Adapter, String> {
        Adapter::check(spec, problem)?;
        let library = match &spec.library {
            Some(path) => Library::open_with(Path::new(path), int_width).map_err(|e| e.to_string())?,
            None => {
                let path = find().into_iter().next();
                let path = path.ok_or("no CBLAS was found; name its file with --lib".to_owned())?;
                Library::open_with(&path, int_width).map_err(|e| e.to_string())?
            }
        };
        Ok(Adapter { library })
    }

    /// Whether the spec is one of this family.
    ///
    /// # Errors
    /// One sentence, where it says more than the family has, or the problem is not gemm.
    pub fn check(spec: &TargetSpec, problem: &Problem) -> Result<(), String> {
        if problem.name != "gemm" {
            return Err(format!("a CBLAS has no {}; cblas runs gemm", problem.name));
        }
        if !spec.model.is_empty() || !spec.settings.is_empty() {
            return Err(format!("'{spec}': cblas takes no model and no settings; name the library with --lib"));
        }
        Ok(())
    }
}

/// What CBLAS has no argument for.
fn unsupported(instance: &Instance) -> Option<String> {
    let one_of = |name: &str, least: i64| (instance.get(name) != least).then(|| instance.word(name));
    if let Some(out) = one_of("out", 0) {
        return Some(format!("out={out}: CBLAS writes its result to C"));
    }
    if let Some(batch) = one_of("batch", 1) {
        return Some(format!("batch={batch}: CBLAS computes one product"));
    }
    match real(instance) {
        Some(_) => None,
        None => Some(format!("dtype={}: the cblas target calls sgemm and dgemm", instance.word("dtype"))),
    }
}

fn real(instance: &Instance) -> Option<Real> {
    match instance.view(gemm::C)?.dtype? {
        Dtype::F32 => Some(Real::F32),
        Dtype::F64 => Some(Real::F64),
        _ => None,
    }
}

fn call(instance: &Instance, bases: &dyn Bases) -> GemmCall {
    let first = |operand: usize| {
        let bytes = instance.view(operand).map_or(0, |v| v.offsets[0] * v.element_bytes);
        bases.base(operand, 0).wrapping_offset(bytes as isize)
    };
    let factor = |name: &str| instance.word(name).parse().unwrap_or(f64::NAN);
    GemmCall {
        trans_a: instance.get("transA") == 1,
        trans_b: instance.get("transB") == 1,
        m: instance.get("m"),
        n: instance.get("n"),
        k: instance.get("k"),
        alpha: factor("alpha"),
        a: first(gemm::A),
        lda: instance.get("lda"),
        b: first(gemm::B),
        ldb: instance.get("ldb"),
        beta: factor("beta"),
        c: first(gemm::C),
        ldc: instance.get("ldc"),
    }
}

impl Target for Adapter {
    fn describe(&self) -> Description {
        let about = self.library.describe();
        let mut limits = vec![
            Narrow::OneOf { param: "dtype".into(), values: vec!["f32".into(), "f64".into()] },
            Narrow::Set { param: "out".into(), value: "C".into() },
            Narrow::Set { param: "batch".into(), value: 1.into() },
        ];
        if self.library.int_width() == IntWidth::I32 {
            let range = |name: &str| Narrow::Range { param: name.into(), min: 1, max: i32::MAX.into() };
            limits.extend(["m", "n", "k", "lda", "ldb", "ldc"].map(range));
        }
        let name = match about.version.as_str() {
            "unknown" => about.name.clone(),
            version if version.starts_with(&about.name) => version.to_owned(),
            version => format!("{} {version}", about.name),
        };
        Description {
            title: format!("{name}, {} interface, {}-bit integers", about.interface, about.int_width),
            limits,
            identity: vec![],
            model: false,
        }
    }

    fn identity(&self) -> Vec<(String, String)> {
        self.library.identity()
    }

    fn footprint(&self, instance: &Instance, caps: &Caps) -> Footprint {
        match unsupported(instance) {
            Some(why) => Footprint::Refused(why),
            None => whole_or_skipped(instance, caps),
        }
    }

    unsafe fn launch(&mut self, instance: &Instance, _footprint: &Footprint, bases: &dyn Bases) -> Launched {
        let Some(real) = real(instance) else {
            return Launched { refused: unsupported(instance), ..Launched::default() };
        };
        // SAFETY: base pointers are aligned to the element at least; the rest is the caller's promise.
        let outcome = unsafe { self.library.gemm(real, &call(instance, bases)) };
        Launched { refused: outcome.err().map(|e| e.to_string()), ..Launched::default() }
    }
}
