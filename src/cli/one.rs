//! What `run` and `shrink` share: from what the user named to a case on a pool.

use super::args::{Profile, RunArgs};
use super::exit::Failure;
use super::output;
use super::session::{MODEL_WORK, Request, Session, Subject};
use crate::finding::{CaseInput, Catalog, Environment, Facts, store};
use crate::manifest::Manifest;
use crate::problem::{Assignment, Case, Narrow, Placement, Problem, Role, Value};
use crate::regress::comparable;
use crate::report::stdout::aside;
use crate::target::{Caps, TargetSpec, cblas};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A case and the session it runs in.
pub struct One {
    pub session: Session,
    pub input: CaseInput,
    pub case: Case,
}

/// Reads the case, opens its target, and applies what the command line overrides.
///
/// # Errors
/// One sentence and its exit status.
pub fn open(args: &RunArgs, profile: Profile, time: Option<Duration>) -> Result<One, Failure> {
    let folders = [store::findings(&args.out), args.regressions.clone()];
    let given = args.manifest.as_deref().map(Manifest::read).transpose().map_err(Failure::usage)?.map(Arc::new);
    let catalog = Catalog::with(given.clone());
    let mut input = CaseInput::read(&args.case, None, &folders, &catalog).map_err(Failure::usage)?;
    let subject = subject(&input, given.as_ref())?;
    let changed = override_params(&mut input, args);
    let filed = input.finding.as_ref().map(|f| f.facts().clone());
    let lib = match &args.library.lib[..] {
        [] => None,
        [lib] => Some(lib.clone()),
        _ => return Err(Failure::usage("name one --lib; only run compares several")),
    };
    let target = match (&args.target, &input.target) {
        (Some(word), _) => word.clone(),
        _ if input.manifest.is_some() => "auto".to_owned(),
        // What --lib names takes the place of the finding's library; its settings stay.
        (None, Some(spec)) if lib.is_some() => spec.clone().with_library(None).to_string(),
        (None, Some(spec)) => library_of(spec, filed.as_ref()),
        (None, None) => "auto".to_owned(),
    };
    let library = super::args::Library { lib, int_width: args.library.int_width };
    let session = Session::open(Request {
        subject,
        target: &target,
        library: &library,
        pins: &args.pins,
        also: pins_of(filed.as_ref(), args),
        profile: if is_packed(&input, args) { Profile::Packed } else { profile },
        exec: &args.exec,
        time,
        work: (Caps::default().work, MODEL_WORK),
    })?;
    for (name, value) in &args.knob {
        input.knobs.insert(name.clone(), Value::from_word(value));
    }
    if let Some(filed) = filed.as_ref().filter(|_| !changed.is_empty()) {
        follow(&mut input, &filed.minimal.params, &changed, session.problem());
    }
    let case = input.case(session.problem(), Placement::END);
    let mut case =
        case.map_err(|e| Failure::usage(format!("{e}; --set NAME=VALUE changes a parameter of the case")))?;
    if let Some(filed) = filed.as_ref().filter(|_| !args.compared) {
        let now = Environment::read("cpu", &session.pool.hello().description);
        for difference in comparable::differences(&filed.environment, &now) {
            aside!("warning: another environment than the finding's: {difference}");
        }
    }
    if let Some(placement) = args.placement {
        if session.described.placed_by_program {
            return Err(Failure::usage("the program places its operands itself; leave out --placement"));
        }
        case.placement = placement;
    }
    if let Some(why) = session.pool.lacks(&case)? {
        return Err(Failure::usage(why));
    }
    Ok(One { session, input, case })
}

