//! What picks the code path of a library beside the shape: settings in the name of the target.
//!
//! `cblas,core=Haswell,threads=4@/path/to/lib.so`. They are part of the target, so a finding is found again with them.

use super::identity::Version;
use super::{IntWidth, Library};
use crate::target::TargetSpec;
use std::path::Path;

/// Settings of a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The kernels to use, in the words of the library: `Haswell` of OpenBLAS, `zen3` of BLIS, `AVX2` of MKL.
    core: Option<String>,
    threads: u32,
}

/// The variables by which libraries are told. Each reads only its own, when it is loaded.
const CORE_VARIABLES: [(&str, &str); 3] =
    [("OpenBLAS", "OPENBLAS_CORETYPE"), ("BLIS", "BLIS_ARCH_TYPE"), ("MKL", "MKL_ENABLE_INSTRUCTIONS")];
/// Which of its threading libraries MKL loads.
const MKL_LAYER: &str = "MKL_THREADING_LAYER";
/// Most threads of a library.
const MOST_THREADS: u32 = 256;

impl Choice {
    /// # Errors
    /// One sentence, where a setting is not one of these.
    pub fn read(spec: &TargetSpec) -> Result<Choice, String> {
        let mut choice = Choice { core: None, threads: 1 };
        for (name, value) in &spec.settings {
            match name.as_str() {
                "core" => choice.core = Some(value.clone()),
                "threads" => match value.parse() {
                    Ok(n @ 1..=MOST_THREADS) => choice.threads = n,
                    _ => return Err(format!("threads={value}: write a number from 1 to {MOST_THREADS}")),
                },
                other => return Err(format!("cblas has no setting '{other}'; it has core and threads")),
            }
        }
        Ok(choice)
    }

    /// Opens the library under the settings and asks it whether it follows them. Called before the process has threads. The
    /// text is the core type that was forced upon it: by a setting, or by the variable that the library reads.
    ///
    /// # Errors
    /// One sentence, where the library cannot be opened, or says that it does something else.
    pub fn open(&self, path: &Path, int_width: Option<IntWidth>) -> Result<(Library, Option<String>), String> {
        if let Some(core) = &self.core {
            for (_, name) in CORE_VARIABLES {
                // SAFETY: this process has one thread, so nothing reads the environment meanwhile.
                unsafe { std::env::set_var(name, core) };
            }
        }
        if self.threads == 1 && std::env::var_os(MKL_LAYER).is_none() {
            // Else it wants the runtime library of Intel's compiler, for threads that nobody asked for.
            // SAFETY: as above.
            unsafe { std::env::set_var(MKL_LAYER, "SEQUENTIAL") };
        }
        let library =
            Library::open_with(path, int_width, self.threads, self.core.as_deref()).map_err(|e| e.to_string())?;
        self.core_obeyed(&library)?;
        match library.threads().has {
            _ if self.threads == 1 => {}
            None => return Err(format!("threads={}: the library has no interface for that", self.threads)),
            Some(has) if has == i64::from(self.threads) => {}
            Some(has) => {
                return Err(format!("threads={}: the library has {has}; leave out the setting", self.threads));
            }
        }
        let version = library.version();
        let forced = match &self.core {
            // In the library's own words, so that one core type has one name.
            Some(wanted) if version.name == "MKL" => Some(wanted.clone()),
            Some(_) => version.core,
            None => forced_outside(&version),
        };
        Ok((library, forced))
    }

    fn core_obeyed(&self, library: &Library) -> Result<(), String> {
        let Some(wanted) = &self.core else { return Ok(()) };
        let version = library.version();
        match &version.core {
            None => Err(format!("core={wanted}: {} has no choice of core types; leave out the setting", version.name)),
            Some(core) if is_core(version.name, core, wanted) => Ok(()),
            Some(core) => Err(format!(
                "core={wanted}: {} uses {core} instead; name a core type that it has and this processor can run",
                version.name
            )),
        }
    }
}

/// The core type that the user's environment names, where the library took it: some names it does not know. What a target's
/// name cannot hold is left to the environment.
fn forced_outside(version: &Version) -> Option<String> {
    let (_, variable) = CORE_VARIABLES.iter().find(|(brand, _)| *brand == version.name)?;
    let wanted = std::env::var(variable).ok()?;
    let core = version.core.as_ref()?;
    let name = match version.name {
        // A number, of which every one is taken.
        "BLIS" if wanted.parse::<u32>().is_ok() => core.clone(),
        _ if !is_core(version.name, core, &wanted) => return None,
        "MKL" => wanted,
        _ => core.clone(),
    };
    name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)).then_some(name)
}

/// Whether what a library says of its core type is the one that was asked for.
fn is_core(brand: &str, says: &str, wanted: &str) -> bool {
    let plain = |text: &str| text.to_ascii_lowercase().replace(['-', '_', '.', ' '], "");
    match brand {
        // A sentence about instructions.
        "MKL" => plain(says).contains(&format!("({})", plain(&format!("Intel(R) {wanted}")))),
        _ => plain(says) == plain(wanted),
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_type_is_compared_in_the_words_of_each_library() {
        assert!(is_core("OpenBLAS", "SkylakeX", "SKYLAKEX") && !is_core("OpenBLAS", "Prescott", "Haswell"));
        assert!(is_core("BLIS", "zen3", "zen3"));
        let avx2 = "Intel(R) Advanced Vector Extensions 2 (Intel(R) AVX2) enabled processors";
        let avx512 = "Intel(R) Advanced Vector Extensions 512 (Intel(R) AVX-512) enabled processors";
        assert!(is_core("MKL", avx2, "AVX2") && is_core("MKL", avx512, "AVX512") && !is_core("MKL", avx512, "AVX2"));
    }

    #[test]
    fn settings_are_read_or_refused_in_one_sentence() {
        let read = |text: &str| Choice::read(&text.parse().unwrap());
        assert_eq!(read("cblas").unwrap(), Choice { core: None, threads: 1 });
        let choice = read("cblas,core=SkylakeX,threads=2").unwrap();
        assert_eq!(choice, Choice { core: Some("SkylakeX".to_owned()), threads: 2 });
        for bad in ["cblas,threads=0", "cblas,threads=many", "cblas,tile=8x8"] {
            let why = read(bad).unwrap_err();
            assert!(!why.contains('\n') && why.len() > 10, "{why}");
        }
    }
}
