//! What a hostile or unlucky user can type or point at: one clear sentence, the right exit code, no panic, no hang.

mod common;

use common::{Run, findings, hunt, program, run};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Runs the words and expects one sentence on stderr that contains `says`.
fn refused(dir: &Path, words: &str, code: i32, says: &str) {
    let started = Instant::now();
    let r = run(dir, words);
    assert_eq!(r.code, code, "{words}\n{}\n{}", r.stdout, r.stderr);
    one_sentence(&r, words);
    assert!(r.stderr.contains(says), "{words}: '{says}' is not in\n{}", r.stderr);
    assert!(started.elapsed() < common::within(20), "{words} took {:?}", started.elapsed());
}

fn one_sentence(r: &Run, words: &str) {
    let errors: Vec<&str> = r.stderr.lines().filter(|l| l.starts_with("error: ")).collect();
    assert_eq!(errors.len(), 1, "{words}\n{}", r.stderr);
    assert!(!r.stderr.contains("panicked") && !r.stderr.contains("os error 2)\n\n"), "{words}\n{}", r.stderr);
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn cases_on_the_command_line_are_refused_with_usage() {
    let dir = tempfile::tempdir().unwrap();
    for (case, says) in [
        ("gemm:m=", "should read NAME=VALUE"),
        ("gemm:m=0", "outside 1..="),
        ("m=1", "for instance gemm:m=1"),
        ("gemm:m=1,m=2", "m is given twice"),
        ("gemm:m=99999999999999999999", "not an integer"),
        ("gemm:m=-5", "outside"),
        ("gemm:m=1.5", "not an integer"),
        ("gemm:zz=1", "no parameter 'zz'; it has transA"),
        ("gemm:transA=Q", "not one of N, T"),
        ("gemm:m=8,lda=4", "breaks the constraint lda >="),
        ("gemm:strideA=5", "strideA needs batch > 1"),
        ("gemm:m=17179869184,n=17179869184,k=17179869184", "spans more than 2^62 bytes"),
        ("allgather:ranks=100000", "outside 1..=4096"),
        ("nope:m=1", "not one of gemm, allgather"),
        ("gemm:", "neither a file, nor a finding"),
        ("/no/such/file.toml", "No such file"),
        ("/dev/zero", "is not a file"),
        ("/", "is not a file"),
    ] {
        refused(dir.path(), &format!("run {case}"), 2, says);
        refused(dir.path(), &format!("shrink {case} --out {{out}}/out"), 2, says);
    }
}

#[test]
fn files_that_are_no_cases_are_refused_by_every_command_that_takes_one() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("huge.toml"), vec![b'#'; 2 << 20]).unwrap();
    fs::write(at("latin1.toml"), b"# caf\xe9").unwrap();
    fs::write(at("deep.toml"), format!("format = 1\na = {}", "[".repeat(100_000))).unwrap();
    fs::create_dir(at("folder.toml")).unwrap();
    symlink(at("loop.toml"), at("loop.toml")).unwrap();
    fifo(&at("fifo.toml"));
    let text = |name: &str, text: &str| fs::write(at(name), text).unwrap();
    text("empty.toml", "");
    text("newer.toml", "format = 2\nfuture = true\n");
    text("word.toml", "format = \"one\"\n[params]\nm = 1\n");
    text("type.toml", "format = 1\nproblem = \"gemm\"\n[params]\nm = [1]\n");
    text("lie.toml", "format = 1\nproblem = \"gemm\"\n[params]\nm = \"many\"\n");
    text("name.toml", "format = 1\nproblem = \"gemm\"\n[params]\nrows = 1\n");
    text("twice.toml", "format = 1\nproblem = \"gemm\"\n[params]\nm = 1\nm = 2\n");
    text("problem.toml", "format = 1\nproblem = \"conv\"\n[params]\nm = 1\n");
    text("place.toml", "format = 1\nproblem = \"gemm\"\nplacement = \"top\"\n[params]\nm = 1\n");
    for (file, says) in [
        ("huge", "larger than 1 MiB"),
        ("latin1", "not UTF-8"),
        ("deep", "recur"),
        ("folder", "is not a file"),
        ("loop", "symbolic links"),
        ("fifo", "is not a file"),
        ("empty", "no line format = 1"),
        ("newer", "use a newer shrinkfault"),
        ("word", "write format = 1"),
        ("type", "params.m = [1] is no integer"),
        ("lie", "not an integer"),
        ("name", "no parameter 'rows'"),
        ("twice", "line 5"),
        ("problem", "not one of gemm, allgather"),
        ("place", "is no placement"),
    ] {
        let path = at(&format!("{file}.toml")).display().to_string();
        refused(dir.path(), &format!("run {path}"), 2, says);
        refused(dir.path(), &format!("shrink {path} --out {{out}}/out"), 2, says);
    }
    for file in ["huge", "latin1", "folder", "fifo", "empty", "newer", "name"] {
        let path = at(&format!("{file}.toml")).display().to_string();
        refused(dir.path(), &format!("keep {path} --regressions {{out}}/kept"), 2, file);
    }
    text("target.toml", "format = 1\nproblem = \"gemm\"\ntarget = \"gpu9\"\n[params]\nm = 1\n");
    text("knob.toml", "format = 1\nproblem = \"gemm\"\n[params]\nm = 1\n[knobs]\nsplit = 3\n");
    refused(dir.path(), &format!("run {}", at("target.toml").display()), 2, "no target family 'gpu9'");
    refused(dir.path(), &format!("run {}", at("knob.toml").display()), 2, "no knob 'split'");
    // As known findings they are only passed over; as a corpus they were asked for.
    let known = format!("gemm --target sim:clean --cases 64 --out {{out}}/o --regressions {}", dir.path().display());
    let warned = run(dir.path(), &known).expect(0).stderr;
    assert!(warned.lines().count() >= 15 && warned.lines().all(|l| l.starts_with("warning: ")), "{warned}");
    let corpus = format!("gemm --target sim:clean --out {{out}}/o --corpus {}", dir.path().display());
    refused(dir.path(), &corpus, 2, "deep.toml");
}

