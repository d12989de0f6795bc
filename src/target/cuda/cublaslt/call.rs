//! One product: the algorithm is chosen, then it runs.

use super::abi::{Algo, HeuristicResult};
use super::algo::Library;
use super::config::{Choice, Config};
use super::layout::{Described, alignments, preference};
use crate::device::cuda::Buffer;
use crate::problem::{Knobs, Value};
use crate::target::cuda::blas::{Failure, Gemm, ask, done};
use std::ffi::c_int;
use std::ptr;

/// Algorithms that the heuristic is asked for.
pub const RANKS: usize = 8;

/// The knobs of one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub choice: Choice,
    /// Place among the proposals of the heuristic.
    pub rank: usize,
    /// Bytes of workspace that the algorithm may use.
    pub workspace_bytes: u64,
}

/// An algorithm that takes the case.
#[derive(Debug, Clone, Copy)]
pub struct Chosen {
    pub algo: Algo,
    pub config: Config,
    /// Bytes of workspace that it uses.
    pub workspace_bytes: u64,
}

impl Chosen {
    /// `algorithm 66:20:36:1:0:0:0:0:3`.
    pub fn kernel(&self) -> String {
        format!("algorithm {}", self.config)
    }

    /// What runs, part by part; `algo` is the value of the knob that names it.
    pub fn resolved(&self) -> Knobs {
        let c = &self.config;
        let numbers = [
            ("algorithm", i64::from(c.id)),
            ("tile", c.tile.into()),
            ("stages", c.stages.into()),
            ("splitk", c.splitk.into()),
            ("swizzle", c.swizzle.into()),
            ("workspace", self.workspace_bytes as i64),
        ];
        let mut all: Knobs = numbers.map(|(name, value)| (name.to_owned(), Value::Int(value))).into();
        all.insert("algo".to_owned(), Value::Text(c.to_string()));
        all
    }
}

/// The algorithm that the knobs choose for a product. `listed` are the configurations of its type.
///
/// # Errors
/// Refused, where there is none.
pub fn choose(
    library: &Library,
    described: &Described,
    gemm: &Gemm,
    wanted: &Wanted,
    listed: &[Config],
) -> Result<Chosen, Failure> {
    let config = match wanted.choice {
        Choice::Heuristic => return propose(library, described, gemm, wanted),
        Choice::Named(config) => config,
        Choice::Listed(place) if !listed.is_empty() => listed[place as usize % listed.len()],
        Choice::Listed(_) => return Err(Failure::Refused("the library lists no algorithm for the type".to_owned())),
    };
    let algo = library.algo(gemm.of, &config)?;
    library.check_alignment(&algo, alignments(gemm))?;
    let workspace_bytes = library.check(described, &algo)?;
    if workspace_bytes > wanted.workspace_bytes {
        let allowed = wanted.workspace_bytes;
        return Err(Failure::Refused(format!(
            "{config} needs {workspace_bytes} bytes of workspace, {allowed} are allowed"
        )));
    }
    Ok(Chosen { algo, config: library.config(&algo), workspace_bytes })
}

fn propose(library: &Library, described: &Described, gemm: &Gemm, wanted: &Wanted) -> Result<Chosen, Failure> {
    let preference = preference(&library.api, gemm, wanted.workspace_bytes)?;
    let mut results = [HeuristicResult::EMPTY; RANKS];
    let mut count: c_int = 0;
    let Described { desc, a, b, c, .. } = described;
    // SAFETY: the descriptions live; the array has as many places as are said, and `count` outlives the call.
    let status = unsafe {
        (library.api.heuristic)(
            library.handle,
            desc.object,
            a.object,
            b.object,
            c.object,
            described.result().object,
            preference.object,
            RANKS as c_int,
            results.as_mut_ptr(),
            &mut count,
        )
    };
    ask("cublasLtMatmulAlgoGetHeuristic", status)?;
    let count = usize::try_from(count).unwrap_or(0).min(RANKS);
    let Some(result) = results[..count].get(wanted.rank) else {
        return Err(Failure::Refused(format!("rank={}: the heuristic proposes {count} algorithms", wanted.rank)));
    };
    ask("cublasLtMatmulAlgoGetHeuristic", result.state)?;
    let workspace_bytes = result.workspace_bytes as u64;
    Ok(Chosen { algo: result.algo, config: library.config(&result.algo), workspace_bytes })
}

/// Starts a product on the null stream.
///
/// # Errors
/// As its status says.
///
/// # Safety
/// Every element of the operands is mapped, or the process is there to be lost; the workspace has the bytes that the
/// algorithm may use.
pub unsafe fn run(
    library: &Library,
    described: &Described,
    gemm: &Gemm,
    chosen: &Chosen,
    workspace: &Buffer,
    workspace_bytes: u64,
) -> Result<(), Failure> {
    let Described { desc, a, b, c, .. } = described;
    let pointer = |address: u64| ptr::with_exposed_provenance_mut(address as usize);
    let space = if workspace_bytes == 0 { ptr::null_mut() } else { pointer(workspace.address) };
    // SAFETY: the descriptions and factors outlive the call; the rest is the caller's promise.
    let status = unsafe {
        (library.api.matmul)(
            library.handle,
            desc.object,
            gemm.alpha.pointer(),
            pointer(gemm.a.address),
            a.object,
            pointer(gemm.b.address),
            b.object,
            gemm.beta.pointer(),
            pointer(gemm.c.address),
            c.object,
            pointer(gemm.result().address),
            described.result().object,
            &chosen.algo,
            space,
            workspace_bytes as usize,
            ptr::null_mut(),
        )
    };
    done("cublasLtMatmul", status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ran_names_a_value_of_the_knob_and_its_parts() {
        let config = Config { id: 66, tile: 20, stages: 36, splitk: 3, reduction: 2, cluster: 3, ..Config::default() };
        let chosen = Chosen { algo: Algo([0; 8]), config, workspace_bytes: 4096 };
        let resolved = chosen.resolved();
        assert_eq!(resolved["algo"], Value::from("66:20:36:3:2:0:0:0:3"));
        assert_eq!((&resolved["algorithm"], &resolved["splitk"]), (&Value::Int(66), &Value::Int(3)));
        assert_eq!(resolved["workspace"], Value::Int(4096));
        let Value::Text(text) = &resolved["algo"] else { panic!("a text") };
        assert_eq!(text.parse(), Ok(Choice::Named(config)));
    }
}
