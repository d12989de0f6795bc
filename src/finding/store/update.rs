//! Writing a finding anew where it lies.

use super::atomic;
use super::error::StoreError;
use crate::finding::Finding;
use std::path::{Path, PathBuf};

/// Replaces the file of `old` by `new`: there is the old text or the new one, whole, at any moment. A file that is called
/// as its finding is called as the new one then, and no other file is written over.
///
/// # Errors
/// Where another file has the new name, or nothing can be written; the old file is as it was then.
pub fn update(path: &Path, old: &Finding, new: &Finding) -> Result<PathBuf, StoreError> {
    let name = new.name();
    let toml = new.to_toml().map_err(|what| StoreError::Text { name: name.clone(), what })?;
    let is_named = path.file_stem().is_some_and(|stem| stem == old.name().as_str());
    let place = if is_named { path.with_file_name(format!("{name}.toml")) } else { path.to_owned() };
    let failed = |e| StoreError::writing(&place, e);
    if place == path {
        atomic::replace(&place, toml.as_bytes()).map_err(failed)?;
        return Ok(place);
    }
    if !atomic::create(&place, toml.as_bytes()).map_err(failed)? {
        return Err(StoreError::Differs { path: place });
    }
    std::fs::remove_file(path).map_err(|e| StoreError::writing(path, e))?;
    Ok(place)
}