/// The problem of a case with where its target comes from; says so where a manifest changed since.
fn subject(input: &CaseInput, given: Option<&Arc<Manifest>>) -> Result<Subject, Failure> {
    let Some(manifest) = &input.manifest else {
        return match given {
            Some(m) => Err(Failure::usage(format!(
                "{} is a case of {}, not of {}; leave out --manifest",
                input.source,
                input.problem.name,
                m.name()
            ))),
            None => Ok(Subject::Builtin(super::session::builtin(&input.problem.name)?)),
        };
    };
    if let Some(m) = given.filter(|m| m.name() != manifest.name()) {
        let (case, other) = (manifest.name(), m.name());
        return Err(Failure::usage(format!("{} is a case of {case}, but --manifest describes {other}", input.source)));
    }
    if let Some(change) = input.target.as_ref().and_then(|t| manifest.change_since(t)) {
        aside!("warning: {change}");
    }
    Ok(Subject::Manifest(Arc::clone(manifest)))
}

/// --set and --dtype replace what the file names; the names of what they replace.
fn override_params(input: &mut CaseInput, args: &RunArgs) -> BTreeSet<String> {
    let mut changed = BTreeMap::new();
    for pin in &args.pins.set {
        if let Narrow::Set { param, value } = pin {
            changed.insert(param.clone(), value.clone());
        }
    }
    if let Some(dtype) = &args.pins.dtype {
        changed.insert("dtype".to_owned(), Value::Text(dtype.clone()));
    }
    let names = changed.keys().cloned().collect();
    input.named.extend(changed);
    names
}

/// A finding names every parameter: those that a change forces along, or that lose or gain their meaning by it, are not
/// held to what the file says. Where nothing helps, the case says itself what is wrong with it.
fn follow(input: &mut CaseInput, minimal: &Assignment, changed: &BTreeSet<String>, problem: &Problem) {
    let mut values = minimal.clone();
    let mut held = vec![false; problem.params.len()];
    for name in changed {
        let Some(i) = problem.param(name) else { return };
        let Some(value) = input.named.get(name).and_then(|v| problem.params[i].store(v).ok()) else { return };
        (values[i], held[i]) = (value, true);
    }
    if let Some(values) = problem.follow(&values, |i| held[i]) {
        input.named = problem.show(&values).into_iter().collect();
    }
}

/// A finding of the packed profile stays packed, unless a stride is set by hand.
fn is_packed(input: &CaseInput, args: &RunArgs) -> bool {
    let stride = |pin: &Narrow| match pin {
        Narrow::Set { param, .. } => {
            input.problem.param(param).is_some_and(|i| input.problem.params[i].role == Role::Stride)
        }
        _ => false,
    };
    let packed = input.finding.as_ref().is_some_and(|f| f.facts().profile == output::profile_word(Profile::Packed));
    packed && !args.pins.set.iter().any(stride)
}

/// The pins under which a finding was made hold for it, unless the command line says otherwise.
fn pins_of(filed: Option<&Facts>, args: &RunArgs) -> Vec<Narrow> {
    let name = |n: &Narrow| match n {
        Narrow::Set { param, .. } | Narrow::Range { param, .. } | Narrow::OneOf { param, .. } => Some(param.clone()),
        Narrow::Require { .. } => None,
    };
    let mut said: Vec<String> = args.pins.set.iter().chain(&args.pins.range).filter_map(name).collect();
    said.extend(args.pins.dtype.as_ref().map(|_| "dtype".to_owned()));
    let pins = filed.map(|f| f.pins.clone()).unwrap_or_default();
    pins.into_iter().filter(|p| name(p).is_none_or(|n| !said.contains(&n))).collect()
}

/// The target of a finding names its library by file; its path is in the environment, or the file lies in one of the
/// usual folders. The name alone, where it is not on this machine.
pub fn library_of(spec: &TargetSpec, filed: Option<&Facts>) -> String {
    let mut spec = spec.clone();
    if let (Some(file), Some(facts)) = (&spec.library, filed) {
        let paths = facts.environment.target.iter().map(|(_, v)| at_home(v));
        let here = paths.filter(|p| p.file_name().is_some_and(|n| n == file.as_str())).find(|p| p.is_file());
        if let Some(path) = here.or_else(|| cblas::find_file(file)) {
            spec.library = Some(path.display().to_string());
        }
    }
    spec.to_string()
}

/// Findings write `~` for the home folder.
fn at_home(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => PathBuf::from(path),
    }
}
