//! Driving the real binary.

#![allow(dead_code)] // each test crate uses its own part

pub mod live;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// `short`, or `long` where SHRINKFAULT_TEST_PROFILE=long asks for the long forms.
pub fn count(short: u64, long: u64) -> u64 {
    match std::env::var("SHRINKFAULT_TEST_PROFILE").as_deref() {
        Ok("long") => long,
        Ok(other) if other != "short" => panic!("SHRINKFAULT_TEST_PROFILE is '{other}'; it may be short or long"),
        _ => short,
    }
}

/// A time limit on a quiet machine, where the long form runs; ten times as much for the short form, which runs anywhere.
pub fn within(seconds: u64) -> std::time::Duration {
    std::time::Duration::from_secs(seconds * count(10, 1))
}

/// The program, in the folder of the repository.
pub fn program() -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_shrinkfault"));
    c.current_dir(env!("CARGO_MANIFEST_DIR"));
    c
}

/// What a run of the program came to.
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    pub fn of(output: Output) -> Run {
        Run {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The events of a run with `--json`.
    pub fn events(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("not JSON ({e}): {l}\n{}", self.stderr)))
            .collect()
    }

    pub fn events_of(&self, kind: &str) -> Vec<Value> {
        self.events().into_iter().filter(|e| e["event"] == kind).collect()
    }

    pub fn summary(&self) -> Value {
        let finished = self.events_of("finished").pop();
        finished.unwrap_or_else(|| panic!("no finished event; code {}\n{}", self.code, self.stderr))["summary"].clone()
    }

    /// Fails with all output unless the exit code is `code`.
    pub fn expect(self, code: i32) -> Run {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", tail(&self.stdout), tail(&self.stderr));
        self
    }
}

fn tail(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|l| l.chars().take(300).collect()).collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

/// Runs the program with words split at spaces; `{out}` is replaced by the folder.
pub fn run(out: &Path, words: &str) -> Run {
    let args = words.split_whitespace().map(|w| w.replace("{out}", &out.display().to_string()));
    Run::of(program().args(args).output().unwrap())
}

/// A hunt without known findings of the repository and with its own output folder.
pub fn hunt(out: &Path, words: &str) -> Run {
    run(out, &format!("{words} --json --out {{out}}/out --regressions {{out}}/regressions"))
}

/// Finding files in an output folder.
pub fn findings(out: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = match std::fs::read_dir(out.join("findings")) {
        Ok(entries) => entries.map(|e| e.unwrap().path()).collect(),
        Err(_) => vec![],
    };
    files.sort();
    files
}

/// The file of a Debian library, where it is installed; says so where it is not.
pub fn library(name: &str) -> Option<PathBuf> {
    let folders = ["", "atlas/", "blas/", "openblas-pthread/", "blis-pthread/"];
    let found = folders
        .iter()
        .flat_map(|f| ["/usr/lib/x86_64-linux-gnu/", "/usr/lib/aarch64-linux-gnu/"].map(|r| format!("{r}{f}{name}")))
        .map(PathBuf::from)
        .find(|p| p.exists());
    if found.is_none() {
        println!("not run: {name} is not installed");
    }
    found
}