#[test]
fn pins_and_options_that_contradict_are_refused_with_usage() {
    let dir = tempfile::tempdir().unwrap();
    for (options, says) in [
        ("--set zz=1", "no parameter 'zz'"),
        ("--set m=0", "outside"),
        ("--set m=1 --set m=2", "m = 2 is outside 1..=1"),
        ("--set m=5 --range m=10..20", "outside 10..=20"),
        ("--range m=1..1 --range m=2..2", "leaves no value"),
        ("--range m=9..1", "9 is above 1"),
        ("--range transA=1..2", "is a choice"),
        ("--dtype f8", "not one of f32, f64"),
        ("--dtype f32 --set dtype=f64", "not one of f32"),
        ("--set out=C --set ldd=4", "no case of gemm satisfies"),
        ("--placement top", "is no placement"),
        ("--placement end/3", "power of two"),
        ("--placement end+99999999999999999999", "is no placement"),
        ("--target gpu9", "no target family 'gpu9'"),
        ("--target sim:nope", "choose one of i32-sum"),
        ("--target sim:persistent-i32", "no sim model 'persistent-i32' of gemm"),
        ("--target sim:i32-sum,zz=1", "no setting 'zz'"),
        ("--target sim:i32-sum,tile=0x0", "8 to 256"),
        ("--target cblas:model", "takes no model"),
        ("--target sim:clean --lib /bin/true", "loads none"),
        ("--lib=", "--lib"),
        ("--int-width 16", "32 or 64"),
        ("--int-width 32", "leave out --int-width"),
        ("--jobs 0", "not in 1..=256"),
        ("--cases 0", "not in 1.."),
        ("--time 0", "such as 30s"),
        ("--shrinks 0", "not in 1.."),
        ("--confirm 0", "not in 1..=100"),
        ("--max-memory 12", "at least 4KiB"),
        ("--max-work 0", "not in 1.."),
        ("--seed 99999999999999999999999", "too large"),
        ("--profile dense", "strided, packed"),
        ("--corpus /no/such/folder", "/no/such/folder"),
    ] {
        refused(dir.path(), &format!("gemm --out {{out}}/out --regressions {{out}}/none {options}"), 2, says);
    }
    refused(dir.path(), "allgather --ranks 0", 2, "not in 1..=4096");
    refused(dir.path(), "allgather --ranks 100000", 2, "not in 1..=4096");
    refused(dir.path(), "run gemm:m=4 --knob zz=1", 2, "no knob 'zz'");
    refused(dir.path(), "run gemm:m=4 --knob zz", 2, "write NAME=VALUE");
    refused(dir.path(), "run gemm:m=4 --each-rank", 2, "leave out --each-rank");
    refused(dir.path(), "run allgather:ranks=4,M=8,N=8 --knob only-rank=4", 2, "only-rank = 4 is not one of");
    refused(dir.path(), "shrink gemm:m=4,lda=4096 --profile packed --out {out}/out", 2, "lda=4096 breaks");
}

#[test]
fn a_pin_of_a_parameter_that_needs_another_brings_it_along() {
    let dir = tempfile::tempdir().unwrap();
    let common = "gemm --target sim:clean --cases 64";
    for (pin, with) in [("ldd=40", ("out", "D")), ("strideA=5", ("batch", ""))] {
        let r = hunt(dir.path(), &format!("{common} --set {pin}")).expect(0);
        for case in r.events_of("case") {
            let value = &case["case"]["params"][with.0];
            assert!(value == with.1 || value.as_i64().is_some_and(|b| b > 1), "{pin}: {case}");
        }
    }
}

