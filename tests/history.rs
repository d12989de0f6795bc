//! Failures that depend on what their process ran before: told from those that do not, brought down to the fewest cases that
//! have to run first, filed with them, and replayed after them.

mod common;

use common::{Run, count, findings, program};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder with the library of history_blas.c.
struct Folder {
    dir: tempfile::TempDir,
}

impl Folder {
    /// `None` where there is no C compiler.
    fn new() -> Option<Folder> {
        let dir = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/history_blas.c");
        let library = dir.path().join("libhistory.so");
        match Command::new("cc").args(["-O1", "-shared", "-fPIC", "-o"]).args([&library, &source]).output() {
            Ok(done) => assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr)),
            Err(e) => {
                println!("skipped: no C compiler ({e})");
                return None;
            }
        }
        Some(Folder { dir })
    }

    fn out(&self) -> PathBuf {
        self.dir.path().join("out")
    }

    /// Runs the program while the library fails in this way.
    fn run(&self, how: &str, words: &str) -> Run {
        let mut command = program();
        command.args(words.split_whitespace()).arg("--json").env("HISTORY_BLAS", how);
        if !words.starts_with("regress") {
            command.arg("--out").arg(self.out());
        }
        Run::of(command.output().unwrap())
    }

    fn on_the_library(&self, how: &str, words: &str) -> Run {
        self.run(how, &format!("{words} --lib {}", self.dir.path().join("libhistory.so").display()))
    }

    fn hunt(&self, how: &str, words: &str) -> Run {
        let cases = if words.contains("--cases") { "" } else { "--cases 500" };
        let words = format!("gemm {cases} --max-work 10000 --jobs 2 --regressions none {words}");
        self.on_the_library(how, &words)
    }

    /// The findings, read as TOML.
    fn files(&self) -> Vec<toml::Table> {
        let read = |path: PathBuf| std::fs::read_to_string(path).unwrap().parse().unwrap();
        findings(&self.out()).into_iter().map(read).collect()
    }

    /// Where the one finding lies.
    fn file(&self) -> String {
        let files = findings(&self.out());
        assert_eq!(files.len(), 1, "{files:?}");
        files[0].display().to_string()
    }
}

/// m, n and k of a case.
fn mnk(case: &toml::Value) -> [i64; 3] {
    ["m", "n", "k"].map(|name| case["params"][name].as_integer().unwrap())
}

fn before(finding: &toml::Table) -> Vec<([i64; 3], bool)> {
    let list = finding["history"]["before"].as_array().unwrap();
    list.iter().map(|c| (mnk(c), c["is_minimal"].as_bool().unwrap())).collect()
}

fn tally(value: &toml::Value) -> (i64, i64) {
    (value["runs"].as_integer().unwrap(), value["failed"].as_integer().unwrap())
}

#[test]
fn the_fewest_cases_that_have_to_run_first_are_found_and_filed() {
    let Some(_) = Folder::new() else { return };
    // What poisons the process has m = 3 and k = 6 at least; the rest fails whatever ran first.
    let expected = [
        ("after", vec![([3, 1, 6], false)], [1, 1, 1]),
        ("third", vec![([1, 1, 1], true), ([1, 1, 1], true)], [1, 1, 1]),
        ("again", vec![([1, 2, 1], true)], [1, 2, 1]),
    ];
    for seed in 1..=count(1, 8) {
        for (how, list, minimal) in &expected {
            let f = Folder::new().unwrap();
            f.hunt(how, &format!("--seed {seed}")).expect(1);
            let files = f.files();
            assert_eq!(files.len(), 1, "{how}, seed {seed}");
            let finding = &files[0];
            assert_eq!((before(finding), mnk(&finding["minimal"])), (list.clone(), *minimal), "{how}, seed {seed}");
            let (runs, failed) = tally(&finding["confirmation"]["bad"]);
            let (alone, alone_failed) = tally(&finding["history"]["alone"]);
            assert!(runs >= 3 && failed == runs && alone >= runs && alone_failed == 0, "{how}: {finding}");
            assert!(finding["confirmation"].get("failure_rate").is_none(), "{how}: {finding}");
        }
    }
}

#[test]
fn a_failure_at_random_is_flaky_and_needs_no_history() {
    let Some(_) = Folder::new() else { return };
    for seed in 1..=count(3, 30) {
        let f = Folder::new().unwrap();
        f.hunt("random", &format!("--seed {seed}")).expect(1);
        let finding = &f.files()[0];
        assert!(finding.get("history").is_none(), "seed {seed}: {finding}");
        let rate = finding["confirmation"]["failure_rate"].as_array().unwrap();
        let (low, high) = (rate[0].as_float().unwrap(), rate[1].as_float().unwrap());
        assert!(low < 0.5 && high > 0.15, "seed {seed}: {low} to {high}");
    }
}

