//! Routines beside gemm on real libraries, what picks a library's kernels, and one case on several libraries.

mod common;

use common::{Run, findings, library, program};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file of a library, or a line that says what was not run.
macro_rules! library_or_return {
    ($name:expr) => {
        match library($name) {
            Some(path) => path,
            None => {
                println!("not run: {} is missing", $name);
                return;
            }
        }
    };
}

fn run(args: &[&str]) -> Run {
    Run::of(program().args(args).output().unwrap())
}

/// A hunt on a library, with its events.
fn hunt(out: &Path, routine: &str, library: &Path, more: &str) -> Run {
    let mut c = program();
    c.args(["blas", routine, "--json", "--regressions", "none", "--lib"])
        .arg(library)
        .arg("--out")
        .arg(out)
        .args(more.split_whitespace());
    Run::of(c.output().unwrap())
}

#[test]
fn the_reference_blas_passes_where_no_offset_is_large() {
    let reference = library_or_return!("blas/libblas.so.3");
    let dir = tempfile::tempdir().unwrap();
    for (routine, ranges) in [("trsm", "m=1..24,n=1..24"), ("gemv", "m=1..40,n=1..40"), ("dot", "n=1..500")] {
        let out = dir.path().join(routine);
        let run = hunt(&out, routine, &reference, &format!("--cases 150 --seed 3 --profile packed --range {ranges}"));
        let summary = run.expect(0).summary();
        assert_eq!(summary["tally"]["pass"], 150, "{routine}: {summary}");
    }
}

/// The reference BLAS forms n * incx in 32 bits: scal leaves elements as they were.
#[test]
fn a_finding_of_another_routine_is_confirmed_by_a_program_in_c() {
    let reference = library_or_return!("blas/libblas.so.3");
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    hunt(&out, "scal", &reference, "--seed 1 --cases 2000").expect(1);
    let [file] = &findings(&out)[..] else { panic!("one finding was to be filed") };
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains("call = \"cblas_sscal("), "{text}");

    let Some(repro) = reproducer(file, dir.path()) else { return };
    let ran = Command::new(repro).arg(&reference).output().unwrap();
    assert_eq!(ran.status.code(), Some(1), "{}", String::from_utf8_lossy(&ran.stdout));
    assert!(String::from_utf8_lossy(&ran.stdout).contains("elements that are wrong"));
}

/// A program that checks a routine is right about a right result, and not about another routine's of the same prototype.
#[test]
fn programs_in_c_check_triangular_matrices_and_norms() {
    let reference = library_or_return!("blas/libblas.so.3");
    let dir = tempfile::tempdir().unwrap();
    let triangular = |side, uplo, trans, diag| {
        format!(
            "side = \"{side}\"\nuplo = \"{uplo}\"\ntrans = \"{trans}\"\ndiag = \"{diag}\"\nm = 5\nn = 4\nlda = 7\nldb = 6"
        )
    };
    for (routine, dtype, params, other) in [
        ("trmm", "f32", triangular("L", "U", "N", "N"), "cblas_strsm"),
        ("trmm", "c128", triangular("R", "L", "T", "U"), "cblas_ztrsm"),
        ("trsm", "f64", triangular("R", "U", "N", "U"), "cblas_dtrmm"),
        ("trsm", "c64", triangular("L", "L", "C", "N"), "cblas_ctrmm"),
        ("nrm2", "f64", "n = 7\nincx = 3".to_owned(), "cblas_dasum"),
    ] {
        let file = dir.path().join("case.toml");
        let text = format!(
            "title = \"a case\"\nproblem = \"{routine}\"\ntarget = \"cblas\"\ncall = \"a call\"\n[minimal]\nplacement = \"end\"\n\
             [minimal.params]\n{params}\ndtype = \"{dtype}\"\nalpha = \"-2\"\n"
        );
        std::fs::write(&file, text).unwrap();
        let Some(repro) = reproducer(&file, dir.path()) else { return };
        let right = Command::new(&repro).arg(&reference).output().unwrap();
        assert_eq!(right.status.code(), Some(0), "{routine}: {}", String::from_utf8_lossy(&right.stdout));
        let wrong = Command::new(&repro).args([reference.as_os_str(), other.as_ref()]).output().unwrap();
        assert_eq!(wrong.status.code(), Some(1), "{other}: {}", String::from_utf8_lossy(&wrong.stdout));
    }
}

/// The program that `scripts/make_reproducer.py` writes for a finding, compiled; none where there is no Python or compiler.
fn reproducer(finding: &Path, dir: &Path) -> Option<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/make_reproducer.py");
    let Ok(made) = Command::new("python3").arg(script).arg(finding).output() else {
        println!("not run: no python3");
        return None;
    };
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let (source, repro) = (dir.join("repro.c"), dir.join("repro"));
    std::fs::write(&source, made.stdout).unwrap();
    match Command::new("cc").args(["-Wall", "-Wextra", "-Werror", "-o"]).arg(&repro).arg(&source).arg("-ldl").output() {
        Ok(o) => assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr)),
        Err(e) => {
            println!("not run: no C compiler ({e})");
            return None;
        }
    }
    Some(repro)
}

