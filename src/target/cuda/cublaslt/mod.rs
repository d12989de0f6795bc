//! cublasLt as a target: the heuristic at every rank, and every algorithm of the library by its configuration.
//!
//! Which code runs is a matter of three knobs. `algo` is `heuristic`, a place `#N` in the list of the case's type, or a whole
//! configuration (`config`). A hunt asks for knobs once and draws cases of all types from them, so it is offered places: a
//! place names some algorithm of whatever type. What ran is recorded as a configuration, and is a value of the same knob.
//! `rank` is the place among the proposals of the heuristic, `workspace` the bytes that an algorithm may use.

mod abi;
mod algo;
mod call;
mod config;
mod layout;
mod text;

pub use text::call_text;

use self::algo::Library;
use self::call::{RANKS, Wanted};
use self::config::{Choice, Config, HEURISTIC};
use self::layout::Described;
use super::blas::{self, Failure, Gemm, Identity, SUCCESS, Scalar, Side, TYPES, Type, version_text};
use crate::device::cuda::{Buffer, Gpu, libraries};
use crate::problem::{Instance, Narrow, Problem, Value};
use crate::target::{Bases, Caps, Description, Footprint, Launched, Target, TargetSpec, whole_or_skipped};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::ptr;
use std::rc::Rc;

pub const FAMILY: &str = "cublaslt";

/// Bytes of workspace, the plainest first: what PyTorch gives on a Hopper, what cublasLt's samples give, none.
const WORKSPACES: [i64; 3] = [32 << 20, 4 << 20, 0];
/// Extent of the products with which configurations are tried for the list.
const SAMPLE: i64 = 512;

/// A loaded cublasLt.
pub struct CublasLt {
    library: Library,
    identity: Identity,
    path: PathBuf,
    gpu: Rc<Gpu>,
    workspace: Buffer,
    /// Configurations by type, once they have been asked for.
    listed: RefCell<HashMap<&'static str, Rc<[Config]>>>,
}

impl CublasLt {
    /// Opens the library that the spec names, or the first one found.
    ///
    /// # Errors
    /// One sentence, where there is none, it lacks a function or it does not start.
    pub fn load(spec: &TargetSpec, problem: &Problem, gpu: &Rc<Gpu>) -> Result<CublasLt, String> {
        blas::check(spec, problem)?;
        let opened = libraries::open("cublasLt", spec.library.as_deref().map(Path::new))?;
        let api = abi::Api::load(opened.library, &opened.path)?;
        let mut handle = ptr::null_mut();
        // SAFETY: `handle` outlives the call; the context of the card is current.
        let status = unsafe { (api.create)(&mut handle) };
        if status != SUCCESS {
            return Err(format!("{} does not start: {}", opened.path.display(), status.text("cublasLtCreate")));
        }
        let property = |which| {
            let mut value = -1;
            // SAFETY: `value` outlives the call.
            if unsafe { (api.property)(which, &mut value) } == SUCCESS { value } else { -1 }
        };
        let version = version_text(property(0), property(1), property(2));
        Ok(CublasLt {
            identity: Identity { name: "cublasLt", version },
            library: Library { api, handle },
            path: opened.path,
            gpu: Rc::clone(gpu),
            workspace: gpu.buffer(WORKSPACES[0] as u64).map_err(|e| e.to_string())?,
            listed: RefCell::default(),
        })
    }

    /// The configurations of a type.
    fn listed(&self, of: &'static Type) -> Rc<[Config]> {
        let mut listed = self.listed.borrow_mut();
        let list = listed.entry(of.dtype).or_insert_with(|| {
            let samples = [[1, 0], [0, 0]].map(|operations| Described::new(&self.library.api, &sample(of, operations)));
            self.library.list(of, &samples.into_iter().flatten().collect::<Vec<_>>()).into()
        });
        Rc::clone(list)
    }

    /// # Safety
    /// As for [`Target::launch`].
    unsafe fn run(&self, instance: &Instance, bases: &dyn Bases, launched: &mut Launched) -> Result<(), Failure> {
        let gemm = Gemm::new(instance, bases).map_err(Failure::Refused)?;
        let wanted = wanted(instance).map_err(Failure::Refused)?;
        let described = Described::new(&self.library.api, &gemm)?;
        let listed = match wanted.choice {
            Choice::Listed(_) => self.listed(gemm.of),
            _ => Rc::from([]),
        };
        let chosen = call::choose(&self.library, &described, &gemm, &wanted, &listed)?;
        (launched.kernel, launched.resolved) = (Some(chosen.kernel()), chosen.resolved());
        // SAFETY: the workspace has the most bytes that a case may ask for; the rest is passed on.
        unsafe { call::run(&self.library, &described, &gemm, &chosen, &self.workspace, wanted.workspace_bytes) }
    }
}

