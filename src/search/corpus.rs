//! Seed cases in folders: those that come with the program, and those of a user.

pub mod minimise;

use crate::finding::{ReadError, Seed};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The seed files that come with the program: path below `corpus/`, text.
const BUILT_IN: [(&str, &str); 10] = [
    ("allgather/iris-256-mib.toml", include_str!("../../corpus/allgather/iris-256-mib.toml")),
    ("allgather/iris-512-mib.toml", include_str!("../../corpus/allgather/iris-512-mib.toml")),
    ("allgather/iris-768-mib.toml", include_str!("../../corpus/allgather/iris-768-mib.toml")),
    ("allgather/iris-1024-mib.toml", include_str!("../../corpus/allgather/iris-1024-mib.toml")),
    ("gemm/gfx1201-logged-call.toml", include_str!("../../corpus/gemm/gfx1201-logged-call.toml")),
    ("gemm/gfx1201-logged-call-blas.toml", include_str!("../../corpus/gemm/gfx1201-logged-call-blas.toml")),
    ("gemm/weight-gradient-n8.toml", include_str!("../../corpus/gemm/weight-gradient-n8.toml")),
    ("gemm/weight-gradient-n16.toml", include_str!("../../corpus/gemm/weight-gradient-n16.toml")),
    ("gemm/weight-gradient-n48.toml", include_str!("../../corpus/gemm/weight-gradient-n48.toml")),
    ("gemm/weight-gradient-n64.toml", include_str!("../../corpus/gemm/weight-gradient-n64.toml")),
];

/// The seed cases of a problem that come with the program, in the order of their paths.
///
/// # Errors
/// As for [`Seed::parse`]; a test parses them all.
pub fn built_in(problem: &str) -> Result<Vec<Seed>, ReadError> {
    let mut seeds = vec![];
    for (path, text) in BUILT_IN {
        let path = Path::new("corpus").join(path);
        let seed = Seed::parse(text).map_err(|what| ReadError::Content { path, what })?;
        if seed.problem == problem {
            seeds.push(seed);
        }
    }
    Ok(seeds)
}

/// The seed cases of a problem below a folder, in the order of their paths: [`files`]. Files of other problems are read,
/// checked and left out.
///
/// # Errors
/// Where a folder or a file cannot be read, or a file is no seed case.
pub fn read_folder(folder: &Path, problem: &str) -> Result<Vec<(PathBuf, Seed)>, ReadError> {
    let mut seeds = vec![];
    for path in files(folder)? {
        let seed = Seed::read(&path)?;
        if seed.problem == problem {
            seeds.push((path, seed));
        }
    }
    Ok(seeds)
}

/// `*.toml` in a folder and in its direct subfolders, in the order of their paths.
///
/// # Errors
/// Where a folder cannot be read.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>, ReadError> {
    let mut files = vec![];
    for path in list(folder)? {
        if path.is_dir() {
            files.extend(list(&path)?);
        } else {
            files.push(path);
        }
    }
    files.retain(|p| p.extension().is_some_and(|e| e == "toml"));
    // A file that links lead to as well is one file, under its own name.
    files.sort_by_key(|p| fs::canonicalize(p).is_ok_and(|real| !real.ends_with(p.strip_prefix(folder).unwrap_or(p))));
    let mut seen = HashSet::new();
    files.retain(|p| fs::canonicalize(p).map_or(true, |real| seen.insert(real)));
    files.sort();
    Ok(files)
}

fn list(folder: &Path) -> Result<Vec<PathBuf>, ReadError> {
    let failed = |source| ReadError::Io { path: folder.to_owned(), source };
    let entries = fs::read_dir(folder).map_err(failed)?;
    let mut paths = entries.map(|e| e.map(|e| e.path())).collect::<Result<Vec<_>, io::Error>>().map_err(failed)?;
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests;