#[test]
fn a_library_without_a_routine_and_a_setting_that_is_none_are_refused_in_one_sentence() {
    let gsl = library_or_return!("libgslcblas.so.0");
    let dir = tempfile::tempdir().unwrap();
    let missing = hunt(dir.path(), "gemmt", &gsl, "--cases 1").expect(3);
    assert!(missing.stderr.contains("has no gemmt: looked for cblas_sgemmt"), "{}", missing.stderr);
    let gsl = gsl.display();
    for (settings, code, said) in [
        ("core=Haswell", 3, "no choice of core types"),
        ("threads=3", 3, "no interface for that"),
        ("threads=0", 2, "write a number from 1"),
        ("tile=8x8", 2, "it has core and threads"),
    ] {
        let run = run(&["run", "gemm:m=2", "--target", &format!("cblas,{settings}@{gsl}")]).expect(code);
        assert!(run.stderr.contains(said) && run.stderr.trim().lines().count() == 1, "{settings}: {}", run.stderr);
    }
    let usage = run(&["blas", "gemm", "--cases", "1"]).expect(2);
    assert!(usage.stderr.contains("trsm"), "{}", usage.stderr);
}

#[test]
fn a_forced_core_type_is_part_of_the_target() {
    let openblas = library_or_return!("openblas-pthread/libblas.so.3");
    let target = format!("cblas,core=Nehalem@{}", openblas.display());
    let named = run(&["run", "gemm:m=3", "--target", &target]).expect(0);
    assert!(named.stdout.contains(&target) && named.stdout.contains("NO_AFFINITY Nehalem"), "{}", named.stdout);

    let lib = openblas.display().to_string();
    let mut c = program();
    c.env("OPENBLAS_CORETYPE", "nehalem").args(["run", "gemm:m=3", "--lib", &lib]);
    let outside = Run::of(c.output().unwrap()).expect(0);
    assert!(outside.stdout.contains("cblas,core=Nehalem@"), "{}", outside.stdout);

    let unknown = run(&["run", "gemm:m=3", "--target", &format!("cblas,core=Nonesuch@{lib}")]).expect(3);
    assert!(unknown.stderr.contains("instead; name a core type"), "{}", unknown.stderr);
}

#[test]
fn one_case_on_several_libraries_names_the_first_bad_and_the_first_good_one() {
    let (atlas, gsl, reference) = (
        library_or_return!("atlas/libblas.so.3"),
        library_or_return!("libgslcblas.so.0"),
        library_or_return!("blas/libblas.so.3"),
    );
    let [atlas, gsl, reference] = [atlas, gsl, reference].map(|path| path.display().to_string());
    let case = "gemm:m=1,n=5,k=1,ldb=2^29,dtype=f64";
    let libs = ["--lib", &reference, "--lib", &atlas, "--lib", "/nowhere", "--lib", &reference];
    let words = |json: &[&'static str]| [&["run", case][..], json].concat();
    let compared = run(&[&words(&["--json"])[..], &libs[..]].concat()).expect(1);
    let event = &compared.events_of("compared")[0];
    let standings: Vec<&str> =
        event["libraries"].as_array().unwrap().iter().map(|row| row["standing"].as_str().unwrap()).collect();
    assert_eq!(standings, ["good", "bad", "not-opened", "good"]);
    assert_eq!(
        (&event["first_bad"], &event["last_good_before_it"]),
        (&atlas.as_str().into(), &reference.as_str().into())
    );
    assert_eq!(event["first_good_after_it"], reference.as_str());

    let good = run(&[&words(&[])[..], &["--lib", &reference, "--lib", &reference]].concat()).expect(0);
    assert!(good.stdout.contains("first bad            none of these"), "{}", good.stdout);
    let none = run(&[&words(&[])[..], &["--lib", "/nowhere", "--lib", &reference]].concat()).expect(3);
    assert!(none.stdout.contains("not run  /nowhere"), "{}", none.stdout);

    // A finding names its library; those on the command line take its place.
    let filed = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions/cblas/cblas-gemm-c-read-far-f3cc3b.toml");
    let filed = filed.display().to_string();
    let compared = run(&["run", &filed, "--lib", &reference, "--lib", &atlas, "--json"]).expect(1);
    let event = &compared.events_of("compared")[0];
    assert_eq!(
        (&event["first_bad"], &event["last_good_before_it"]),
        (&atlas.as_str().into(), &reference.as_str().into())
    );

    // A library that cannot run the finding's case is not good.
    let batch = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("regressions/scipy-openblas64/scipy-openblas64-gemm-memory-66f7d3.toml");
    let batch = batch.display().to_string();
    let lacking = run(&["run", &batch, "--lib", &reference, "--lib", &atlas]).expect(3);
    assert!(lacking.stdout.contains("not run") && lacking.stdout.contains("batch == 1"), "{}", lacking.stdout);

    let one = run(&["shrink", case, "--lib", &gsl, "--lib", &atlas]).expect(2);
    assert!(one.stderr.contains("name one --lib"), "{}", one.stderr);
}
