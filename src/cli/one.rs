//! What `run` and `shrink` share: from what the user named to a case on a pool.

use super::args::{Profile, RunArgs};
use super::exit::Failure;
use super::session::{Request, Session};
use crate::finding::{CaseInput, Facts, store};
use crate::problem::{Case, Narrow, Placement, Value};
use crate::target::Caps;
use std::path::PathBuf;
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
    let folders = [store::findings(&args.exec.out), PathBuf::from(store::REGRESSIONS)];
    let mut input = CaseInput::read(&args.case, None, &folders).map_err(Failure::usage)?;
    override_params(&mut input, args);
    let problem = input.problem.name.clone();
    let filed = input.finding.as_ref().map(|f| f.facts().clone());
    let target = match (&args.target, &input.target) {
        (Some(word), _) => word.clone(),
        (None, Some(spec)) => library_of(spec, filed.as_ref()),
        (None, None) => "auto".to_owned(),
    };
    let library = super::args::Library { lib: args.library.lib.clone(), int_width: args.library.int_width };
    let session = Session::open(Request {
        problem: &problem,
        target: &target,
        library: &library,
        pins: &args.pins,
        also: pins_of(filed.as_ref(), args),
        profile,
        exec: &args.exec,
        time,
        work: (Caps::default().work, Caps::default().work),
    })?;
    for (name, value) in &args.knob {
        input.knobs.insert(name.clone(), Value::from_word(value));
    }
    let mut case = input.case(session.problem(), Placement::END).map_err(Failure::usage)?;
    if let Some(placement) = args.placement {
        case.placement = placement;
    }
    check_knobs(&session, &case)?;
    Ok(One { session, input, case })
}

/// A knob that the target does not have, or a value that it does not take, would silently be another case.
fn check_knobs(session: &Session, case: &Case) -> Result<(), Failure> {
    if case.knobs.is_empty() {
        return Ok(());
    }
    let known = session.pool.knobs(&case.params)?;
    for (name, value) in &case.knobs {
        let Some(values) = known.get(name) else {
            let names: Vec<&str> = known.keys().map(String::as_str).collect();
            let has = if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) };
            return Err(Failure::usage(format!("{} has no knob '{name}' for this case; {has}", session.target)));
        };
        if !values.contains(value) {
            let values: Vec<String> = values.iter().map(Value::to_string).collect();
            return Err(Failure::usage(format!("knob {name} = {value} is not one of {}", values.join(", "))));
        }
    }
    Ok(())
}

/// --set and --dtype replace what the file names.
fn override_params(input: &mut CaseInput, args: &RunArgs) {
    for pin in &args.pins.set {
        if let Narrow::Set { param, value } = pin {
            input.named.insert(param.clone(), value.clone());
        }
    }
    if let Some(dtype) = &args.pins.dtype {
        input.named.insert("dtype".to_owned(), Value::Text(dtype.clone()));
    }
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

/// The target of a finding names its library by file; its path is in the environment.
fn library_of(spec: &crate::target::TargetSpec, filed: Option<&Facts>) -> String {
    let mut spec = spec.clone();
    if let (Some(file), Some(facts)) = (&spec.library, filed) {
        let paths = facts.environment.target.iter().map(|(_, v)| v);
        let here = paths.filter(|v| v.ends_with(file.as_str())).find(|v| std::path::Path::new(v).is_file());
        if let Some(path) = here {
            spec.library = Some(path.clone());
        }
    }
    spec.to_string()
}
