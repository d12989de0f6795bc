//! Manifests: a problem and a foreign program that runs its cases, in one TOML file. docs/manifest.md says how to write one.

mod operands;
mod params;
mod path;
mod source;
#[cfg(test)]
mod tests;

pub use path::{find, shown};

use crate::problem::contents::mix;
use crate::problem::{Assignment, Narrow, Problem, Value};
use crate::target::TargetSpec;
use sha2::{Digest, Sha256};
use source::{Fields, Node, Source};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Target family of manifests.
pub const FAMILY: &str = "manifest";
/// Setting of a [`TargetSpec`] that holds the digest of the manifest.
pub const DIGEST: &str = "sha256";

/// Largest manifest that is read, bytes.
const LARGEST: u64 = 1 << 20;
/// Parameters, operands and dimensions of an operand that a manifest may have.
const MOST: usize = 64;
/// Seeded draws after which a manifest counts as one without a valid case.
const DRAWS: u64 = 1000;
const DEFAULT_START: Duration = Duration::from_secs(60);
const DEFAULT_CASE: Duration = Duration::from_secs(10);

/// A manifest that was read and checked: there is at least one valid case.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The file, as it was named.
    pub path: PathBuf,
    /// SHA-256 of the file.
    pub sha256: String,
    pub problem: Arc<Problem>,
    /// Program and arguments, as written.
    pub command: Vec<String>,
    pub start_timeout: Duration,
    pub case_timeout: Duration,
    /// Processes that may run side by side; any number where absent.
    pub workers: Option<usize>,
    /// Texts on stderr that mean a device fault, besides the known ones.
    pub fault_texts: Vec<String>,
    /// Values of each knob, the plainest first.
    pub knobs: BTreeMap<String, Vec<Value>>,
    pub env: BTreeMap<String, String>,
    /// What the problem does not hold, by operand.
    pub extras: Vec<Extra>,
}

/// What a manifest says of an operand beside its view.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extra {
    /// Alignment of the base pointer, bytes; 0 where none is promised.
    pub align: u32,
    /// Elements that the program allocates, all copies together, times their size: an expression in bytes.
    pub allocated_bytes: Option<String>,
}

/// Why there is no manifest. Each text is one sentence with the file name.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    #[error("failed to read the manifest {}: {source}; check the path and its permissions", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is no manifest: name a TOML file of at most 1 MiB, in UTF-8", path.display())]
    NoText { path: PathBuf },
    #[error("{}, line {line}: {what}", path.display())]
    Content { path: PathBuf, line: usize, what: String },
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// Where it cannot be read, does not parse, or has no valid case.
    pub fn read(path: &Path) -> Result<Manifest, ManifestError> {
        let failed = |source| ManifestError::Io { path: path.to_owned(), source };
        let no_text = || ManifestError::NoText { path: path.to_owned() };
        // Asked before opening: opening a pipe would wait for its other end.
        if !std::fs::metadata(path).map_err(failed)?.is_file() {
            return Err(no_text());
        }
        let mut bytes = vec![];
        std::fs::File::open(path).and_then(|f| f.take(LARGEST + 1).read_to_end(&mut bytes)).map_err(failed)?;
        if bytes.len() as u64 > LARGEST {
            return Err(no_text());
        }
        let text = String::from_utf8(bytes).map_err(|_| no_text())?;
        Manifest::parse(path, &text)
    }

    /// Reads the text of a manifest.
    ///
    /// # Errors
    /// As [`Manifest::read`].
    pub fn parse(path: &Path, text: &str) -> Result<Manifest, ManifestError> {
        let source = Source { path, text };
        let table = source.table()?;
        let top = source.fields(table.get_ref(), &KEYS)?;
        let name = named(&top)?;
        let mut problem = Problem {
            name,
            params: params::params(&top)?,
            constraints: vec![],
            operands: vec![],
            work: None,
            placed_by_program: true,
        };
        let tables = operands::names(&top, &mut problem)?;
        // The author's constraints first: what follows from allocations is repaired only after them.
        params::constraints(&top, &mut problem)?;
        let extras = operands::fill_all(&tables, &mut problem)?;
        has_a_case(&source, &problem)?;
        Ok(Manifest {
            path: path.to_owned(),
            sha256: Sha256::digest(text).iter().map(|b| format!("{b:02x}")).collect(),
            problem: Arc::new(problem),
            command: command(&top)?,
            start_timeout: top.get("start_timeout_s").map_or(Ok(DEFAULT_START), Node::seconds)?,
            case_timeout: top.get("case_timeout_s").map_or(Ok(DEFAULT_CASE), Node::seconds)?,
            workers: top.get("workers").map(workers).transpose()?,
            fault_texts: texts(&top, "fault_text", "[\"my device fault\"]")?,
            knobs: knobs(&top)?,
            env: env(&top)?,
            extras,
        })
    }

    pub fn name(&self) -> &str {
        &self.problem.name
    }

    /// The folder in which the program is started.
    pub fn folder(&self) -> PathBuf {
        match self.path.parent() {
            Some(p) if !p.as_os_str().is_empty() => p.to_owned(),
            _ => PathBuf::from("."),
        }
    }

    /// The first 16 digits of the digest: enough to tell that a manifest changed.
    pub fn short_digest(&self) -> &str {
        &self.sha256[..16]
    }

    /// The name of the target in findings: name, digest and path, which is relative to the working folder where it can be.
    pub fn spec(&self) -> TargetSpec {
        TargetSpec {
            family: FAMILY.to_owned(),
            model: self.name().to_owned(),
            settings: BTreeMap::from([(DIGEST.to_owned(), self.short_digest().to_owned())]),
            library: Some(shown(&self.path)),
        }
    }

    /// What a finding that was filed with `spec` has to be told, where the manifest changed since.
    pub fn change_since(&self, spec: &TargetSpec) -> Option<String> {
        let then = spec.settings.get(DIGEST)?;
        (then != self.short_digest()).then(|| {
            format!(
                "the manifest {} has changed since it was filed (sha256 {then}, now {})",
                self.path.display(),
                self.short_digest()
            )
        })
    }

    /// The restriction that keeps what the program says it allocates within `memory` bytes, where it says so.
    pub fn memory_limit(&self, memory: u64) -> Option<Narrow> {
        let bytes: Vec<&str> = self.extras.iter().filter_map(|e| e.allocated_bytes.as_deref()).collect();
        (!bytes.is_empty()).then(|| Narrow::Require { condition: format!("{} <= {memory}", bytes.join(" + ")) })
    }

    /// The problem as it is where the program lets itself be told how to place operands.
    pub fn problem_placed_by_case(&self) -> Problem {
        Problem { placed_by_program: false, ..(*self.problem).clone() }
    }
}

