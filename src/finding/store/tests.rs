use super::*;
use crate::exec::Signature;
use crate::finding::testing::atlas;
use crate::finding::{Catalog, Facts, Step};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const FOLDER: &str = "SHRINKFAULT_TEST_STORE";
const TASK: &str = "SHRINKFAULT_TEST_TASK";

fn open(root: &Path) -> Store {
    Store::open(root).unwrap().0
}

/// A finding of about 200 KB whose name differs with the seed.
fn large(seed: i64) -> Finding {
    long(seed, 2000)
}

/// A finding with so many steps of some 100 bytes each.
fn long(seed: i64, steps: u64) -> Finding {
    let mut facts: Facts = atlas();
    facts.minimal.knobs.insert("algo".into(), crate::problem::Value::Int(seed));
    facts.ladder = (0..steps).map(|i| Step { by: format!("step {i}"), case: "m=1 ".repeat(20) }).collect();
    Finding::new(facts).unwrap()
}

/// This test binary again, running only the child below.
fn child(task: &str, folder: &Path, shell: &str) -> Child {
    let test = "finding::store::tests::child_process_that_is_given_a_task";
    Command::new("sh")
        .args(["-c", &format!("{shell} exec \"$0\" {test} --exact --nocapture")])
        .arg(std::env::current_exe().unwrap())
        .env(FOLDER, folder)
        .env(TASK, task)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn wait_until_ready(child: &mut Child) {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|l| l.unwrap() == "READY"));
}

/// Does nothing unless the tests below start it with a task.
#[test]
fn child_process_that_is_given_a_task() {
    let (Ok(task), Ok(folder)) = (std::env::var(TASK), std::env::var(FOLDER)) else { return };
    let folder = PathBuf::from(folder);
    match task.as_str() {
        "file until killed" => {
            let store = open(&folder);
            let first = fs::read_dir(store.findings()).unwrap().count();
            // The text is made once, so that nearly all of the time goes into writing.
            let text = large(1).to_toml().unwrap();
            println!("\nREADY");
            for n in first..1_000_000 {
                atomic::create(&store.findings().join(format!("{n}.toml")), text.as_bytes()).unwrap();
            }
        }
        "file one" => {
            let store = open(&folder);
            let failed = store.file(&long(1, 20_000)).unwrap_err();
            println!("\nERROR {failed}\nWHOLE {}", Finding::parse(&failed.toml, &Catalog::default()).is_ok());
        }
        "open" => println!("\nERROR {}", Store::open(&folder).unwrap_err()),
        "hold" => {
            let _store = open(&folder);
            println!("\nREADY");
            std::thread::sleep(Duration::from_secs(60));
        }
        other => panic!("no task '{other}'"),
    }
}

#[test]
fn a_killed_writer_never_leaves_a_half_written_finding() {
    let dir = tempfile::tempdir().unwrap();
    let text = large(1).to_toml().unwrap();
    let (mut whole, mut under_way) = (0, 0);
    for round in 0u64..12 {
        let mut child = child("file until killed", dir.path(), "");
        wait_until_ready(&mut child);
        // Long enough to write some; the remainder walks through the phases of one write.
        std::thread::sleep(Duration::from_micros(60_000 + round * 7_919));
        child.kill().unwrap();
        child.wait().unwrap();
        whole = 0;
        for entry in fs::read_dir(dir.path().join("findings")).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "toml") {
                assert!(fs::read(&path).unwrap() == text.as_bytes(), "{} is not whole", path.display());
                whole += 1;
            } else {
                under_way += 1;
            }
        }
    }
    assert!(whole >= 12, "only {whole} findings were written before the kills");
    eprintln!("{whole} whole findings, {under_way} kills in the middle of a write");
    let store = open(dir.path());
    let left = fs::read_dir(store.findings())
        .unwrap()
        .filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'));
    assert_eq!(left.count(), 0, "opening sweeps what was under way");
}

#[test]
fn a_full_disk_gives_one_sentence_and_the_whole_text() {
    let dir = tempfile::tempdir().unwrap();
    // In units of 512 bytes: room for the reserve, but not for the finding.
    let child = child("file one", dir.path(), "trap '' XFSZ; ulimit -f 2100;");
    let out = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(text.contains("ERROR no room to write "), "{text}");
    assert!(text.contains("WHOLE true"), "{text}");
    assert_eq!(fs::read_dir(dir.path().join("findings")).unwrap().count(), 0);
}

#[test]
fn a_disk_too_small_for_the_reserve_is_said_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let out = child("open", dir.path(), "trap '' XFSZ; ulimit -f 2000;").wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(text.contains("ERROR no room to write ") && text.contains("kept free for findings"), "{text}");
    assert!(!dir.path().join("reserve").exists());
}

