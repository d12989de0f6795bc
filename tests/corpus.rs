//! Folders of seed cases: listed, minimised with and without running them, merged; nothing is lost on the way.

mod common;

use common::{Run, run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Writes seed cases: path, and the lines of `[params]`.
fn write(dir: &Path, seeds: &[(&str, &str)]) {
    for (name, params) in seeds {
        let path = dir.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("# {name}\nformat = 1\nproblem = \"gemm\"\n[params]\n{params}\n")).unwrap();
    }
}

/// Every file below a folder with its bytes.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().map(|e| e.unwrap().path()) {
            match entry.is_dir() {
                true => folders.push(entry),
                false => drop(all.insert(entry.strip_prefix(dir).unwrap().to_owned(), std::fs::read(&entry).unwrap())),
            }
        }
    }
    all
}

fn kept(r: &Run) -> Vec<(String, bool)> {
    let text = |e: &Value| e["file"].as_str().unwrap().to_owned();
    r.events_of("seed").iter().map(|e| (text(e), e["kept"].as_bool().unwrap())).collect()
}

#[test]
fn the_corpus_of_the_repository_is_listed_and_every_case_of_it_adds_something_or_says_to_what_not() {
    let dir = tempfile::tempdir().unwrap();
    let listed = run(dir.path(), "corpus list --json").expect(0);
    let total = listed.events_of("corpus").remove(0);
    assert_eq!((&total["cases"], &total["problems"]["allgather"]), (&10.into(), &4.into()), "{total}");
    assert_eq!(listed.events_of("seed").len(), 10);
    let before = files(Path::new("corpus"));
    let minimised = run(dir.path(), "corpus minimise --json").expect(0);
    for event in minimised.events_of("seed") {
        assert_eq!(event["kept"].as_bool(), Some(event["like"].is_null()), "{event}");
    }
    assert_eq!(minimised.events_of("corpus")[0]["written"], false);
    assert_eq!(files(Path::new("corpus")), before);
    let said = run(dir.path(), "corpus minimise").expect(0).stdout;
    assert!(said.contains("nothing was run") && said.contains("nothing was written: --into DIR"), "{said}");
}

#[test]
fn a_case_that_links_lead_to_is_one_case_and_stays() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("linked");
    write(&folder, &[("b.toml", "m = 3")]);
    std::os::unix::fs::symlink("b.toml", folder.join("a.toml")).unwrap();
    std::os::unix::fs::symlink(".", folder.join("loop")).unwrap();
    let r = run(dir.path(), &format!("corpus minimise {} --write --json", folder.display())).expect(0);
    assert_eq!(kept(&r), [("b.toml".to_owned(), true)]);
    assert!(std::fs::read_to_string(folder.join("b.toml")).unwrap().contains("m = 3"));
}

#[test]
fn a_file_that_holds_no_seed_case_is_named_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("a"), &[("good.toml", "m = 3"), ("bad.toml", "m = 0")]);
    let listed = run(dir.path(), "corpus list {out}/a").expect(2);
    assert!(
        listed.stdout.contains("good.toml: gemm m=3") && listed.stdout.contains("1 seed cases"),
        "{}",
        listed.stdout
    );
    assert!(listed.stderr.contains("bad.toml: m = 0 is outside"), "{}", listed.stderr);
    for command in
        ["minimise {out}/a --into {out}/c", "merge {out}/a {out}/a --into {out}/c", "minimise {out}/a --write"]
    {
        let refused = run(dir.path(), &format!("corpus {command}")).expect(2);
        assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
    }
    assert!(!dir.path().join("c").exists() && files(&dir.path().join("a")).len() == 2);
    run(dir.path(), "corpus list {out}/nowhere").expect(2);
    std::fs::create_dir(dir.path().join("empty")).unwrap();
    assert!(run(dir.path(), "corpus minimise {out}/empty").expect(2).stderr.contains("there is no seed case in"));
}

#[test]
fn minimising_copies_or_removes_only_where_it_is_told_to() {
    let dir = tempfile::tempdir().unwrap();
    let a = dir.path().join("a");
    let seeds = [
        ("gemm/1.toml", "m = 600\nn = 600\nk = 600"),
        ("gemm/2.toml", "m = 601\nn = 602\nk = 603"),
        ("gemm/3.toml", "m = 601\nn = 602\nk = 603\ntransA = \"T\""),
        ("4.toml", "m = 600\nn = 600\nk = 600\nlda = 3000000000"),
    ];
    write(&a, &seeds);
    let before = files(&a);
    let expected = [("4.toml", true), ("gemm/1.toml", true), ("gemm/2.toml", false), ("gemm/3.toml", true)];
    let expected = expected.map(|(name, kept)| (name.to_owned(), kept)).to_vec();
    assert_eq!(kept(&run(dir.path(), "corpus minimise {out}/a --json").expect(0)), expected);
    assert_eq!(files(&a), before);

    let copied = run(dir.path(), "corpus minimise {out}/a --into {out}/c --json").expect(0);
    assert_eq!(copied.events_of("corpus")[0]["written"], true);
    let mut left = before.clone();
    left.remove(Path::new("gemm/2.toml")).unwrap();
    assert_eq!((files(&dir.path().join("c")), files(&a)), (left.clone(), before));
    // A folder with something in it is never written to.
    let again = run(dir.path(), "corpus minimise {out}/a --into {out}/c").expect(2);
    assert!(again.stderr.contains("is not empty: name a new folder"), "{}", again.stderr);
    run(dir.path(), "corpus minimise {out}/a --into {out}/d --write").expect(2);

    run(dir.path(), "corpus minimise {out}/a --write").expect(0);
    assert_eq!(files(&a), left);
    assert!(run(dir.path(), "corpus minimise {out}/a --write").expect(0).stdout.contains("3 of 3 seed cases"));
}

