//! Built-in models: kernels written as for a GPU that run on the CPU, each with one planted defect, and their clean twins.
//!
//! A kernel loads and stores through raw pointers at the base addresses that the worker gives and knows nothing else of
//! the memory: what comes of a wrong offset is up to the pages it lands on. Offsets are computed in the integer width
//! under test, in arithmetic of its own. `docs/sim-models.md` lists the models and the rule of each.

pub mod allgather;
mod element;
pub mod gemm;
mod grid;
pub mod index;
mod registry;
mod sample;
mod settings;
#[cfg(test)]
pub(crate) mod testing;

pub use gemm::models::Operand;
pub use registry::{GemmKind, Kind, ModelInfo, models};
pub use settings::{Settings, names as setting_names};

use super::{Description, Footprint, Target, TargetSpec};
use crate::problem::contents::mix;
use crate::problem::{Instance, Problem};
use grid::Groups;

/// Loads a model of the problem; the default one where the spec names none.
///
/// # Errors
/// One sentence, where there is no such model or a setting is not one of it.
pub fn load(spec: &TargetSpec, problem: &Problem) -> Result<Box<dyn Target>, String> {
    if spec.library.is_some() {
        return Err(format!("'{spec}': a sim model uses no library; leave out the @ and what follows"));
    }
    let model = registry::find(&problem.name, &spec.model)?;
    let settings = Settings::read(model, &spec.settings)?;
    Ok(match model.kind {
        Kind::Gemm(kind) => Box::new(gemm::GemmModel::new(kind, settings)),
        Kind::AllGather { partitioned, wide } => Box::new(allgather::AllGatherModel::new(partitioned, wide, settings)),
    })
}

/// The model that runs where nobody names a target; `None` where the problem has no model.
pub fn default_spec(problem: &str) -> Option<TargetSpec> {
    let model = models(problem).first()?;
    let operand = model.operands.first().map(|o| ("operand".to_owned(), format!("{o:?}")));
    let settings = operand.into_iter().collect();
    Some(TargetSpec { family: "sim".to_owned(), model: model.name.to_owned(), settings, library: None })
}

fn describe(settings: &Settings) -> Description {
    let model = settings.model;
    Description {
        title: format!("built-in model {}, planted defect: {}", settings.kernel(), model.defect),
        limits: match model.kind {
            Kind::Gemm(_) => gemm::limits(),
            Kind::AllGather { .. } => vec![],
        },
        identity: vec![],
        model: true,
        core: None,
    }
}

/// The geometry of a kernel is what picks a code path: as the core type of a library, it is no part of the defect.
fn identity(settings: &Settings) -> Vec<(String, String)> {
    let tile = settings.tile;
    let kernel = match settings.model.kind {
        Kind::Gemm(_) => format!("tiles of {}x{}, unroll {}", tile.m, tile.n, tile.unroll),
        Kind::AllGather { .. } => format!("tiles of {}x{}", tile.m, tile.n),
    };
    vec![("name".to_owned(), "built-in model".to_owned()), ("kernel".to_owned(), kernel)]
}

/// The work-groups that a footprint leaves to run; `None` where there is nothing to launch.
fn groups_of(footprint: &Footprint, total: u64) -> Option<Groups<'_>> {
    match footprint {
        Footprint::Whole => Some(Groups::All(total)),
        Footprint::Part { groups, .. } => Some(Groups::Only(groups)),
        Footprint::Refused(_) | Footprint::Skipped(_) => None,
    }
}

/// A number that depends on the shape alone.
fn seed_of(instance: &Instance) -> u64 {
    instance.case.params.0.iter().fold(0, |seed, v| mix(seed, *v as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::BUILTINS;

    #[test]
    fn every_listed_model_loads_and_describes_itself_as_a_model() {
        for problem in BUILTINS {
            let described = problem.problem();
            assert!(!models(problem.name).is_empty());
            for model in models(problem.name) {
                let spec: TargetSpec = format!("sim:{},seed=3", model.name).parse().unwrap();
                let target = load(&spec, &described).unwrap();
                let description = target.describe();
                assert!(description.model && description.title.contains(model.name));
                assert!(description.title.contains(model.defect));
                assert_eq!(model.clean, model.defect.starts_with("none"));
                assert_eq!(model.problem, problem.name);
                described.narrowed(&description.limits).unwrap();
            }
            let spec = default_spec(problem.name).unwrap();
            assert!(load(&spec, &described).is_ok(), "{spec}");
        }
        assert_eq!(default_spec("gemm").unwrap().to_string(), "sim:i32-sum,operand=B");
        assert_eq!(default_spec("allgather").unwrap().to_string(), "sim:persistent-i32");
    }

    #[test]
    fn a_model_of_another_problem_is_refused() {
        let gemm = BUILTINS[0].problem();
        let error = |text: &str| load(&text.parse().unwrap(), &gemm).err().unwrap();
        assert!(error("sim:persistent-i32").contains("no sim model 'persistent-i32' of gemm"));
        assert!(error("sim:clean@/usr/lib/libblas.so").contains("no library"));
        assert!(error("sim:clean,operand=A").contains("no setting 'operand'"));
    }
}