#[test]
fn a_finding_is_run_shrunk_and_replayed_after_its_cases_and_known_again() {
    let Some(f) = Folder::new() else { return };
    f.hunt("again", "--seed 5").expect(1);
    let file = f.file();
    let title = f.files()[0]["title"].as_str().unwrap().to_owned();
    assert!(title.ends_with(", in run 2 of one process"), "{title}");

    // After its list it fails, by the line that was certified; alone it passes.
    let ran = f.run("again", &format!("run {file}")).expect(1).events_of("run").remove(0);
    assert_eq!(ran["before"].as_array().unwrap().len(), 1, "{ran}");
    f.run("again", &format!("run {file} --set n=1")).expect(0);
    f.run("again", &format!("run {file} --set n=7")).expect(1);
    f.on_the_library("again", "run gemm:m=1,n=2,k=1").expect(0);

    // Shrinking it again comes to the same finding.
    let shrunk = f.run("again", &format!("shrink {file}")).expect(1);
    assert_eq!(shrunk.events_of("known").len(), 1, "{}", shrunk.stdout);
    assert_eq!(findings(&f.out()).len(), 1);

    let outcome = |how: &str, code: i32| {
        let event = f.run(how, &format!("regress {file}")).expect(code).events_of("replayed").remove(0);
        event["outcome"].as_str().unwrap().to_owned()
    };
    assert_eq!(outcome("again", 0), "reproduced");
    assert_eq!(outcome("nothing", 0), "fixed");
    // Every third call: the case itself fails after another list, and passes after this one.
    assert_eq!(outcome("third", 0), "fixed");

    // Another seed comes upon it again: its list explains what fails there.
    let again = f.hunt("again", "--seed 6 --keep-going").expect(0).summary();
    assert!(again["known"].as_object().unwrap().values().all(|n| n.as_u64() > Some(0)), "{again}");
    assert_eq!(findings(&f.out()).len(), 1);
}

#[test]
fn a_list_of_which_a_case_cannot_run_says_nothing() {
    let Some(f) = Folder::new() else { return };
    f.hunt("after", "--seed 1").expect(1);
    let file = f.file();
    let text = std::fs::read_to_string(&file).unwrap();
    let far = "m = 300\nn = 300";
    let [m, n] =
        ["m = 3\n", "n = 1\n"].map(|line| text.split("[[history.before]]").nth(1).unwrap().find(line).unwrap());
    let start = text.find("[[history.before]]").unwrap() + "[[history.before]]".len();
    let mut changed = text.clone();
    changed.replace_range(start + m..start + n + "n = 1".len(), far);
    let changed = changed.replace("lda = 3\n", "lda = 300\n").replace("ldc = 3\n", "ldc = 300\n");
    std::fs::write(&file, &changed).unwrap();
    // Its work is above the cap: passing without it would be no pass.
    let event = f.run("after", &format!("regress {file} --max-work 1000")).expect(6).events_of("replayed").remove(0);
    assert_eq!(event["outcome"], "skipped", "{event}");
    assert!(event["why"].as_str().unwrap().contains("has to run before it"), "{event}");
    f.run("after", &format!("run {file} --max-work 1000")).expect(6);
    f.run("after", &format!("shrink {file} --max-work 1000")).expect(6);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), changed);
    f.run("after", &format!("run {file}")).expect(1);
}

#[test]
fn a_case_that_fails_without_the_list_too_is_another_failure() {
    let Some(f) = Folder::new() else { return };
    f.hunt("after", "--seed 1").expect(1);
    let file = f.file();
    let text = std::fs::read_to_string(&file).unwrap();
    // The same list before a case that fails by itself.
    let minimal = &text[text.find("[minimal]").unwrap()..text.find("# What the minimal case did").unwrap()];
    std::fs::write(&file, text.replacen(minimal, &minimal.replace("n = 1\n", "n = 5\n"), 1)).unwrap();
    let event = f.run("alone", &format!("regress {file}")).expect(1).events_of("replayed").remove(0);
    assert_eq!(event["outcome"], "different", "{event}");
    assert!(event["why"].as_str().unwrap().contains("without the cases"), "{event}");
    let shrunk = f.run("alone", &format!("shrink {file}")).expect(1);
    assert!(shrunk.events_of("note")[0]["text"].as_str().unwrap().contains("alone"), "{}", shrunk.stdout);
}

#[test]
fn failures_that_need_others_and_failures_that_do_not_are_two_findings() {
    let Some(f) = Folder::new() else { return };
    f.hunt("both", "--seed 2 --keep-going --cases 640").expect(1);
    let mut found: Vec<(bool, [i64; 3])> =
        f.files().iter().map(|t| (t.contains_key("history"), mnk(&t["minimal"]))).collect();
    found.sort();
    assert_eq!(found, [(false, [1, 5, 1]), (true, [1, 1, 1])]);
}

