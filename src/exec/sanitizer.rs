//! A third opinion on a fault of a GPU: the case once more, under NVIDIA's compute-sanitizer.

use super::pool::{Pool, Settings};
use super::probe::ProbeError;
use super::verdict::{Fault, Verdict};
use super::worker::WorkerSpec;
use crate::device::Device;
use crate::evidence::sanitizer::{self, Said};
use crate::problem::Case;
use crate::target::load;
use crate::worker::Layout;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const TOOL: &str = "compute-sanitizer";
/// The tool makes a start take seconds, and a case a hundred times as long.
const PATIENCE: Duration = Duration::from_secs(120);

/// Where the tool lies: in PATH, or in a toolkit.
pub fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/local/cuda/bin".into()]);
    folders.map(|folder| folder.join(TOOL)).find(|file| file.is_file())
}

/// Runs a case under the tool and puts what it says into the fault: the exact address, the instruction, the thread. Where it
/// contradicts what was known, the fault stays and the contradiction is returned, as one sentence; so is any reason why the
/// tool says nothing.
///
/// # Errors
/// Where the run was interrupted.
pub fn sharpen(pool: &Pool, case: &Case, seed: u64, verdict: &mut Verdict) -> Result<Option<String>, ProbeError> {
    let Verdict::Fault(fault) = verdict else { return Ok(None) };
    if load::device(&pool.spec().target) != Device::Cuda {
        return Ok(Some(format!("{TOOL} looks at GPUs only, and this target runs on the host")));
    }
    let Some(tool) = find() else {
        return Ok(Some(format!("{TOOL} was not found in PATH; it comes with the CUDA toolkit")));
    };
    let log = std::env::temp_dir().join(format!("shrinkfault-{}-sanitizer.log", std::process::id()));
    let said = ask(pool, case, seed, &tool, &log);
    let _ = std::fs::remove_file(&log);
    match said {
        Ok(Some((said, hit))) => Ok(join(fault, said, hit)),
        Ok(None) => Ok(Some(format!("{TOOL} saw no bad access"))),
        Err(ProbeError::Interrupted) => Err(ProbeError::Interrupted),
        Err(e) => Ok(Some(format!("{TOOL} could not be asked: {e}"))),
    }
}

type Place = Option<super::verdict::Hit>;

fn ask(pool: &Pool, case: &Case, seed: u64, tool: &Path, log: &Path) -> Result<Option<(Said, Place)>, ProbeError> {
    let wrapper = [
        tool.as_os_str().to_owned(),
        "--log-file".into(),
        log.as_os_str().to_owned(),
        "--target-processes".into(),
        "all".into(),
    ];
    let spec = WorkerSpec { wrapper: wrapper.to_vec(), start_timeout: PATIENCE, ..pool.spec().clone() };
    let settings = Settings { jobs: 1, until: None, case_timeout: PATIENCE, ..pool.settings().clone() };
    let under = Pool::start(spec, Arc::clone(pool.described()), settings, pool.interrupt().clone())?;
    let arena = under.hello().arena;
    // The tool changes how the run ends; only its log counts.
    under.probe(case, seed, false)?;
    drop(under);
    let Some(said) = std::fs::read_to_string(log).ok().and_then(|text| sanitizer::parse(&text)) else {
        return Ok(None);
    };
    let instance = pool.described().instance(case.clone()).map_err(|e| ProbeError::Setup(e.to_string()))?;
    let layout = Layout::plan(&arena, &[&instance]).map_err(|e| ProbeError::Setup(e.to_string()))?;
    let hit = layout.locate(0, &instance, said.address);
    Ok(Some((said, hit)))
}

/// Makes the fault exact where both agree.
fn join(fault: &mut Fault, said: Said, hit: Place) -> Option<String> {
    let place = |hit: &Place| hit.as_ref().map(|h| (h.operand.clone(), h.copy, h.place));
    let same_page = |known: u64, page: u64| said.address / page == known / page;
    let agrees = match (fault.address, fault.page) {
        (Some(known), Some(page)) => {
            same_page(known, page) || (fault.hit.is_some() && place(&fault.hit) == place(&hit))
        }
        (Some(known), None) => known == said.address,
        (None, _) => true,
    } && fault.access.is_none_or(|a| a == said.access);
    if !agrees {
        return Some(format!("{TOOL} names another access: {:#x}, by {}", said.address, said.code));
    }
    fault.address = Some(said.address);
    fault.page = None;
    fault.access = Some(said.access);
    fault.hit = hit;
    fault.code = Some(said.code);
    fault.channel.push_str(&format!("; the byte from {TOOL}"));
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Access;

    fn said(address: u64) -> Said {
        Said { address, access: Access::Read, code: "gemm+0x10".to_owned() }
    }

    fn page(address: u64) -> Fault {
        let channel = "log".to_owned();
        Fault { address: Some(address), page: Some(4096), access: Some(Access::Read), channel, ..Fault::default() }
    }

    #[test]
    fn a_byte_in_the_known_page_makes_the_fault_exact() {
        let mut fault = page(0x5000);
        assert_eq!(join(&mut fault, said(0x5ffc), None), None);
        assert_eq!((fault.address, fault.page), (Some(0x5ffc), None));
        assert!(fault.channel.contains(TOOL) && fault.code.is_some());
    }

    #[test]
    fn a_contradiction_changes_nothing_and_is_told() {
        let mut fault = page(0x5000);
        assert!(join(&mut fault, said(0x9000), None).unwrap().contains("0x9000"));
        let mut other = Fault { access: Some(Access::Write), ..page(0x5000) };
        assert!(join(&mut other, said(0x5004), None).is_some());
        assert_eq!((fault, other.address), (page(0x5000), Some(0x5000)));
    }
}