#[test]
fn asking_who_uses_a_folder_takes_nothing_from_a_run_that_begins() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(user(dir.path()).unwrap(), None);
    let store = open(dir.path());
    assert_eq!(user(dir.path()).unwrap(), Some(std::process::id()));
    drop(store);
    assert_eq!(user(dir.path()).unwrap(), None);
    let lock = File::open(dir.path().join("lock")).unwrap();
    lock.try_lock_shared().unwrap();
    let asking = std::thread::spawn(move || {
        std::thread::sleep(LOCK_PAUSE * 3);
        drop(lock);
    });
    open(dir.path());
    asking.join().unwrap();
}

#[test]
fn two_runs_do_not_share_a_folder_and_a_dead_one_does_not_hold_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = child("hold", dir.path(), "");
    wait_until_ready(&mut child);
    let error = Store::open(dir.path()).unwrap_err();
    assert!(matches!(&error, StoreError::InUse { pid: Some(pid), .. } if *pid == child.id()), "{error:?}");
    assert!(error.to_string().starts_with(&format!("another run (process {}) uses ", child.id())), "{error}");
    child.kill().unwrap();
    child.wait().unwrap();
    open(dir.path());
}

#[test]
fn a_new_folder_is_ignored_by_git_and_one_with_files_in_it_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    open(&dir.path().join("a/b"));
    assert_eq!(fs::read(dir.path().join("a/b/.gitignore")).unwrap(), b"*\n");
    fs::write(dir.path().join("mine.txt"), "").unwrap();
    open(dir.path());
    assert!(!dir.path().join(".gitignore").exists());
}

#[test]
fn a_finding_is_filed_once_and_its_bytes_stay() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let finding = Finding::new(atlas()).unwrap();
    let Filed::New(path) = store.file(&finding).unwrap() else { panic!("not new") };
    assert_eq!(path.file_stem().unwrap().to_str().unwrap(), finding.name());
    let bytes = fs::read(&path).unwrap();
    let mut again = atlas();
    again.seed = 7;
    again.environment.cpu = "another".into();
    assert_eq!(store.file(&Finding::new(again).unwrap()).unwrap(), Filed::Already(path.clone()));
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn another_file_under_the_same_name_stays_and_the_finding_gets_a_number() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let finding = Finding::new(atlas()).unwrap();
    let taken = store.findings().join(format!("{}.toml", finding.name()));
    fs::write(&taken, "edited until broken").unwrap();
    let filed = store.file(&finding).unwrap();
    assert_eq!(filed.path().file_stem().unwrap().to_str().unwrap(), format!("{}-2", finding.name()));
    assert_eq!(store.file(&finding).unwrap(), Filed::Already(filed.path().to_owned()));
    assert_eq!(fs::read(&taken).unwrap(), b"edited until broken");
}

#[test]
fn what_is_no_folder_or_not_writable_is_one_sentence() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [file.clone(), file.join("below")] {
        let error = Store::open(&path).unwrap_err();
        assert!(matches!(error, StoreError::NotAFolder { .. }), "{error:?}");
    }
    let error = Store::open(Path::new("/proc/shrinkfault")).unwrap_err();
    assert!(matches!(error, StoreError::Unwritable { .. }), "{error:?}");
    assert!(error.to_string().contains("make the folder writable"), "{error}");
}

#[test]
fn a_bad_case_that_was_not_shrunk_can_be_shrunk_later() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let facts = atlas();
    let signature = Signature::of(&facts.verdict).unwrap();
    let save = || store.save_raw(&facts.problem, &facts.target, &facts.original, &signature).unwrap();
    let Filed::New(path) = save() else { panic!("not new") };
    assert_eq!(save(), Filed::Already(path.clone()));
    let input = crate::finding::CaseInput::from_file(&path, &Catalog::default()).unwrap();
    assert_eq!(input.case(&facts.problem, crate::problem::Placement::START).unwrap(), facts.original);
}

#[test]
fn keeping_copies_once_and_never_overwrites() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("out"));
    let finding = Finding::new(atlas()).unwrap();
    let path = store.file(&finding).unwrap().path().to_owned();
    let regressions = dir.path().join("regressions");
    let kept = regressions.join("atlas").join(format!("{}.toml", finding.name()));
    assert_eq!(keep(&path, &regressions).unwrap(), Kept::Now(kept.clone()));
    assert_eq!(fs::read(&kept).unwrap(), fs::read(&path).unwrap());
    assert_eq!(keep(&path, &regressions).unwrap(), Kept::Already(kept.clone()));
    assert_eq!(keep(&kept, &regressions).unwrap(), Kept::Already(kept.clone()));

    let fixed = finding.clone().with_status(crate::finding::Status::Fixed).to_toml().unwrap();
    fs::write(&kept, &fixed).unwrap();
    let error = keep(&path, &regressions).unwrap_err();
    assert!(matches!(error, StoreError::Differs { .. }), "{error:?}");
    assert_eq!(fs::read_to_string(&kept).unwrap(), fixed);

    fs::write(dir.path().join("no.toml"), "no finding").unwrap();
    assert!(matches!(keep(&dir.path().join("no.toml"), &regressions), Err(StoreError::Read(_))));
}