#[test]
fn repeats_find_what_takes_a_second_call() {
    let Some(f) = Folder::new() else { return };
    let repeated = |how: &str, code: i32| {
        f.on_the_library(how, "run gemm:m=2,n=3,k=2 --repeat 5").expect(code).events_of("run")[0]["repeat"].clone()
    };
    let twin = repeated("twin", 1);
    assert_eq!((&twin["ran"], &twin["first_bad"]), (&2.into(), &2.into()), "{twin}");
    let third = repeated("third", 1);
    assert_eq!((&third["verdicts"]["pass"], &third["first_bad"]), (&2.into(), &3.into()), "{third}");
    let clean = repeated("nothing", 0);
    assert_eq!((&clean["verdicts"]["pass"], clean["first_bad"].as_u64()), (&5.into(), None), "{clean}");

    // No case follows itself in a hunt, unless it is repeated.
    let words = "--seed 4 --cases 320";
    f.hunt("twin", words).expect(0);
    f.hunt("twin", &format!("{words} --repeat 2")).expect(1);
    assert_eq!(before(&f.files()[0]), [([1, 1, 1], true)]);
    let file = f.file();
    f.run("twin", &format!("run {file}")).expect(1);
    std::fs::remove_file(file).unwrap();
    // From a case on the command line.
    f.on_the_library("twin", "shrink gemm:m=2,n=3,k=2").expect(0);
    f.on_the_library("twin", "shrink gemm:m=2,n=3,k=2 --repeat 4").expect(1);
    assert_eq!(before(&f.files()[0]), [([1, 1, 1], true)]);
}

#[test]
fn the_list_of_cases_is_the_same_with_and_without_repeats() {
    let Some(f) = Folder::new() else { return };
    let digests = |more: &str| {
        let summary = f.hunt("nothing", &format!("--seed 9 --cases 320 {more}")).expect(0).summary();
        (summary["case_digest"].clone(), summary["verdict_digest"].clone(), summary["tally"]["pass"].clone())
    };
    assert_eq!(digests(""), digests("--repeat 3"));
}

#[test]
fn a_program_of_a_manifest_with_a_memory_is_found_out_too() {
    let dir = tempfile::tempdir().unwrap();
    let script = "import json, os, signal, sys\n\
        print('{\"shrinkfault\":1}', flush=True)\n\
        seen = 0\n\
        for line in sys.stdin:\n\
        \x20   case = json.loads(line)\n\
        \x20   n = case['params']['n']\n\
        \x20   if seen >= 50 and n >= 10:\n\
        \x20       os.kill(os.getpid(), signal.SIGSEGV)\n\
        \x20   seen = max(seen, n)\n\
        \x20   print(json.dumps({'id': case['id'], 'verdict': 'pass'}), flush=True)\n";
    std::fs::write(dir.path().join("memory.py"), script).unwrap();
    let text = "name = 'memory'\ncommand = ['python3', '-S', '-E', 'memory.py']\n[params.n]\nmin = 1\nmax = 100\n\
        [[operands]]\nname = 'A'\ndtype = 'f32'\naccess = 'rw'\ndims = [['n', '1']]\n";
    let manifest = dir.path().join("memory.toml");
    std::fs::write(&manifest, text).unwrap();
    let words = format!("fuzz {} --seed 3 --cases 500 --jobs 2", manifest.display());
    let found = common::hunt(dir.path(), &words).expect(1);
    let summary = &found.events_of("finding")[0]["summary"];
    assert_eq!((&summary["minimal"]["params"]["n"], &summary["before"][0]["params"]["n"]), (&10.into(), &50.into()));
    let witness = &summary["witnesses"][0];
    assert_eq!((&witness["good"], &witness["bad"]), (&9.into(), &10.into()), "{summary}");

    let file = findings(&dir.path().join("out")).remove(0).display().to_string();
    common::run(dir.path(), &format!("run {file}")).expect(1);
    common::run(dir.path(), &format!("run {file} --set n=9")).expect(0);
    common::run(dir.path(), &format!("run memory:n=10 --manifest {}", manifest.display())).expect(0);
    let replayed = common::run(dir.path(), &format!("regress {file} --json")).expect(0);
    assert_eq!(replayed.events_of("replayed")[0]["outcome"], "reproduced");
    let twice = format!("run memory:n=60 --repeat 3 --json --manifest {}", manifest.display());
    assert_eq!(common::run(dir.path(), &twice).expect(1).events_of("run")[0]["repeat"]["first_bad"], 2);
}
