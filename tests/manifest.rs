//! Programs of other people that a manifest names: hunted, shrunk, replayed, known.

mod common;

use common::live::Hunt;
use common::{Run, count, findings, hunt, program, run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A copy of an example, so that its program is built where nobody else looks.
fn example(dir: &Path, name: &str) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/targets");
    for entry in std::fs::read_dir(&from).unwrap().map(|e| e.unwrap().path()) {
        if entry.is_file() && entry.extension().is_some() {
            std::fs::copy(&entry, dir.join(entry.file_name().unwrap())).unwrap();
        }
    }
    if name == "row_sums" {
        let (program, source) = (dir.join("row_sums"), dir.join("row_sums.c"));
        let built = Command::new("cc").arg("-O1").arg("-o").args([&program, &source]).status().unwrap();
        assert!(built.success());
    }
    dir.join(format!("{name}.toml"))
}

fn witness(run: &Run, param: &str) -> (i64, i64) {
    let found = run.events_of("finding");
    assert_eq!(found.len(), 1, "{found:?}");
    let witnesses = found[0]["summary"]["witnesses"].as_array().unwrap();
    let w = witnesses.iter().find(|w| w["param"] == param).unwrap_or_else(|| panic!("{witnesses:?}"));
    (w["good"].as_i64().unwrap(), w["bad"].as_i64().unwrap())
}

fn minimal(run: &Run, param: &str) -> i64 {
    run.events_of("finding")[0]["summary"]["minimal"]["params"][param].as_i64().unwrap()
}

/// The minimal case as a line of a list of shapes, with one parameter changed.
fn text_with(run: &Run, param: &str, value: i64) -> String {
    let params = run.events_of("finding")[0]["summary"]["minimal"]["params"].as_object().unwrap().clone();
    let word = |v: &serde_json::Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    let pairs = params.iter().map(|(n, v)| format!("{n}={}", if n == param { value.to_string() } else { word(v) }));
    pairs.collect::<Vec<_>>().join(",")
}

/// Hunts, checks the file by hand, hunts again.
fn found_replayed_and_known(dir: &Path, manifest: &Path, word: &str, line: (&str, i64)) -> Run {
    let command = format!("fuzz {} --seed 7 --jobs 2 --cases 3000", manifest.display());
    let first = hunt(dir, &command).expect(1);
    assert_eq!(witness(&first, line.0), (line.1 - 1, line.1));
    let files = findings(&dir.join("out"));
    assert_eq!(files.len(), 1, "{files:?}");
    let file = files[0].display().to_string();
    let text = std::fs::read_to_string(&files[0]).unwrap();
    assert!(text.contains(&format!("verdict = \"{word}\"")) && text.contains("sha256="), "{text}");

    run(dir, &format!("run {file}")).expect(1);
    run(dir, &format!("run {file} --set {}={}", line.0, line.1 - 1)).expect(0);
    run(dir, &format!("run {file} --set {}={}", line.0, line.1)).expect(1);
    let replayed = run(dir, &format!("regress {file} --json")).expect(0).events_of("replayed").remove(0);
    assert_eq!(replayed["outcome"], "reproduced", "{replayed}");
    let list = dir.join("shapes.txt");
    let at = |value: i64| text_with(&first, line.0, value);
    std::fs::write(&list, format!("{}\n{}\n", at(line.1 - 1), at(line.1))).unwrap();
    let checked = run(dir, &format!("check {} --law {file} --json", list.display())).expect(1);
    let standings: Vec<_> = checked.events_of("shape").iter().map(|e| e["standing"].clone()).collect();
    assert_eq!(standings, ["before", "past"]);
    let again = hunt(dir, &command).expect(0);
    assert!(again.events_of("finding").is_empty() && !again.events_of("known").is_empty());
    let cases = |r: &Run| r.summary()["case_digest"].clone();
    assert_eq!(cases(&first), cases(&again));
    first
}

#[test]
fn the_c_example_is_hunted_shrunk_to_its_wrap_replayed_and_known() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = example(dir.path(), "row_sums");
    // The offset of row r is r * lda, kept in 32 bits: with two rows it wraps at lda = 2^31.
    let first = found_replayed_and_known(dir.path(), &manifest, "fault", ("lda", 1 << 31));
    assert_eq!((minimal(&first, "rows"), minimal(&first, "cols")), (2, 1));
    let tests = first.events_of("self-test");
    assert_eq!(tests[0]["not_proven"][0], "the program's memory is its own", "{tests:?}");
    let finding = &first.events_of("finding")[0];
    let title = finding["summary"]["title"].as_str().unwrap();
    assert_eq!(title, "row-sums on row_sums.toml reads 2147483648 elements (8589934592 bytes) below the base of A");

    // Shrinking from a case on the command line comes to the same line.
    let words = "shrink row-sums:rows=40,cols=100,lda=70000000 --out {out}/other --json --manifest";
    let shrunk = run(dir.path(), &format!("{words} {}", manifest.display())).expect(1);
    assert_eq!(witness(&shrunk, "lda"), ((1 << 31) - 1, 1 << 31));

    // Kept, it is found by name next to its manifest.
    let file = findings(&dir.path().join("out"))[0].display().to_string();
    run(dir.path(), &format!("keep {file} --regressions {{out}}/regressions")).expect(0);
    assert!(dir.path().join("regressions/row-sums").is_dir());
}

