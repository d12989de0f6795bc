//! Libraries that do odd things to the process they run in: what is seen is still told as what it is, and nothing is lost.

mod common;

use common::{Run, program};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The library of misbehaving_blas.c, where there is a C compiler.
fn library(dir: &Path) -> Option<PathBuf> {
    let (source, library) =
        (Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/misbehaving_blas.c"), dir.join("libodd.so"));
    let cc = Command::new("cc").args(["-O1", "-shared", "-fPIC", "-o"]).arg(&library).arg(source).output();
    match cc {
        Ok(done) => {
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            Some(library)
        }
        Err(e) => {
            eprintln!("skipped: no C compiler ({e})");
            None
        }
    }
}

fn odd(dir: &Path, library: &Path, how: &str, words: &str) -> Run {
    let mut command = program();
    command.args(words.split_whitespace()).arg("--lib").arg(library).arg("--out").arg(dir.join("out")).arg("--json");
    command.env("MISBEHAVING_BLAS", how).env("MISBEHAVING_BLAS_MARK", dir.join("mark"));
    Run::of(command.output().unwrap())
}

#[test]
fn a_fault_is_a_fault_whatever_the_library_did_to_its_process() {
    let dir = tempfile::tempdir().unwrap();
    let Some(library) = library(dir.path()) else { return };
    for how in ["", "fork", "handler"] {
        let r = odd(dir.path(), &library, how, "run gemm:m=3,n=5,k=1").expect(1);
        let verdict = r.events_of("run")[0]["verdict"].clone();
        assert_eq!(verdict["fault"]["hit"]["operand"], "B", "{how}: {verdict}");
        odd(dir.path(), &library, how, "run gemm:m=3,n=4,k=1").expect(0);
    }
}

#[test]
fn a_line_that_the_library_writes_into_the_channel_is_blamed_on_its_case() {
    let dir = tempfile::tempdir().unwrap();
    let Some(library) = library(dir.path()) else { return };
    let r = odd(dir.path(), &library, "stray", "run gemm:m=2,n=2,k=1").expect(1);
    assert!(r.events_of("run")[0]["verdict"]["crash"].is_object(), "{}", r.stdout);
}

#[test]
fn what_failed_beside_a_case_that_hangs_is_kept_when_the_time_is_up() {
    let dir = tempfile::tempdir().unwrap();
    let Some(library) = library(dir.path()) else { return };
    let words = "gemm --jobs 2 --cases 400 --seed 5 --time 4s --keep-going --regressions none";
    let r = odd(dir.path(), &library, "hang", words).expect(1);
    let summary = r.summary();
    assert!(summary["tally"]["fault"].as_u64().unwrap() > 0, "{summary}");
    let kept = std::fs::read_dir(dir.path().join("out/raw")).unwrap().count();
    assert!(kept > 0, "nothing of {summary} is in raw/");
    let notes = r.events_of("note");
    let named = notes
        .iter()
        .any(|n| n["text"].as_str().is_some_and(|t| t.contains("not looked into, kept as") && t.contains("raw/")));
    assert!(named, "{notes:?}");
}