#[test]
fn run_on_a_target_cases_are_told_apart_by_what_they_do_there() {
    let dir = tempfile::tempdir().unwrap();
    let script = "import json, sys\n\
        print('{\"shrinkfault\":1}', flush=True)\n\
        for line in sys.stdin:\n\
        \x20   case = json.loads(line)\n\
        \x20   verdict = 'wrong' if case['params']['n'] >= 10 else 'pass'\n\
        \x20   print(json.dumps({'id': case['id'], 'verdict': verdict}), flush=True)\n";
    std::fs::write(dir.path().join("ten.py"), script).unwrap();
    let text = "name = 'ten'\ncommand = ['python3', '-S', '-E', 'ten.py']\n[params.n]\nmin = 1\nmax = 100\n\
        [[operands]]\nname = 'A'\ndtype = 'f32'\naccess = 'rw'\ndims = [['n', '1']]\n";
    std::fs::write(dir.path().join("ten.toml"), text).unwrap();
    // The last element of all three has a number of 4 bits.
    let a = dir.path().join("a");
    std::fs::create_dir(&a).unwrap();
    for n in [9, 10, 12] {
        std::fs::write(a.join(format!("n{n:02}.toml")), format!("format = 1\nproblem = \"ten\"\n[params]\nn = {n}\n"))
            .unwrap();
    }
    write(&a, &[("gemm.toml", "m = 3")]);
    let names = |r: &Run| -> Vec<String> { kept(r).into_iter().filter(|k| k.1).map(|k| k.0).collect() };
    let minimise = "corpus minimise {out}/a --json --manifest {out}/ten.toml";
    let unrun = run(dir.path(), minimise).expect(0);
    assert_eq!(
        (names(&unrun), &unrun.events_of("corpus")[0]["ran"]),
        (vec!["gemm.toml".into(), "n09.toml".into()], &0.into())
    );
    let ran = run(dir.path(), &format!("{minimise} --target auto")).expect(0);
    assert_eq!(names(&ran), ["gemm.toml", "n09.toml", "n10.toml"]);
    assert_eq!(ran.events_of("corpus")[0]["ran"], 4, "{}", ran.stdout);
    // A target that has one of the problems only, and two that are none.
    let model = run(dir.path(), &format!("{minimise} --target sim:clean")).expect(0);
    assert!(model.stderr.contains("note: the cases of ten are not run"), "{}", model.stderr);
    assert_eq!((names(&model), &model.events_of("corpus")[0]["ran"]), (names(&unrun), &1.into()));
    run(dir.path(), &format!("{minimise} --target sim:nosuch")).expect(2);
    run(dir.path(), &format!("{minimise} --lib /nowhere/libx.so")).expect(2);
    // Without its manifest a case is of no known problem.
    let unknown = run(dir.path(), "corpus list {out}/a").expect(2);
    assert!(unknown.stderr.contains("problem = 'ten' is not one of"), "{}", unknown.stderr);
}

#[test]
fn merging_keeps_every_case_once_and_every_name_that_is_free() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    write(&a, &[("gemm/one.toml", "m = 5"), ("gemm/two.toml", "m = 6"), ("gemm/two-2.toml", "m = 7")]);
    // The first is the same case with its defaults written out; the second has a name that another one has.
    write(&b, &[("gemm/uno.toml", "m = 5\nn = 1\nlda = 5"), ("gemm/two.toml", "m = 8"), ("three.toml", "m = 9")]);
    let said = run(dir.path(), "corpus merge {out}/a {out}/b --into {out}/c").expect(0).stdout;
    assert!(said.contains("b/gemm/uno.toml (the same case as gemm/one.toml)"), "{said}");
    assert!(said.contains("b/gemm/two.toml as gemm/two-3.toml: another case has its name"), "{said}");
    assert!(
        said.contains("5 of 6 seed cases are in") && said.contains("1 were there twice, 1 have another name"),
        "{said}"
    );
    let merged = files(&dir.path().join("c"));
    let names: Vec<String> = merged.keys().map(|p| p.display().to_string()).collect();
    assert_eq!(names, ["gemm/one.toml", "gemm/two-2.toml", "gemm/two-3.toml", "gemm/two.toml", "three.toml"]);
    assert_eq!(merged[Path::new("gemm/two-3.toml")], std::fs::read(b.join("gemm/two.toml")).unwrap());
    // Merged with itself nothing is new; a hunt takes the folder.
    let twice = run(dir.path(), "corpus merge {out}/c {out}/c --into {out}/d --json").expect(0);
    assert_eq!(twice.events_of("corpus")[0]["twice"], 5);
    assert_eq!(files(&dir.path().join("d")), merged);
    common::hunt(dir.path(), "gemm --target sim:clean --cases 16 --corpus {out}/d").expect(0);
}