#[test]
fn libraries_that_cannot_be_loaded_are_a_setup_error_and_what_is_no_file_is_a_usage_error() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("empty.so"), "").unwrap();
    fs::write(at("torn.so"), &fs::read("/proc/self/exe").unwrap()[..100]).unwrap();
    fifo(&at("fifo.so"));
    for lib in ["/no/such/lib.so", "/dev/zero", "{out}/fifo.so", "/usr", "libc.so.6"] {
        refused(
            dir.path(),
            &format!("gemm --out {{out}}/out --lib {lib}"),
            2,
            "is no file; name the file of a library",
        );
        refused(dir.path(), &format!("run gemm:m=4 --lib {lib}"), 2, "is no file; name the file of a library");
    }
    for (lib, says) in [
        ("{out}/empty.so", "not an ELF file"),
        ("{out}/torn.so", "failed to load"),
        ("/proc/self/exe", "failed to load"),
    ] {
        refused(dir.path(), &format!("gemm --out {{out}}/out --lib {lib}"), 3, says);
        refused(dir.path(), &format!("run gemm:m=4 --lib {lib}"), 3, says);
    }
    if let Some(libm) = common::library("libm.so.6") {
        refused(dir.path(), &format!("run gemm:m=4 --lib {}", libm.display()), 3, "has no GEMM");
    }
}

#[test]
fn an_output_folder_that_cannot_be_used_is_a_setup_error() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    fifo(&dir.path().join("fifo"));
    for (out, says) in [
        ("{out}/file", "is not a folder"),
        ("{out}/file/below", "is not a folder"),
        ("{out}/fifo", "is not a folder"),
        ("/dev/full", "is not a folder"),
        ("/proc/x", "make the folder writable"),
    ] {
        refused(dir.path(), &format!("gemm --target sim:clean --cases 64 --out {out}"), 3, says);
        refused(dir.path(), &format!("shrink gemm:m=4 --out {out}"), 3, says);
    }
}

#[test]
fn two_runs_do_not_share_an_output_folder() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let mut first = program();
    let first = first.args(["gemm", "--target", "sim:clean", "--cases", "1000000000", "-q", "--out"]).arg(&out);
    let mut first = first.stdout(std::process::Stdio::null()).spawn().unwrap();
    while fs::read_to_string(out.join("lock")).map_or(true, |t| t.trim().is_empty()) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let says = format!("another run (process {}) uses", first.id());
    refused(dir.path(), "gemm --target sim:clean --cases 64 --out {out}/out", 3, &says);
    first.kill().unwrap();
    first.wait().unwrap();
    run(dir.path(), "gemm --target sim:clean --cases 64 --out {out}/out --regressions {out}/none").expect(0);
}

#[test]
fn keep_takes_a_finding_once_and_never_replaces_another() {
    let dir = tempfile::tempdir().unwrap();
    hunt(dir.path(), "gemm --seed 42").expect(1);
    let file = findings(&dir.path().join("out"))[0].display().to_string();
    let keep = format!("keep {file} --regressions {{out}}/kept");
    assert!(run(dir.path(), &keep).expect(0).stdout.contains("kept as"));
    assert!(run(dir.path(), &keep).expect(0).stdout.contains("holds it already"));
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{text}\n# edited\n")).unwrap();
    refused(dir.path(), &keep, 2, "is there already and differs");
    // A finding of another problem, or one that contradicts itself, is no finding.
    fs::write(&file, text.replace("problem = \"gemm\"", "problem = \"allgather\"")).unwrap();
    refused(dir.path(), &keep, 2, "allgather");
    refused(dir.path(), &format!("run {file}"), 2, "allgather");
}

#[test]
fn caps_that_leave_nothing_to_run_are_said_and_are_no_pass() {
    let dir = tempfile::tempdir().unwrap();
    for cap in ["--max-memory 4096", "--max-work 1"] {
        hunt(dir.path(), &format!("gemm --target sim:clean --cases 64 {cap}")).expect(6);
        run(dir.path(), &format!("run gemm:m=40,n=40,k=40 {cap}")).expect(6);
        let shrunk = run(dir.path(), &format!("shrink gemm:m=40,n=40,k=40 {cap} --out {{out}}/o")).expect(6);
        assert!(shrunk.stdout.contains("was not run"), "{}", shrunk.stdout);
    }
}

#[test]
fn every_help_text_names_the_exit_codes() {
    let dir = tempfile::tempdir().unwrap();
    for command in ["", "gemm", "allgather", "run", "shrink", "keep", "targets", "doctor", "fuzz", "regress", "check"] {
        let help = run(dir.path(), &format!("{command} --help")).expect(0).stdout;
        assert!(help.contains("Exit codes"), "{command}:\n{help}");
        assert!(help.lines().all(|l| l.chars().count() <= 130), "{help}");
    }
    let bare = run(dir.path(), "").expect(2);
    assert!(bare.stderr.contains("Usage:") && bare.stdout.is_empty());
    assert!(run(dir.path(), "--version").expect(0).stdout.starts_with("shrinkfault "));
}
