//! `regress` on the findings of the repository and on models whose defect moves, changes or goes away.

mod common;

use common::{Run, count, findings, library, program, run};
use quick_junit::Report;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Columns from a byte offset of 2^31 on are not written; as found, the offset is far beyond 2^32.
const DROPPED: &str = "gemm:m=8,n=12,k=4,lda=536870912,ldc=134217728,dtype=f64";
const DROPS_31: &str = "sim:u32-bytes-drop,bits=31";
const DROPS_32: &str = "sim:u32-bytes-drop,bits=32";
/// First bad ldc of the two models: two columns of f32.
const LINE_31: i64 = 1 << 29;
const LINE_32: i64 = 1 << 30;

/// A folder with one finding of the model that drops from 2^31 bytes on.
struct Folder {
    dir: TempDir,
    file: PathBuf,
}

impl Folder {
    fn new() -> Folder {
        let dir = tempfile::tempdir().unwrap();
        run(dir.path(), &format!("shrink {DROPPED} --target {DROPS_31} --out {{out}}/out -q")).expect(1);
        let made = findings(&dir.path().join("out"));
        assert_eq!(made.len(), 1, "{made:?}");
        let file = dir.path().join("reg/sub").join(made[0].file_name().unwrap());
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::copy(&made[0], &file).unwrap();
        Folder { dir, file }
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.file).unwrap()
    }

    /// Changes the file; every change has to be one.
    fn edit(&self, changes: &[(&str, &str)]) {
        let mut text = self.text();
        for (from, to) in changes {
            assert!(text.contains(from), "no '{from}' in\n{text}");
            text = text.replace(from, to);
        }
        std::fs::write(&self.file, text).unwrap();
    }

    fn regress(&self, more: &str) -> Run {
        run(self.dir.path(), &format!("regress {{out}}/reg --json {more}"))
    }

    /// The one finding's event.
    fn replayed(&self, more: &str, code: i32) -> Value {
        let mut events = self.regress(more).expect(code).events_of("replayed");
        assert_eq!(events.len(), 1, "{events:?}");
        events.remove(0)
    }

    fn outcome(&self, more: &str, code: i32) -> String {
        self.replayed(more, code)["outcome"].as_str().unwrap().to_owned()
    }

    /// The files below the folder of findings.
    fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(self.file.parent().unwrap()).unwrap().map(|e| e.unwrap().path()).collect();
        files.sort();
        files
    }
}

fn boundary(event: &Value) -> [i64; 4] {
    assert_eq!(event["boundary"]["param"], "ldc", "{event}");
    ["old_good", "old_bad", "new_good", "new_bad"].map(|k| event["boundary"][k].as_i64().unwrap())
}

/// Every finding file below a folder, with its bytes.
fn bytes_below(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.append(&mut bytes_below(&path));
        } else {
            all.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    all
}

#[test]
fn the_findings_of_the_repository_are_reproduced_where_their_libraries_are() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    let before = bytes_below(&folder);
    let all = before.keys().filter(|p| p.extension().is_some_and(|e| e == "toml")).count();
    let mut command = program();
    // The short form runs one of three shards.
    let shards = count(3, 1);
    let r = Run::of(command.args(["regress", "--json", "--shard", &format!("1/{shards}")]).output().unwrap());
    let events = r.events_of("replayed");
    match shards {
        1 => assert_eq!(events.len(), all, "{}", r.stderr),
        _ => assert!(!events.is_empty() && events.len() < all, "{}", r.stderr),
    }
    let mut reproduced = 0;
    for event in &events {
        let target = event["target"].as_str().unwrap();
        let (outcome, why) = (event["outcome"].as_str().unwrap(), event["why"].as_str().unwrap_or_default());
        let Some((_, library)) = target.split_once('@') else {
            // A GPU, which few machines have.
            println!("not held to anything but a reason: {event}");
            assert!(outcome != "skipped" || why.contains("NVIDIA driver"), "{event}");
            continue;
        };
        if !Path::new(library).is_file() {
            println!("not run: {library} is missing");
            assert_eq!(outcome, "skipped", "{event}");
            assert!(why.contains("was not found on this machine"), "{event}");
        } else if why.contains("instead; name a core type") {
            // Kernels that this processor cannot run.
            println!("not run here: {event}");
            assert_eq!(outcome, "skipped", "{event}");
        } else if why.contains("the core type is ") {
            println!("not comparable here: {event}");
            assert_eq!(outcome, "not-comparable", "{event}");
        } else {
            assert_eq!(outcome, "reproduced", "{event}");
            assert_eq!((event["runs"].as_u64(), event["failed"].as_u64()), (Some(3), Some(3)), "{event}");
            reproduced += 1;
        }
    }
    if reproduced > 0 {
        r.expect(0);
    }
    assert_eq!(bytes_below(&folder), before);
}

