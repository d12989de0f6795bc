//! What a user may hand to `run` and `shrink`: a finding, a seed case, or a case on the command line.

use super::catalog::{Catalog, Described};
use super::encode;
use super::file::Finding;
use super::name;
use super::read::{self, ReadError};
use super::seed::Seed;
use crate::manifest::Manifest;
use crate::problem::{Case, Invalid, Knobs, Placement, Problem, Value};
use crate::target::TargetSpec;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A case as given, with what is known around it.
#[derive(Debug, Clone)]
pub struct CaseInput {
    /// File or text that it came from.
    pub source: String,
    pub problem: Arc<Problem>,
    /// The parameters that are named, each in its domain; the others are completed with the options of the run.
    pub named: BTreeMap<String, Value>,
    pub knobs: Knobs,
    /// Where the source names one.
    pub placement: Option<Placement>,
    /// Where the source names one.
    pub target: Option<TargetSpec>,
    /// The finding with its witnesses, where the source is one.
    pub finding: Option<Box<Finding>>,
    /// The manifest that describes the problem, where it is not built in.
    pub manifest: Option<Arc<Manifest>>,
}

/// Why there is no case. Each text is one sentence.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    #[error(transparent)]
    File(#[from] ReadError),
    #[error("'{text}': {what}")]
    Text { text: String, what: String },
    #[error("'{text}' is neither a file, nor a finding in {places}, nor a case such as m=608,n=5376")]
    Nothing { text: String, places: String },
}

impl CaseInput {
    /// Reads what the user named: a file, the name of a finding in one of `folders`, or a case (`m=608,n=5376` under
    /// `problem`, or `gemm:m=608,n=5376`).
    ///
    /// # Errors
    /// One sentence that says what to change.
    pub fn read(
        text: &str,
        problem: Option<&str>,
        folders: &[PathBuf],
        catalog: &Catalog,
    ) -> Result<CaseInput, InputError> {
        let path = Path::new(text);
        if path.exists() {
            return CaseInput::from_file(path, catalog);
        }
        if text.contains('=') {
            let failed = |what| InputError::Text { text: text.to_owned(), what };
            return from_text(text, problem, catalog).map_err(failed);
        }
        if let Some(path) = find(text, folders) {
            return CaseInput::from_file(&path, catalog);
        }
        if text.contains('/') || text.ends_with(".toml") {
            // Says why: absent, a loop of links, or no permission.
            return CaseInput::from_file(path, catalog);
        }
        let places: Vec<String> = folders.iter().map(|f| f.display().to_string()).collect();
        Err(InputError::Nothing { text: text.to_owned(), places: places.join(", ") })
    }

    /// Reads a finding or a seed case, whichever the file is.
    ///
    /// # Errors
    /// A sentence with the file name.
    pub fn from_file(path: &Path, catalog: &Catalog) -> Result<CaseInput, InputError> {
        let text = read::text(path)?;
        let source = path.display().to_string();
        let input = parse(&source, &text, &catalog.near(path))
            .map_err(|what| ReadError::Content { path: path.to_owned(), what })?;
        Ok(input)
    }

    /// The case under a problem that may be narrowed: parameters that nobody named are completed. `placement` is used where
    /// the source names none.
    ///
    /// # Errors
    /// Where no case of the problem has the named values.
    pub fn case(&self, problem: &Problem, placement: Placement) -> Result<Case, Invalid> {
        Ok(Case {
            params: problem.complete(&self.named)?,
            knobs: self.knobs.clone(),
            placement: self.placement.unwrap_or(placement),
        })
    }
}

/// A finding or a seed case, whichever the text is.
pub(super) fn parse(source: &str, text: &str, catalog: &Catalog) -> Result<CaseInput, String> {
    let table = read::head(text)?;
    match (table.contains_key("minimal"), table.contains_key("params")) {
        (true, _) => from_finding(source, Finding::parse(text, catalog)?, catalog),
        (false, true) => from_seed_case(source, Seed::parse(text)?, catalog),
        (false, false) => {
            Err("there is neither [minimal] nor [params]: this is no finding and no case file".to_owned())
        }
    }
}

