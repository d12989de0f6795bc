//! A device or a library that goes bad under a hunt.

mod common;

use common::{Run, findings, program};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The library of wrapping_blas.c, where there is a C compiler.
fn blas(dir: &Path) -> Option<PathBuf> {
    let (source, library) =
        (Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wrapping_blas.c"), dir.join("libwrap.so"));
    let cc = Command::new("cc").args(["-O1", "-shared", "-fPIC", "-o"]).arg(&library).arg(source).output();
    match cc {
        Ok(built) => {
            assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
            Some(library)
        }
        Err(e) => {
            println!("not run: there is no C compiler ({e})");
            None
        }
    }
}

fn hunt(dir: &Path, library: &Path) -> Command {
    let mut hunt = program();
    hunt.args(["gemm", "--lib"])
        .arg(library)
        .args(["--json", "--keep-going", "--jobs", "2", "--out"])
        .arg(dir.join("out"));
    hunt.arg("--regressions").arg(dir.join("none"));
    hunt
}

#[test]
fn a_device_that_goes_bad_ends_the_hunt_and_blames_no_case() {
    let dir = tempfile::tempdir().unwrap();
    let Some(library) = blas(dir.path()) else { return };
    let mut hunt = hunt(dir.path(), &library);
    let r = Run::of(hunt.env("WRAPPING_BLAS_BREAKS", dir.path().join("broken")).output().unwrap()).expect(4);
    assert!(dir.path().join("broken").exists());
    assert!(r.stderr.contains("no longer passes its health check: m=1 n=1 k=1"), "{}", r.stderr);
    assert!(r.events_of("confirmed").is_empty() && findings(&dir.path().join("out")).is_empty());
}

#[test]
fn a_device_that_goes_bad_under_a_replay_is_no_answer_about_the_finding() {
    let dir = tempfile::tempdir().unwrap();
    let Some(library) = blas(dir.path()) else { return };
    Run::of(hunt(dir.path(), &library).args(["--cases", "2000"]).output().unwrap()).expect(1);
    let made = findings(&dir.path().join("out"));
    let mut regress = program();
    regress.args(["regress", "--json"]).arg(&made[0]);
    let healthy = Run::of(regress.output().unwrap()).expect(0);
    assert_eq!(healthy.events_of("replayed")[0]["outcome"], "reproduced");
    let r = Run::of(regress.env("WRAPPING_BLAS_BREAKS", dir.path().join("broken")).output().unwrap()).expect(4);
    assert!(r.stderr.contains("no longer passes its health check: m=1 n=1 k=1"), "{}", r.stderr);
    assert!(r.events_of("replayed").is_empty());
}

#[test]
fn a_library_that_vanishes_or_is_cut_short_is_a_setup_error_and_findings_stay() {
    for cut in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let Some(library) = blas(dir.path()) else { return };
        let mut child = hunt(dir.path(), &library);
        let mut child =
            child.args(["--cases", "1000000000"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        for line in BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap) {
            if line.starts_with("{\"event\":\"finding\"") {
                match cut {
                    true => std::fs::OpenOptions::new().write(true).open(&library).unwrap().set_len(100).unwrap(),
                    false => std::fs::remove_file(&library).unwrap_or(()),
                }
            }
        }
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        // A file that is cut short takes the workers that have mapped it along: to the hunt, the device has gone bad.
        let code = child.wait().unwrap().code().unwrap();
        assert!(code == 3 || code == 4 && cut, "{code}: {stderr}");
        assert_eq!(stderr.lines().filter(|l| l.starts_with("error: ")).count(), 1, "{stderr}");
        assert!(stderr.contains("libwrap.so") || code == 4, "{stderr}");
        assert!(!findings(&dir.path().join("out")).is_empty());
    }
}