#[test]
fn the_python_example_is_hunted_shrunk_to_its_wrap_replayed_and_known() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = example(dir.path(), "pack_columns");
    // Offsets are kept in 16 bits: element 65536 is read from offset 0.
    let first = found_replayed_and_known(dir.path(), &manifest, "wrong", ("ld", 1 << 16));
    assert_eq!((minimal(&first, "rows"), minimal(&first, "cols")), (2, 1));
    let cases = first.events_of("case");
    assert!(cases.iter().any(|c| c["case"]["knobs"]["unroll"] == 4), "knobs are drawn");
    let known_knob = format!("run pack-columns:rows=8 --manifest {} --knob unroll=2", manifest.display());
    assert!(run(dir.path(), &known_knob).expect(2).stderr.contains("not one of 1, 4"));
}

#[test]
fn a_finding_follows_its_manifest_and_says_that_it_changed() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = example(dir.path(), "pack_columns");
    hunt(dir.path(), &format!("fuzz {} --seed 7 --cases 3000", manifest.display())).expect(1);
    let file = findings(&dir.path().join("out"))[0].display().to_string();

    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, format!("# another line\n{text}")).unwrap();
    let changed = run(dir.path(), &format!("run {file}")).expect(1);
    assert!(changed.stderr.contains("has changed since it was filed"), "{}", changed.stderr);
    let known = hunt(dir.path(), &format!("fuzz {} --seed 7 --cases 3000", manifest.display())).expect(0);
    assert!(known.stderr.contains("has changed since it was filed"), "{}", known.stderr);

    std::fs::write(&manifest, text.replace("max = 131072", "max = 1000")).unwrap();
    let gone = run(dir.path(), &format!("run {file}")).expect(2);
    assert!(gone.stderr.contains("outside 1..=1000") && gone.stderr.contains("has changed"), "{}", gone.stderr);

    let moved = dir.path().join("moved.toml");
    std::fs::write(&moved, text).unwrap();
    std::fs::remove_file(&manifest).unwrap();
    let lost = run(dir.path(), &format!("run {file}")).expect(2);
    assert!(lost.stderr.contains("was not found") && lost.stderr.contains("--manifest"), "{}", lost.stderr);
    run(dir.path(), &format!("run {file} --manifest {}", moved.display())).expect(1);
    let other = example(dir.path(), "row_sums");
    run(dir.path(), &format!("run {file} --manifest {}", other.display())).expect(2);
}

#[test]
fn a_program_that_may_run_once_never_runs_twice_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("alone.toml");
    let script = "import fcntl, json, sys\n\
        lock = open('lock', 'w')\n\
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)\n\
        print('{\"shrinkfault\":1}', flush=True)\n\
        for line in sys.stdin:\n\
        \x20   case = json.loads(line)\n\
        \x20   bad = case['params']['n'] >= 20\n\
        \x20   print(json.dumps({'id': case['id'], 'verdict': 'fault' if bad else 'pass'}), flush=True)\n";
    std::fs::write(dir.path().join("alone.py"), script).unwrap();
    let text = "name = 'alone'\ncommand = ['python3', 'alone.py']\nworkers = 1\n[params.n]\nmin = 1\nmax = 30\n\
        [[operands]]\nname = 'A'\ndtype = 'f32'\naccess = 'rw'\ndims = [['n', '1']]\n";
    std::fs::write(&path, text).unwrap();
    let found = hunt(dir.path(), &format!("fuzz {} --cases 16 --jobs 4 --confirm 1", path.display())).expect(1);
    assert_eq!(witness(&found, "n"), (19, 20));
}

#[test]
fn a_program_can_ask_for_placement_and_name_its_own_knobs() {
    let dir = tempfile::tempdir().unwrap();
    let script = "import json, sys\n\
        print('{\"shrinkfault\":1,\"can\":[\"knobs\",\"place\",\"layout\"]}', flush=True)\n\
        for line in sys.stdin:\n\
        \x20   case = json.loads(line)\n\
        \x20   if case.get('ask') == 'knobs':\n\
        \x20       print(json.dumps({'id': case['id'], 'knobs': {'algo': [0, 1, 2]}}), flush=True)\n\
        \x20       continue\n\
        \x20   place = case['place']['A']\n\
        \x20   assert place['align'] >= 64 and isinstance(case['layout'], int), case\n\
        \x20   bad = place['flush'] == 'start' and case['knobs'].get('algo') == 2 and case['params']['n'] >= 33\n\
        \x20   answer = {'id': case['id'], 'verdict': 'wrong' if bad else 'pass', 'resolved': {'algo': 2}}\n\
        \x20   print(json.dumps(answer), flush=True)\n";
    std::fs::write(dir.path().join("placed.py"), script).unwrap();
    let text = "name = 'placed'\ncommand = ['python3', 'placed.py']\n[params.n]\nmin = 1\nmax = 1000\n\
        [[operands]]\nname = 'A'\ndtype = 'f32'\naccess = 'rw'\nalign = 64\ndims = [['n', '1']]\n";
    let path = dir.path().join("placed.toml");
    std::fs::write(&path, text).unwrap();
    let found = hunt(dir.path(), &format!("fuzz {} --cases 2000", path.display())).expect(1);
    assert_eq!(witness(&found, "n"), (32, 33));
    let minimal = &found.events_of("finding")[0]["summary"]["minimal"];
    assert!(minimal["placement"].as_str().unwrap().starts_with("start"), "{minimal}");
    assert_eq!(minimal["knobs"]["algo"], 2);
}

