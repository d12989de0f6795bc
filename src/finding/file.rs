//! A finding and its file.

use super::facts::Facts;
use super::read::{self, ReadError};
use super::{Catalog, catalog, check, commands, decode, encode, name, print, stored, title};
use crate::manifest;
use std::path::Path;

/// Format that this version writes, and the newest that it reads.
pub const FORMAT: i64 = 1;
/// Said by findings of this format: nobody has asked which expression did it.
pub const DIAGNOSIS: &str = "not run";

/// Whether the failure still happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Open,
    Fixed,
}

impl Status {
    pub fn word(self) -> &'static str {
        match self {
            Status::Open => "open",
            Status::Fixed => "fixed",
        }
    }
}

/// A failure worth keeping. Its facts do not contradict each other: nothing else can be built.
#[derive(Debug, Clone)]
pub struct Finding {
    status: Status,
    title: String,
    facts: Facts,
}

impl Finding {
    /// An open finding. The title is made from the verdict; a library given by its path is kept by its file name, and the
    /// path goes to the environment.
    ///
    /// # Errors
    /// A sentence, where the facts contradict each other.
    pub fn new(mut facts: Facts) -> Result<Finding, String> {
        if facts.target.family == manifest::FAMILY {
            // The manifest is part of what the finding is about, so its path stays.
            let facts = check::checked(facts)?;
            return Ok(Finding { status: Status::Open, title: title::sentence(&facts), facts });
        }
        facts.problem = catalog::builtin(&facts.problem.name)?;
        if let Some(path) = facts.target.library.take() {
            let file = name::library_file(&path).to_owned();
            if file != path {
                facts.environment.add("library as given", &path);
            }
            facts.target.library = Some(file);
        }
        let facts = check::checked(facts)?;
        Ok(Finding { status: Status::Open, title: title::sentence(&facts), facts })
    }

    pub fn status(&self) -> Status {
        self.status
    }

    /// One sentence: what went wrong.
    pub fn title(&self) -> &str {
        &self.title
    }

    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The same finding with another status: neither name nor facts change.
    pub fn with_status(mut self, status: Status) -> Finding {
        self.status = status;
        self
    }

    /// The short stable name, also the stem of the file.
    pub fn name(&self) -> String {
        name::name(&self.facts)
    }

    /// The text of the file.
    ///
    /// # Errors
    /// A sentence, where TOML cannot hold a value.
    pub fn to_toml(&self) -> Result<String, String> {
        let file = encode::file(self.status, &self.title, &self.facts);
        let table = toml::Table::try_from(&file).map_err(|e| format!("cannot be written as TOML: {e}"))?;
        Ok(commands::head(&self.name()) + &print::toml(&table))
    }

    /// Reads the text of a file; problems that are not built in come from `catalog`.
    ///
    /// # Errors
    /// A sentence that says what to change, without the file name.
    pub fn parse(text: &str, catalog: &Catalog) -> Result<Finding, String> {
        let table = read::head(text)?;
        if !table.contains_key("minimal") && table.contains_key("params") {
            return Err("this is a case, not a finding: shrink it first".to_owned());
        }
        let file: stored::File = read::typed(text)?;
        let status = match file.status.as_str() {
            "open" => Status::Open,
            "fixed" => Status::Fixed,
            other => return Err(format!("status = '{other}' is not one of open, fixed")),
        };
        let title = file.title.clone();
        Ok(Finding { status, title, facts: decode::facts(file, catalog)? })
    }

    /// Reads a file; a manifest is looked for where the finding says.
    ///
    /// # Errors
    /// A sentence with the file name, where the file cannot be read or is no finding of this format.
    pub fn read(path: &Path) -> Result<Finding, ReadError> {
        Finding::read_with(path, &Catalog::default())
    }

    /// As [`Finding::read`], with what the user named.
    ///
    /// # Errors
    /// As [`Finding::read`].
    pub fn read_with(path: &Path, catalog: &Catalog) -> Result<Finding, ReadError> {
        let text = read::text(path)?;
        Finding::parse(&text, &catalog.near(path)).map_err(|what| ReadError::Content { path: path.to_owned(), what })
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