const KEYS: [&str; 12] = [
    "name",
    "command",
    "start_timeout_s",
    "case_timeout_s",
    "workers",
    "fault_text",
    "constraints",
    "params",
    "operands",
    "knobs",
    "env",
    "note",
];

fn named(top: &Fields<'_>) -> Result<String, ManifestError> {
    let node = top.need("name", "name = \"my-kernel\"")?;
    let name = node.text()?;
    let fits = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if !fits || !name.starts_with(|c: char| c.is_ascii_alphabetic()) || name.len() > 60 {
        return Err(node.error("write a letter, then letters, digits, '-', '_' and '.', 60 at most"));
    }
    Ok(name.to_owned())
}

fn command(top: &Fields<'_>) -> Result<Vec<String>, ManifestError> {
    let words = texts(top, "command", "[\"python3\", \"kernel.py\"]")?;
    match words.first() {
        Some(first) if !first.is_empty() && words.iter().all(|w| !w.contains('\0')) => Ok(words),
        _ => Err(top
            .need("command", "command = [\"./program\"], started in the folder of the manifest")?
            .error("name a program first: command = [\"./program\", \"argument\"]")),
    }
}

fn workers(node: &Node<'_>) -> Result<usize, ManifestError> {
    match node.integer()? {
        n @ 1..=256 => Ok(n as usize),
        _ => Err(node.error("write a number of processes from 1 to 256")),
    }
}

fn texts(top: &Fields<'_>, key: &str, example: &str) -> Result<Vec<String>, ManifestError> {
    let Some(node) = top.get(key) else { return Ok(vec![]) };
    let texts = node.list(example)?.iter().map(|n| n.text().map(str::to_owned)).collect::<Result<Vec<_>, _>>()?;
    match texts.iter().position(|t| t.trim().is_empty()) {
        Some(i) => Err(node.error(format!("the text number {} is empty; leave it out", i + 1))),
        None => Ok(texts),
    }
}

fn knobs(top: &Fields<'_>) -> Result<BTreeMap<String, Vec<Value>>, ManifestError> {
    let Some(table) = top.get("knobs") else { return Ok(BTreeMap::new()) };
    let mut out = BTreeMap::new();
    for node in table.fields(&[])?.entries() {
        out.insert(node.name.clone(), params::values(node)?);
    }
    Ok(out)
}

fn env(top: &Fields<'_>) -> Result<BTreeMap<String, String>, ManifestError> {
    let Some(table) = top.get("env") else { return Ok(BTreeMap::new()) };
    let mut out = BTreeMap::new();
    for node in table.fields(&[])?.entries() {
        let (name, value) = (&node.name, node.text()?);
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(node.error("an environment variable has a name without '=' and a value without NUL"));
        }
        out.insert(name.clone(), value.to_owned());
    }
    Ok(out)
}

/// Looks for a valid case: defaults, minima, then seeded draws.
fn has_a_case(source: &Source<'_>, problem: &Problem) -> Result<(), ManifestError> {
    let first = match problem.complete(&BTreeMap::new()) {
        Ok(values) if problem.check(&values).is_ok() => return Ok(()),
        Ok(values) => problem.check(&values).err(),
        Err(e) => Some(e),
    };
    if problem.plainest().is_some() || (0..DRAWS).any(|seed| drawn(problem, seed)) {
        return Ok(());
    }
    let why = first.map_or_else(String::new, |e| format!(" (the defaults: {e})"));
    Err(source.error(0, format!("no valid case was found{why}; loosen a constraint or a range")))
}

fn drawn(problem: &Problem, seed: u64) -> bool {
    let value = |(i, p): (usize, &crate::problem::Param)| {
        let (least, most) = (i128::from(p.least()), i128::from(p.most()));
        let hash = mix(seed, i as u64);
        // Small values as often as large ones.
        let width = ((most - least + 1) >> (hash % 63)).max(1);
        let v = least + i128::from(mix(hash, 1)) % width;
        p.round_down(v as i64).unwrap_or(p.least())
    };
    let mut values = Assignment(problem.params.iter().enumerate().map(value).collect());
    problem.repair(&mut values, |_| true)
}