#[test]
fn a_finding_is_reproduced_on_its_model_and_fixed_on_the_clean_twin() {
    let f = Folder::new();
    let before = f.text();
    let event = f.replayed("", 0);
    assert_eq!((&event["outcome"], &event["status"]), (&"reproduced".into(), &"open".into()), "{event}");
    assert_eq!(event["boundary"], Value::Null);
    assert_eq!(f.outcome("--target sim:clean", 0), "fixed");
    assert_eq!(f.outcome("--confirm 1 --jobs 1", 0), "reproduced");
    let one = run(f.dir.path(), &format!("regress {}", f.file.display())).expect(0);
    assert!(one.stdout.contains("\nreproduced      sim-u32-bytes-drop-gemm-"), "{}", one.stdout);
    assert_eq!((f.text(), f.files()), (before, vec![f.file.clone()]));
}

#[test]
fn on_another_kernel_a_pass_is_not_comparable_and_a_failure_is_one() {
    let f = Folder::new();
    let event = f.replayed("--target sim:clean,tile=32x32", 5);
    assert_eq!(event["outcome"], "not-comparable");
    let why = event["why"].as_str().unwrap();
    assert_eq!(why, "the kernel is tiles of 32x32, unroll 16, and tiles of 64x64, unroll 16 in the file");
    // A line that lies elsewhere on another kernel has not moved.
    assert_eq!(f.outcome(&format!("--target {DROPS_32},tile=32x32"), 5), "not-comparable");
    assert_eq!(f.outcome(&format!("--target {DROPS_31},tile=32x32"), 0), "reproduced");
}

#[test]
fn a_line_that_lies_higher_now_is_found_from_the_original_case_and_from_the_far_one() {
    let f = Folder::new();
    // The far witness passes, too: only the case as it was found still fails.
    let event = f.replayed(&format!("--target {DROPS_32}"), 1);
    assert_eq!(event["outcome"], "moved", "{event}");
    assert_eq!(boundary(&event), [LINE_31 - 1, LINE_31, LINE_32 - 1, LINE_32]);
    f.edit(&[("changed = { ldc = 805306368 }", "changed = { ldc = 1610612736 }")]);
    let event = f.replayed(&format!("--target {DROPS_32}"), 1);
    assert_eq!(boundary(&event), [LINE_31 - 1, LINE_31, LINE_32 - 1, LINE_32]);
    let people = run(f.dir.path(), &format!("regress {{out}}/reg --target {DROPS_32}")).expect(1).stdout;
    let line =
        "ldc: last good 536870911, first bad 536870912 in the file; now last good 1073741823, first bad 1073741824";
    assert!(people.contains(line), "{people}");
}