/// A product of square packed matrices, with aligned pointers that nobody follows.
fn sample(of: &'static Type, operations: [u32; 2]) -> Gemm {
    let side = Side { address: 0, rows: SAMPLE, columns: SAMPLE, leading: SAMPLE, stride: 0, element_bytes: 1 };
    let factor = |value| Scalar::new(value, of.scale);
    let (m, n, k, batch) = (SAMPLE, SAMPLE, SAMPLE, 1);
    Gemm { of, operations, m, n, k, batch, a: side, b: side, c: side, d: None, alpha: factor(1), beta: factor(0) }
}

/// The knobs of a case.
fn wanted(instance: &Instance) -> Result<Wanted, String> {
    let knob = |name: &str| instance.case.knobs.get(name);
    let number = |name: &str, default: i64, most: i64| match knob(name) {
        None => Ok(default),
        Some(Value::Int(value)) if (0..=most).contains(value) => Ok(*value),
        Some(other) => Err(format!("{name}={other} is no number from 0 to {most}")),
    };
    Ok(Wanted {
        choice: knob("algo").map_or(Ok(Choice::Heuristic), |value| value.to_string().parse())?,
        rank: number("rank", 0, RANKS as i64 - 1)? as usize,
        workspace_bytes: number("workspace", WORKSPACES[0], WORKSPACES[0])? as u64,
    })
}

fn limits() -> Vec<Narrow> {
    vec![
        blas::dtypes(TYPES.iter()),
        // CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT is an int.
        Narrow::Range { param: "batch".into(), min: 1, max: i32::MAX.into() },
    ]
}

impl Target for CublasLt {
    fn describe(&self) -> Description {
        let title = format!("cublasLt {} on {}", self.identity.version, self.gpu.name);
        Description { title, limits: limits(), ..Description::default() }
    }

    fn identity(&self) -> Vec<(String, String)> {
        self.identity.facts(&self.path, &self.gpu)
    }

    fn knobs(&self, instance: &Instance) -> BTreeMap<String, Vec<Value>> {
        // As many places as the longest list has: each configuration of each type has one.
        let places = TYPES.iter().map(|of| self.listed(of).len()).max().unwrap_or(0);
        let mut algos: Vec<Value> = vec![HEURISTIC.into()];
        algos.extend((0..places).map(|place| Value::from(format!("#{place}").as_str())));
        if let Some(named) = instance.case.knobs.get("algo").filter(|v| v.to_string().parse::<Config>().is_ok()) {
            algos.push(named.clone());
        }
        BTreeMap::from([
            ("algo".to_owned(), algos),
            ("rank".to_owned(), (0..RANKS as i64).map(Value::Int).collect()),
            ("workspace".to_owned(), WORKSPACES.map(Value::Int).into()),
        ])
    }

    fn footprint(&self, instance: &Instance, caps: &Caps) -> Footprint {
        match wanted(instance) {
            Err(why) => Footprint::Refused(why),
            Ok(_) => whole_or_skipped(instance, caps),
        }
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
    use super::super::blas::testing::instance;
    use super::*;
    use crate::problem::gemm;

    fn with(knobs: &[(&str, Value)]) -> Result<Wanted, String> {
        let mut instance = instance(&[]);
        instance.case.knobs = knobs.iter().map(|(n, v)| ((*n).to_owned(), v.clone())).collect();
        wanted(&instance)
    }

    #[test]
    fn a_case_without_knobs_takes_the_first_proposal_with_the_most_workspace() {
        let plain = Wanted { choice: Choice::Heuristic, rank: 0, workspace_bytes: 32 << 20 };
        assert_eq!(with(&[]), Ok(plain.clone()));
        assert_eq!(with(&[("algo", "heuristic".into()), ("rank", 0.into())]), Ok(plain));
    }

    #[test]
    fn a_knob_that_no_case_has_is_refused_in_one_sentence() {
        for bad in
            [("algo", Value::from("fast")), ("algo", 3.into()), ("rank", 8.into()), ("workspace", (64 << 20).into())]
        {
            let why = with(std::slice::from_ref(&bad)).unwrap_err();
            assert!(why.contains(bad.0) && !why.contains('\n'), "{why}");
        }
        let wanted = with(&[("algo", "#7".into()), ("workspace", 0.into())]).unwrap();
        assert_eq!((wanted.choice, wanted.workspace_bytes), (Choice::Listed(7), 0));
    }

    #[test]
    fn the_limits_leave_every_type() {
        let problem = gemm::problem().unwrap().narrowed(&limits()).unwrap();
        let dtype = problem.param("dtype").unwrap();
        assert_eq!(problem.params[dtype].choices().len(), TYPES.len());
        assert_eq!(problem.params[problem.param("batch").unwrap()].most(), i64::from(i32::MAX));
    }
}
