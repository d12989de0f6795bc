//! cuBLAS as a target: `cublasGemmEx` and its batched forms, with 32-bit and with 64-bit integers.

mod abi;
mod call;
mod plan;
mod text;

pub use text::call_text;

use self::abi::{Api, Calls, Handle};
use self::call::Arrays;
use self::plan::{API, CALL, CALLS, Plan};
use super::blas::{self, Failure, Gemm, Identity, SUCCESS, TYPES, version_text};
use crate::device::cuda::{Gpu, libraries};
use crate::problem::{Instance, Narrow, Problem, Value};
use crate::target::{Bases, Caps, Description, Footprint, Launched, Target, TargetSpec, whole_or_skipped};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::ptr;
use std::rc::Rc;

pub const FAMILY: &str = "cublas";

/// A loaded cuBLAS.
pub struct Cublas {
    int: Calls<c_int>,
    /// Not in versions before 12.
    long: Option<Calls<i64>>,
    /// Keeps the library open.
    _api: Api,
    /// Lives as long as the process: a context that has failed could not give it back.
    handle: Handle,
    identity: Identity,
    path: PathBuf,
    gpu: Rc<Gpu>,
    arrays: Arrays,
}

impl Cublas {
    /// Opens the library that the spec names, or the first one found.
    ///
    /// # Errors
    /// One sentence, where there is none, it lacks a function or it does not start.
    pub fn load(spec: &TargetSpec, problem: &Problem, gpu: &Rc<Gpu>) -> Result<Cublas, String> {
        blas::check(spec, problem)?;
        let opened = libraries::open("cublas", spec.library.as_deref().map(Path::new))?;
        let path = opened.path;
        let int = Calls::<c_int>::load(&opened.library).map_err(|name| format!("{} has no {name}", path.display()))?;
        let long = Calls::<i64>::load(&opened.library).ok();
        let api = Api::load(opened.library, &path)?;
        let mut handle = ptr::null_mut();
        // SAFETY: `handle` outlives the call; the context of the card is current.
        let status = unsafe { (api.create)(&mut handle) };
        if status != SUCCESS {
            return Err(format!("{} does not start: {}", path.display(), status.text("cublasCreate")));
        }
        let property = |which| {
            let mut value = -1;
            // SAFETY: `value` outlives the call.
            if unsafe { (api.property)(which, &mut value) } == SUCCESS { value } else { -1 }
        };
        let version = version_text(property(0), property(1), property(2));
        let arrays = Arrays::new(gpu).map_err(|e| e.to_string())?;
        let identity = Identity { name: "cuBLAS", version };
        Ok(Cublas { int, long, _api: api, handle, identity, path, gpu: Rc::clone(gpu), arrays })
    }

    /// # Safety
    /// As for [`Target::launch`].
    unsafe fn run(&mut self, instance: &Instance, bases: &dyn Bases, launched: &mut Launched) -> Result<(), Failure> {
        let gemm = Gemm::new(instance, bases).map_err(Failure::Refused)?;
        if gemm.d.is_some() || gemm.of.only_lt {
            return Err(Failure::Refused("cuBLAS has no such product; cublaslt may have it".to_owned()));
        }
        let plan =
            Plan::of(instance, &gemm).and_then(|plan| plan.check(&gemm).map(|()| plan)).map_err(Failure::Refused)?;
        (launched.kernel, launched.resolved) = (Some(plan.function().to_owned()), plan.resolved());
        let (handle, gpu, arrays) = (self.handle, &self.gpu, &mut self.arrays);
        match (&self.long, plan.long) {
            // SAFETY: passed on.
            (_, false) => unsafe { call::run(&self.int, handle, gpu, arrays, plan, &gemm) },
            // SAFETY: passed on.
            (Some(long), true) => unsafe { call::run(long, handle, gpu, arrays, plan, &gemm) },
            (None, true) => Err(Failure::Refused(format!("the library has no {}", plan.function()))),
        }
    }
}

fn limits() -> Vec<Narrow> {
    vec![blas::dtypes(TYPES.iter().filter(|t| !t.only_lt)), Narrow::Set { param: "out".into(), value: "C".into() }]
}

impl Target for Cublas {
    fn describe(&self) -> Description {
        let title = format!("cuBLAS {} on {}", self.identity.version, self.gpu.name);
        Description { title, limits: limits(), ..Description::default() }
    }

    fn identity(&self) -> Vec<(String, String)> {
        self.identity.facts(&self.path, &self.gpu)
    }

    fn knobs(&self, _instance: &Instance) -> BTreeMap<String, Vec<Value>> {
        let mut widths = vec![Value::Int(32)];
        widths.extend(self.long.is_some().then_some(Value::Int(64)));
        let calls = CALLS.iter().map(|c| Value::from(c.0)).collect();
        BTreeMap::from([(CALL.to_owned(), calls), (API.to_owned(), widths)])
    }

    fn footprint(&self, instance: &Instance, caps: &Caps) -> Footprint {
        whole_or_skipped(instance, caps)
    }

    unsafe fn launch(&mut self, instance: &Instance, _footprint: &Footprint, bases: &dyn Bases) -> Launched {
        let mut launched = Launched::default();
        // SAFETY: passed on.
        match unsafe { self.run(instance, bases, &mut launched) } {
            Ok(()) => {}
            Err(Failure::Refused(why)) => launched.refused = Some(why),
            Err(Failure::Failed(how)) => launched.failed = Some(how),
        }
        launched
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::gemm;

    #[test]
    fn the_limits_leave_the_types_that_are_not_of_cublaslt_alone() {
        let problem = gemm::problem().unwrap().narrowed(&limits()).unwrap();
        let dtype = problem.param("dtype").unwrap();
        let left: Vec<String> =
            problem.params[dtype].choices().iter().map(|c| problem.params[dtype].show(*c).to_string()).collect();
        assert!(left.contains(&"tf32".to_owned()) && left.contains(&"i8_i32".to_owned()));
        assert!(!left.iter().any(|t| t.starts_with("f8")), "{left:?}");
    }
}