#[test]
fn help_names_the_exit_codes_and_the_documentation() {
    let output = program().args(["fuzz", "--help"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("Exit codes:") && text.contains("docs/manifest.md"), "{text}");
}

/// A program that answers every case with a pass.
const CLEAN: &str = "import json, sys\n\
    print('{\"shrinkfault\":1}', flush=True)\n\
    for line in sys.stdin:\n\
    \x20   print(json.dumps({'id': json.loads(line)['id'], 'verdict': 'pass'}), flush=True)\n";

#[test]
fn manifests_of_odd_shapes_are_hunted_to_the_end() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("clean.py"), CLEAN).unwrap();
    let operand = |extra: &str| format!("[[operands]]\nname = 'A'\nbytes = 3\naccess = 'rw'\n{extra}\n");
    let integer = |name: &str, rest: &str| format!("[params.{name}]\n{rest}\n");
    let plain = |rest: &str| integer("n", rest) + &operand("dims = [['max(n, 0)', '1']]");
    let odd = [
        ("negative", plain("min = -4611686018427387904\nmax = -1")),
        ("huge", plain("min = -4611686018427387904\nmax = 4611686018427387904")),
        ("steps", plain("min = 5\nmax = 4611686018427387904\nstep = 1125899906842624")),
        ("single", plain("min = 7\nmax = 7")),
        ("scalar", integer("n", "min = 0\nmax = 9") + &operand("dims = []")),
        ("empty", integer("n", "min = 0\nmax = 9") + &operand("dims = [['0', 'n'], ['n', '-n']]")),
        ("choices", integer("c", "values = [1, 2, 3]") + &operand("dims = [[\"if(c == '2', 4, 5)\", '1']]")),
        (
            "backwards",
            integer("n", "min = 1\nmax = 5000")
                + &integer("s", "min = -4294967296\nmax = 4294967296\nrole = 'stride'")
                + &operand("dims = [['n', 's']]\noffset = 'max(0, -s) * (n - 1)'\nwhen = 's != 0'"),
        ),
        (
            "ranks",
            integer("p", "min = 1\nmax = 16\nrole = 'ranks'")
                + &integer("n", "min = 1\nmax = 4294967296\nrole = 'count'")
                + &operand("dims = [['p', 'n'], ['min(n, 100)', '1']]\nranks = 'p'\nallocated = 'p * n'\nalign = 256")
                + "[[operands]]\nname = 'own'\nbytes = 3\naccess = 'r'\ndims = [['min(n, 100)', '1']]\n"
                + "alias = 'A'\nranks = 'p'\noffset = 'rank * n'\ngaps = 'read'\n",
        ),
    ];
    for (name, rest) in odd {
        let text = format!("name = '{name}'\ncommand = ['python3', 'clean.py']\n{rest}");
        let path = dir.path().join(format!("{name}.toml"));
        std::fs::write(&path, &text).unwrap();
        let cases = count(100, 5000);
        for profile in if text.contains("stride") { &["strided", "packed"][..] } else { &["strided"] } {
            let words = format!("fuzz {} --cases {cases} --jobs 1 --profile {profile}", path.display());
            let run = hunt(dir.path(), &words).expect(0);
            assert_eq!(run.summary()["tally"]["pass"], cases, "{name}");
        }
    }
}

#[test]
fn a_hunt_of_a_program_that_is_killed_is_gone_on_with() {
    let (whole, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let words = |dir: &Path| {
        let manifest = example(dir, "row_sums");
        format!("fuzz {} --seed 7 --jobs 2 --cases 1200 --keep-going", manifest.display())
    };
    let expected = hunt(whole.path(), &words(whole.path())).expect(1).summary();
    let words = words(killed.path());
    let mut under_way = Hunt::start(killed.path(), &words);
    under_way.until("finding").signal(libc::SIGKILL);
    under_way.end();
    let r = hunt(killed.path(), &format!("{words} --resume")).expect(1);
    let summary = r.summary();
    for same in ["tally", "case_digest", "verdict_digest", "known", "findings", "not_shrunk"] {
        assert_eq!(summary[same], expected[same], "{same}");
    }
    let manifest = killed.path().join("row_sums.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, format!("{text}\n# changed\n")).unwrap();
    let r = hunt(killed.path(), &format!("{words} --resume")).expect(2);
    assert!(r.stderr.contains("was begun with target"), "{}", r.stderr);
}
