//! How a finding names its manifest, and how it is found again.

use std::path::{Path, PathBuf};

/// The path of a manifest as findings keep it: relative to the working folder, or to the home folder (`~/`), where it lies
/// below one of them.
pub fn shown(path: &Path) -> String {
    let whole = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let here = std::env::current_dir().and_then(std::fs::canonicalize).unwrap_or_default();
    if let Some(below) = below(&whole, &here) {
        return below.display().to_string();
    }
    match std::env::var_os("HOME").and_then(|home| below(&whole, Path::new(&home)).map(Path::to_owned)) {
        Some(below) => format!("~/{}", below.display()),
        None => whole.display().to_string(),
    }
}

fn below<'a>(path: &'a Path, folder: &Path) -> Option<&'a Path> {
    if folder.as_os_str().is_empty() || folder == Path::new("/") { None } else { path.strip_prefix(folder).ok() }
}

/// The file that a finding names: looked for from the working folder, then from `near` (the folder of the finding) and
/// the folders above it.
pub fn find(shown: &str, near: Option<&Path>) -> Option<PathBuf> {
    if let Some(rest) = shown.strip_prefix("~/") {
        let home = std::env::var_os("HOME").map(PathBuf::from)?;
        return Some(home.join(rest)).filter(|p| p.is_file());
    }
    let plain = PathBuf::from(shown);
    if plain.is_file() {
        return Some(plain);
    }
    let near = std::fs::canonicalize(near?).ok()?;
    near.ancestors().map(|folder| folder.join(shown)).find(|p| p.is_file())
}
