//! The file that describes a kernel.

use crate::problem::{Narrow, Value};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A kernel's description as its author wrote it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelFile {
    /// Name of a built-in problem.
    pub problem: String,
    /// Parameters that have one value in every case.
    #[serde(default)]
    pub set: BTreeMap<String, Value>,
    /// Further conditions on the parameters: cases for which the kernel was written.
    #[serde(default)]
    pub require: Vec<String>,
    pub kernel: KernelTable,
    /// Macros and their values, the plainest first.
    #[serde(default)]
    pub knobs: BTreeMap<String, Vec<Value>>,
    #[serde(default)]
    #[allow(dead_code, reason = "for its readers")]
    note: Option<String>,
    /// The file itself.
    #[serde(skip)]
    pub path: PathBuf,
}

/// The section `[kernel]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelTable {
    /// The CUDA C++ source, relative to the file.
    pub source: PathBuf,
    /// Name of the kernel, declared `extern "C"`.
    pub entry: String,
    /// Its arguments in order: an operand (`A`), the table of all copies of one (`out[]`), or a type and an expression
    /// (`i32 lda`).
    pub args: Vec<String>,
    /// One to three expressions each.
    pub grid: Vec<String>,
    pub block: Vec<String>,
    /// Bytes of dynamic shared memory.
    pub shared: Option<String>,
    /// How often it is launched; `rank` counts the launches from 0.
    pub launches: Option<String>,
    /// For the compiler: `-DTILE=64`, `--maxrregcount=64`.
    #[serde(default)]
    pub options: Vec<String>,
}

impl KernelFile {
    /// Reads a description.
    ///
    /// # Errors
    /// One sentence with the file's name.
    pub fn read(path: &Path) -> Result<KernelFile, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("failed to read {}: {e}", path.display()))?;
        let mut file = KernelFile::parse(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        file.path = path.to_owned();
        Ok(file)
    }

    fn parse(text: &str) -> Result<KernelFile, String> {
        let file: KernelFile = toml::from_str(text).map_err(|e| {
            let line = e.span().map_or(1, |s| text[..s.start].lines().count().max(1));
            format!("line {line}: {}; see docs/cuda.md for the form", e.message())
        })?;
        let macro_name = |name: &String| {
            name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                && !name.starts_with(|c: char| c.is_ascii_digit())
        };
        match file.knobs.iter().find(|(name, values)| !macro_name(name) || values.is_empty()) {
            Some((name, _)) => Err(format!("knob '{name}': write the name of a macro and a list of values")),
            None => Ok(file),
        }
    }

    pub fn source_path(&self) -> PathBuf {
        self.path.parent().unwrap_or(Path::new(".")).join(&self.kernel.source)
    }

    /// What of the problem the kernel runs.
    pub fn limits(&self) -> Vec<Narrow> {
        let set = |(param, value): (&String, &Value)| Narrow::Set { param: param.clone(), value: value.clone() };
        let require = |condition: &String| Narrow::Require { condition: condition.clone() };
        self.set.iter().map(set).chain(self.require.iter().map(require)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "problem = \"gemm\"\nrequire = [\"batch == 1\"]\n[set]\ndtype = \"f32\"\n[kernel]\nsource = \"k.cu\"\nentry = \"k\"\n\
                        args = [\"A\"]\ngrid = [\"m\"]\nblock = [\"32\"]\n[knobs]\nTILE = [16, 32]\n";

    #[test]
    fn a_description_becomes_limits_and_knobs() {
        let file = KernelFile::parse(TEXT).unwrap();
        assert_eq!(file.limits().len(), 2);
        assert_eq!(file.knobs["TILE"], vec![Value::Int(16), Value::Int(32)]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let said = |text: &str| KernelFile::parse(text).unwrap_err();
        assert!(said(&TEXT.replace("entry", "entri")).starts_with("line "));
        assert!(said(&TEXT.replace("TILE = [16, 32]", "TILE = []")).contains("TILE"));
        assert!(said(&TEXT.replace("TILE =", "\"a b\" =")).contains("a b"));
        assert!(said("problem = 3").contains("line 1"));
    }
}
