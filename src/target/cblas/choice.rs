//! What picks the code path of a library beside the shape: settings in the name of the target.
//!
//! `cblas,core=Haswell,threads=4@/path/to/lib.so`. They are part of the target, so a finding is found again with them.

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

/// The variables by which OpenBLAS, BLIS and MKL are told. Each reads only its own, when it is loaded.
const CORE_VARIABLES: [&str; 3] = ["OPENBLAS_CORETYPE", "BLIS_ARCH_TYPE", "MKL_ENABLE_INSTRUCTIONS"];
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

    /// Opens the library under the settings and asks it whether it follows them. Called before the process has threads.
    ///
    /// # Errors
    /// One sentence, where the library cannot be opened, or says that it does something else.
    pub fn open(&self, path: &Path, int_width: Option<IntWidth>) -> Result<Library, String> {
        if let Some(core) = &self.core {
            for name in CORE_VARIABLES {
                // SAFETY: this process has one thread, so nothing reads the environment meanwhile.
                unsafe { std::env::set_var(name, core) };
            }
        }
        let library = Library::open_with(path, int_width, self.threads).map_err(|e| e.to_string())?;
        self.core_obeyed(&library)?;
        match library.threads().has {
            _ if self.threads == 1 => {}
            None => return Err(format!("threads={}: the library has no interface for that", self.threads)),
            Some(has) if has == i64::from(self.threads) => {}
            Some(has) => {
                return Err(format!("threads={}: the library has {has}; leave out the setting", self.threads));
            }
        }
        Ok(library)
    }

    fn core_obeyed(&self, library: &Library) -> Result<(), String> {
        let Some(wanted) = &self.core else { return Ok(()) };
        let version = library.version();
        let plain = |text: &str| text.to_ascii_lowercase().replace(['-', '_', ' '], "");
        match &version.core {
            None => Err(format!("core={wanted}: {} has no choice of core types; leave out the setting", version.name)),
            // MKL answers with a sentence about instructions.
            Some(core)
                if version.name == "MKL"
                    && plain(core).contains(&format!("({})", plain(&format!("Intel(R) {wanted}")))) =>
            {
                Ok(())
            }
            Some(core) if plain(core) == plain(wanted) => Ok(()),
            Some(core) => Err(format!(
                "core={wanted}: {} uses {core} instead; name a core type that it has and this processor can run",
                version.name
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