#[test]
fn only_update_writes_and_then_the_file_is_true_again() {
    let f = Folder::new();
    let (old, name) = (f.text(), f.file.clone());
    // A finding that was made with a line that lies higher than the model's.
    f.edit(&[
        ("\nldc = 536870912\n", "\nldc = 536870999\n"),
        ("value = 536870911,", "value = 536870998,"),
        ("value = 536870912,", "value = 536870999,"),
    ]);
    let moved = f.text();
    let event = f.replayed("", 1);
    assert_eq!((&event["outcome"], &event["updated"]), (&"moved".into(), &Value::Null));
    assert_eq!(boundary(&event), [536_870_998, 536_870_999, LINE_31 - 1, LINE_31]);
    assert_eq!(f.text(), moved);
    let event = f.replayed("--update", 1);
    assert_eq!(event["updated"], f.file.display().to_string());
    let params = |text: &str| text.parse::<toml::Table>().unwrap()["minimal"]["params"].clone();
    assert_eq!(params(&f.text()), params(&old));
    assert!(f.text().contains("{ by = \"follow the line\", case = "), "{}", f.text());
    assert_eq!((f.outcome("", 0), f.files()), ("reproduced".to_owned(), vec![name]));
}

#[test]
fn a_file_that_is_called_as_its_finding_is_called_as_the_new_one_after_an_update() {
    let f = Folder::new();
    f.edit(&[
        ("\nldc = 536870912\n", "\nldc = 536870999\n"),
        ("value = 536870911,", "value = 536870998,"),
        ("value = 536870912,", "value = 536870999,"),
    ]);
    let own = f.replayed("", 1)["finding"].as_str().unwrap().to_owned();
    let named = f.file.with_file_name(format!("{own}.toml"));
    std::fs::rename(&f.file, &named).unwrap();
    let event = f.replayed("--update", 1);
    // Its line is that of the finding whose name the file had at first.
    assert_eq!(event["updated"], f.file.display().to_string());
    assert_eq!(f.files(), std::slice::from_ref(&f.file));
}

