//! Where CUDA's libraries lie: what the loader finds, toolkits under /usr/local, the wheels of Python.

use libloading::Library;
use std::path::{Path, PathBuf};

/// Major versions that are looked for, newest first.
const MAJORS: [u32; 3] = [13, 12, 11];

/// A library and the file that it came from.
#[derive(Debug)]
pub struct Opened {
    pub library: Library,
    pub path: PathBuf,
}

/// Opens the library `lib<stem>.so.*` that `named` names, or else the first that opens.
///
/// # Errors
/// One sentence, where the named one does not open or none is found.
pub fn open(stem: &str, named: Option<&Path>) -> Result<Opened, String> {
    if let Some(path) = named {
        return load(path).map_err(|e| format!("failed to open {}: {e}", path.display()));
    }
    let mut first = None;
    for path in candidates(stem) {
        match load(&path) {
            Ok(opened) => return Ok(opened),
            Err(e) => first = first.or(Some(e)).filter(|_| path.is_absolute()),
        }
    }
    Err(match first {
        Some(e) => format!("lib{stem} does not open: {e}"),
        None => format!(
            "lib{stem}.so was not found: install it (a CUDA toolkit, or NVIDIA's wheels for Python), or add its folder to LD_LIBRARY_PATH"
        ),
    })
}

fn load(path: &Path) -> Result<Opened, String> {
    // SAFETY: a library of CUDA; its initialisers touch no memory of this program.
    let library = unsafe { Library::new(path) }.map_err(|e| e.to_string())?;
    let path = if path.is_absolute() { path.to_owned() } else { loaded_path(path).unwrap_or(path.to_owned()) };
    Ok(Opened { library, path })
}

/// The file behind a name that the loader resolved.
fn loaded_path(name: &Path) -> Option<PathBuf> {
    let name = name.file_name()?.to_str()?;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let paths = maps.lines().filter_map(|line| line.split_once('/').map(|(_, path)| PathBuf::from(format!("/{path}"))));
    // The file is often a longer name that the short one links to.
    let fits = |path: &PathBuf| {
        path.file_name().and_then(|f| f.to_str()).is_some_and(|f| f.starts_with(name) || name.starts_with(f))
    };
    paths.into_iter().find(fits)
}

/// Names and files to try, best first.
pub fn candidates(stem: &str) -> Vec<PathBuf> {
    let names: Vec<String> = MAJORS.iter().map(|major| format!("lib{stem}.so.{major}")).collect();
    let mut all: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
    for folder in folders() {
        all.extend(names.iter().map(|n| folder.join(n)).filter(|p| p.is_file()));
    }
    all.push(PathBuf::from(format!("lib{stem}.so")));
    all
}

fn folders() -> Vec<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let mut toolkits: Vec<PathBuf> = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(variable).collect();
    toolkits.push("/usr/local/cuda".into());
    toolkits.extend(children(Path::new("/usr/local"), "cuda-"));
    let mut folders: Vec<PathBuf> =
        toolkits.iter().flat_map(|t| [t.join("lib64"), t.join("targets/x86_64-linux/lib"), t.join("lib")]).collect();
    let mut prefixes: Vec<PathBuf> = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(variable).collect();
    prefixes.extend(["/usr".into(), "/usr/local".into()]);
    for folder in children(Path::new("/opt"), "") {
        prefixes.extend([folder.join(".venv"), folder]);
    }
    for prefix in prefixes {
        for python in children(&prefix.join("lib"), "python3") {
            for packages in ["site-packages", "dist-packages"] {
                // nvidia/cu13/lib, nvidia/cublas/lib, nvidia/cuda_nvrtc/lib
                folders.extend(children(&python.join(packages).join("nvidia"), "").iter().map(|p| p.join("lib")));
            }
        }
    }
    folders
}

/// Entries of a folder whose names begin so, the last first: the newest version.
fn children(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return vec![] };
    let named = |name: &std::ffi::OsStr| name.to_str().is_some_and(|n| n.starts_with(prefix));
    let mut all: Vec<PathBuf> = entries.flatten().filter(|e| named(&e.file_name())).map(|e| e.path()).collect();
    all.sort();
    all.reverse();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_a_sentence() {
        let why = open("nosuchlibrary", None).map(drop).unwrap_err();
        assert!(why.contains("libnosuchlibrary.so was not found") && !why.contains('\n'), "{why}");
        let why = open("nvrtc", Some(Path::new("/no/such/libnvrtc.so"))).map(drop).unwrap_err();
        assert!(why.contains("/no/such/libnvrtc.so"), "{why}");
    }

    #[test]
    fn newer_versions_come_first() {
        let all = candidates("nosuchlibrary");
        assert_eq!(all[0], PathBuf::from("libnosuchlibrary.so.13"));
        assert_eq!(all.last(), Some(&PathBuf::from("libnosuchlibrary.so")));
    }
}