fn from_finding(source: &str, finding: Finding, catalog: &Catalog) -> Result<CaseInput, String> {
    let facts = finding.facts();
    let manifest = catalog.describe(&facts.problem.name, Some(&facts.target))?.manifest;
    Ok(CaseInput {
        source: source.to_owned(),
        problem: Arc::clone(&facts.problem),
        named: encode::params(&facts.problem, &facts.minimal.params).0.into_iter().collect(),
        knobs: facts.minimal.knobs.clone(),
        placement: Some(facts.minimal.placement),
        target: Some(facts.target.clone()),
        finding: Some(Box::new(finding)),
        manifest,
    })
}

fn from_seed_case(source: &str, file: Seed, catalog: &Catalog) -> Result<CaseInput, String> {
    let target = file.target.map(|t| t.parse::<TargetSpec>()).transpose()?;
    let Described { problem, manifest } = catalog.describe(&file.problem, target.as_ref())?;
    let input = CaseInput {
        source: source.to_owned(),
        named: named(&problem, file.params.into_iter().collect())?,
        knobs: file.knobs,
        placement: file.placement,
        target,
        finding: None,
        manifest,
        problem,
    };
    input.problem.complete(&input.named).map_err(|e| e.to_string())?;
    Ok(input)
}

fn from_text(text: &str, problem: Option<&str>, catalog: &Catalog) -> Result<CaseInput, String> {
    let (prefix, list) = match text.split_once(':') {
        Some((prefix, rest)) if !prefix.contains('=') => (Some(prefix), rest),
        _ => (None, text),
    };
    let name = match (prefix, problem) {
        (Some(a), Some(b)) if a != b => return Err(format!("it is a case of {a}, not of {b}")),
        (Some(name), _) | (None, Some(name)) => name,
        (None, None) => return Err(format!("say of which problem, for instance gemm:{text}")),
    };
    let Described { problem, manifest } = catalog.describe(name, None)?;
    let mut rows: Vec<(String, Value)> = vec![];
    for part in list.split([',', ' ']).filter(|part| !part.is_empty()) {
        match part.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
                let name = name.trim().to_owned();
                if rows.iter().any(|(have, _)| *have == name) {
                    return Err(format!("{name} is given twice"));
                }
                rows.push((name, Value::from_word(value.trim())));
            }
            _ => return Err(format!("'{part}' should read NAME=VALUE, for instance m=608")),
        }
    }
    let named = named(&problem, rows)?;
    let source = text.to_owned();
    let (knobs, placement, target, finding) = (Knobs::new(), None, None, None);
    let input = CaseInput { source, named, knobs, placement, target, finding, manifest, problem };
    input.problem.complete(&input.named).map_err(|e| e.to_string())?;
    Ok(input)
}

/// The values in the form that the problem writes them.
pub(super) fn named(problem: &Problem, rows: Vec<(String, Value)>) -> Result<BTreeMap<String, Value>, String> {
    let mut out = BTreeMap::new();
    for (name, value) in rows {
        let Some(i) = problem.param(&name) else {
            let known: Vec<&str> = problem.params.iter().map(|p| p.name.as_str()).collect();
            return Err(format!("{} has no parameter '{name}'; it has {}", problem.name, known.join(", ")));
        };
        let p = &problem.params[i];
        out.insert(name, p.show(p.store(&value)?));
    }
    Ok(out)
}

/// The file of a finding by its name, in the folders or one level below them.
fn find(text: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    if !name::is_name(text) {
        return None;
    }
    let file = format!("{text}.toml");
    folders.iter().find_map(|folder| {
        let mut places = vec![folder.clone()];
        let below = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut below: Vec<PathBuf> = below.map(|entry| entry.path()).filter(|p| p.is_dir()).collect();
        below.sort();
        places.append(&mut below);
        places.into_iter().map(|p| p.join(&file)).find(|p| p.is_file())
    })
}

#[cfg(test)]
#[path = "case_file_tests.rs"]
mod tests;