#[test]
fn the_status_follows_what_happens_and_a_fixed_finding_that_fails_is_back() {
    let f = Folder::new();
    let open = f.text();
    f.edit(&[(&format!("target = \"{DROPS_31}\""), "target = \"sim:clean\"")]);
    let clean = f.text();
    assert_eq!((f.outcome("", 0), f.text()), ("fixed".to_owned(), clean.clone()));
    f.replayed("--update", 0);
    let fixed = f.text();
    let lines = |text: &str| text.lines().filter(|l| !l.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
    let changed: Vec<_> = lines(&clean).into_iter().zip(lines(&fixed)).filter(|(a, b)| a != b).collect();
    assert_eq!(changed, [("status = \"open\"".to_owned(), "status = \"fixed\"".to_owned())]);
    let event = f.replayed("", 0);
    assert_eq!((&event["outcome"], &event["status"]), (&"fixed".into(), &"fixed".into()));

    f.edit(&[("target = \"sim:clean\"", &format!("target = \"{DROPS_31}\""))]);
    let back = f.text();
    assert_eq!((f.outcome("", 1), f.text()), ("back".to_owned(), back));
    assert_eq!(f.outcome("--update", 1), "back");
    assert_eq!(lines(&f.text()), lines(&open));
    assert_eq!(f.outcome("", 0), "reproduced");
}

#[test]
fn a_failure_of_another_kind_is_different() {
    let f = Folder::new();
    let before = f.text();
    // lda * k of the original case is 2^31.
    let event = f.replayed("--target sim:abort", 1);
    assert_eq!(event["outcome"], "different", "{event}");
    assert!(event["why"].as_str().unwrap().starts_with("the original case: crash (signal 6 (SIGABRT)"), "{event}");
    f.edit(&[(&format!("target = \"{DROPS_31}\""), "target = \"sim:abort\"")]);
    let edited = f.text();
    assert_eq!((f.outcome("--update", 1), f.text()), ("different".to_owned(), edited));
    assert_ne!(f.text(), before);
}

#[test]
fn what_cannot_be_opened_is_skipped_with_the_reason() {
    let f = Folder::new();
    let why = |more: &str| {
        let event = f.replayed(more, 6);
        assert_eq!(event["outcome"], "skipped", "{event}");
        event["why"].as_str().unwrap().to_owned()
    };
    assert!(why("--target sim:nosuch").contains("there is no sim model 'nosuch'"));
    assert!(why("--target sim:persistent-i32").contains("there is no sim model 'persistent-i32'"));
    assert!(why("--target cblas@libnosuch.so.3").contains("libnosuch.so.3 was not found on this machine"));
    f.edit(&[(&format!("target = \"{DROPS_31}\""), "target = \"cblas@libnosuch.so.3\"")]);
    assert!(why("").contains("libnosuch.so.3 was not found on this machine"));
}

#[test]
fn a_finding_with_a_history_is_replayed_with_it() {
    let f = Folder::new();
    let text = f.text();
    let original = &text[text.find("[original]").unwrap()..text.find("# Where this was seen").unwrap()];
    let before = original.replace("[original]", "[[history.before]]\nis_minimal = false");
    let before = before.replace("[original.params]", "[history.before.params]");
    let history = format!("[history]\nfound_after = 1\nalone = {{ runs = 20, failed = 0 }}\n{before}");
    f.edit(&[("# Where this was seen", &format!("{history}\n# Where this was seen"))]);
    // It fails after that case, but without it, too: no failure that needs a history.
    let event = f.replayed("", 1);
    assert_eq!(event["outcome"], "different");
    assert!(event["why"].as_str().unwrap().contains("without the cases"), "{event}");
    // On a model that faults there, the case that runs before the finding's ends the process.
    let event = f.replayed("--target sim:abort", 1);
    assert_eq!(event["outcome"], "different");
    assert!(
        event["why"].as_str().unwrap().contains("one of the cases that run before it ended the process"),
        "{event}"
    );
}

#[test]
fn a_rare_failure_is_run_until_it_comes_and_its_absence_takes_many_passes() {
    let dir = tempfile::tempdir().unwrap();
    // Offsets into B wrap in half of the launches.
    let case = "gemm:m=1,n=2,k=1,ldb=2147483648";
    run(dir.path(), &format!("shrink {case} --target sim:flaky,operand=B,rate=0.5 --out {{out}}/out -q")).expect(1);
    let file = findings(&dir.path().join("out")).remove(0);
    let bad = std::fs::read_to_string(&file).unwrap().parse::<toml::Table>().unwrap()["confirmation"]["bad"].clone();
    assert!(bad["failed"].as_integer() < bad["runs"].as_integer(), "{bad}");
    let replayed = |more: &str| {
        let r = run(dir.path(), &format!("regress {} --json {more}", file.display())).expect(0);
        r.events_of("replayed").remove(0)
    };
    assert_eq!(replayed("")["outcome"], "reproduced");
    let fixed = replayed("--target sim:clean");
    assert_eq!(fixed["outcome"], "fixed");
    assert!(fixed["runs"].as_u64() > Some(5), "{fixed}");
}

/// A folder of five findings of several outcomes and one file that is none.
fn mixed() -> Folder {
    let f = Folder::new();
    let text = f.text();
    let put = |name: &str, text: &str| std::fs::write(f.dir.path().join("reg").join(name), text).unwrap();
    let on = |target: &str| text.replace(&format!("target = \"{DROPS_31}\""), &format!("target = \"{target}\""));
    put("a-moved.toml", &on(DROPS_32));
    put("b-fixed.toml", &on("sim:clean"));
    put("c-skipped.toml", &on("sim:nosuch"));
    put("d-malformed.toml", "format = 1\nthis is no TOML");
    put("e-other-kernel.toml", &on("sim:clean,tile=32x32"));
    put("not-a-finding.txt", "nothing");
    f
}

#[test]
fn a_file_that_does_not_read_is_an_error_and_the_others_are_replayed_and_reported() {
    let f = mixed();
    let report = f.dir.path().join("report.xml");
    let r = f.regress(&format!("--junit {}", report.display())).expect(2);
    assert_eq!(r.stderr.lines().filter(|l| l.starts_with("error: ")).count(), 1, "{}", r.stderr);
    assert!(r.stderr.contains("d-malformed.toml: line 2: "), "{}", r.stderr);
    let mut outcomes: Vec<String> =
        r.events_of("replayed").iter().map(|e| e["outcome"].as_str().unwrap().to_owned()).collect();
    outcomes.sort();
    assert_eq!(outcomes, ["fixed", "moved", "not-comparable", "reproduced", "skipped"]);
    let end = &r.events_of("regressed")[0];
    assert_eq!((end["unreadable"].as_u64(), end["outcomes"]["moved"].as_u64()), (Some(1), Some(1)), "{end}");

    let xml = std::fs::read_to_string(report).unwrap();
    let read = Report::deserialize_from_str(&xml).unwrap();
    assert_eq!((read.tests, read.failures, read.errors), (6, 1, 1), "{xml}");
    let tests: usize = read.test_suites.iter().map(|s| s.test_cases.len()).sum();
    assert_eq!((tests, xml.matches("<skipped ").count()), (6, 2), "{xml}");
    assert!(xml.contains("now last good 1073741823, first bad 1073741824"), "{xml}");
}

#[test]
fn shards_are_a_partition_and_an_empty_one_is_no_failure() {
    let f = mixed();
    let mut seen: Vec<String> = vec![];
    for part in 1..=8 {
        let r = f.regress(&format!("--shard {part}/8"));
        let paths = r.events_of("replayed").into_iter().chain(r.events_of("unreadable"));
        let paths: Vec<String> = paths.map(|e| e["path"].as_str().unwrap().to_owned()).collect();
        assert!(paths.len() <= 1, "{paths:?}");
        assert!(!paths.is_empty() || r.code == 0, "shard {part} is empty and exits with {}", r.code);
        seen.extend(paths);
    }
    seen.sort();
    let mut all: Vec<String> = bytes_below(&f.dir.path().join("reg"))
        .keys()
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .map(|p| p.display().to_string())
        .collect();
    all.sort();
    assert_eq!(seen, all);
}

#[test]
fn without_a_self_test_no_verdict_is_believed() {
    let f = Folder::new();
    let mut command = program();
    command.arg("regress").arg(&f.file).arg("--json").env("SHRINKFAULT_BREAK_ORACLE", "canary");
    let r = Run::of(command.output().unwrap()).expect(3);
    assert!(r.events_of("replayed").is_empty());
    assert!(r.stderr.contains("the self-test failed: the canary oracle"), "{}", r.stderr);
}

#[test]
fn what_the_command_line_names_has_to_be_there() {
    let dir = tempfile::tempdir().unwrap();
    let error = |words: &str| run(dir.path(), words).expect(2).stderr;
    assert!(error("regress {out}/none").contains("name a folder of findings"));
    assert!(error("regress --lib {out}/none.so").contains("is no file; name the file of a library"));
    assert!(error("regress --shard 0/2").contains("write K/N"));
    assert!(error("regress --update --target sim:clean").contains("cannot be used with"));
    assert!(error("regress --target ,").contains("is no target"));
    let empty = run(dir.path(), "regress {out}").expect(6);
    assert!(empty.stdout.contains("none was replayed"), "{}", empty.stdout);
    assert!(empty.stderr.contains("there is no finding in"), "{}", empty.stderr);
}

#[test]
fn another_library_that_passes_is_not_comparable() {
    let (Some(gsl), Some(reference)) = (library("libgslcblas.so.0"), library("blas/libblas.so.3")) else { return };
    let dir = tempfile::tempdir().unwrap();
    // The reference BLAS has defects of its own in routines on vectors.
    let folder = some_findings("gslcblas/gslcblas-gemm-", &dir.path().join("gemm"));
    let words = format!("regress {} --json --lib {}", folder.display(), reference.display());
    let r = run(dir.path(), &words).expect(5);
    let events = r.events_of("replayed");
    assert!(!events.is_empty());
    for event in events {
        assert_eq!(event["outcome"], "not-comparable");
        assert!(event["why"].as_str().unwrap().starts_with("the library is "), "{event}");
    }
    run(dir.path(), &format!("regress {} --lib {}", folder.display(), gsl.display())).expect(0);
}

/// A folder with the findings of the repository whose path below `regressions/` begins in this way.
fn some_findings(beginning: &str, folder: &Path) -> PathBuf {
    let (group, name) = beginning.split_once('/').unwrap();
    std::fs::create_dir(folder).unwrap();
    let findings = bytes_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions").join(group));
    for (path, bytes) in findings {
        let file = path.file_name().unwrap().to_str().unwrap();
        if file.starts_with(name) && file.ends_with(".toml") {
            std::fs::write(folder.join(file), bytes).unwrap();
        }
    }
    folder.to_owned()
}

/// A BLAS in small with a defect in B, or without.
fn small_blas(dir: &Path, file: &str, wraps: bool) -> Option<PathBuf> {
    let source = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wrapping_blas.c")).unwrap();
    let right = source.replace("int offset = (int)", "long offset = (long)").replace("(unsigned)", "(long)");
    assert_ne!(source, right);
    let (library, c) = (dir.join(file), dir.join("blas.c"));
    std::fs::create_dir_all(library.parent().unwrap()).unwrap();
    std::fs::write(&c, if wraps { source } else { right }).unwrap();
    match std::process::Command::new("cc").args(["-O1", "-shared", "-fPIC", "-o"]).arg(&library).arg(&c).output() {
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

#[test]
fn a_finding_that_another_version_of_its_library_does_not_have_is_fixed() {
    let dir = tempfile::tempdir().unwrap();
    let Some(old) = small_blas(dir.path(), "old/libsmall.so.1", true) else { return };
    let Some(new) = small_blas(dir.path(), "new/libsmall.so.2", false) else { return };
    let Some(other) = small_blas(dir.path(), "new/libother.so.2", false) else { return };
    let case = "gemm:m=1,n=3,k=1,ldb=1073741824";
    run(dir.path(), &format!("shrink {case} --lib {} --out {{out}}/out -q", old.display())).expect(1);
    let file = findings(&dir.path().join("out")).remove(0);
    let replayed = |more: &str, code| {
        let r = run(dir.path(), &format!("regress {} --json {more}", file.display())).expect(code);
        r.events_of("replayed").remove(0)
    };
    assert_eq!(replayed("", 0)["outcome"], "reproduced");
    let fixed = replayed(&format!("--lib {}", new.display()), 0);
    assert_eq!(fixed["outcome"], "fixed", "{fixed}");
    assert!(fixed["notes"][0].as_str().unwrap().starts_with("library build id "), "{fixed}");
    assert_eq!(replayed(&format!("--lib {}", other.display()), 5)["outcome"], "not-comparable");
    std::fs::remove_file(&old).unwrap();
    let gone = replayed("", 6);
    assert!(gone["why"].as_str().unwrap().contains("libsmall.so.1 was not found on this machine"), "{gone}");
}

#[test]
fn on_another_core_type_of_a_library_a_pass_is_not_comparable() {
    let Some(openblas) = library("libopenblas.so.0") else { return };
    let target = format!("cblas,core=Prescott@{}", openblas.display());
    let dir = tempfile::tempdir().unwrap();
    let folder = some_findings("openblas/openblas-gemm-", &dir.path().join("gemm"));
    let mut command = program();
    command.args(["regress", folder.to_str().unwrap(), "--json", "--target", &target]);
    let r = Run::of(command.output().unwrap()).expect(5);
    for event in r.events_of("replayed") {
        assert_eq!(event["outcome"], "not-comparable", "{event}");
        assert_eq!(event["why"], "the core type is Prescott, and SkylakeX in the file");
    }
}
