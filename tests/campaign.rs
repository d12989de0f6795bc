//! Campaigns that are cut short and gone on with: nothing is lost, and nothing counts twice.

mod common;

use common::live::{Hunt, children, instants, kill};
use common::{Run, count, hunt, run};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

/// Kills in one campaign.
const KILLS: usize = 4;

/// Hunts that fail in some of their cases. Shrinking, confirming and searching each take a part of the time.
const HUNTS: [&str; 4] = [
    "gemm --target sim:i32-sum,operand=B --seed 21 --shrinks 2 --keep-going --jobs 2 --cases 1700",
    "gemm --target sim:edge-overread --seed 5 --keep-going --jobs 2 --cases 1500",
    "allgather --seed 3 --keep-going --jobs 2 --cases 1500",
    "gemm --target sim:i32-sum,operand=B --seed 4 --jobs 2 --cases 1500",
];

/// What must not depend on how often a hunt was cut short.
#[derive(Debug, PartialEq)]
struct Outcome {
    summary: BTreeMap<String, Value>,
    findings: Vec<String>,
    raw: Vec<String>,
    found_again: Value,
}

fn outcome(dir: &Path, run: &Run) -> Outcome {
    let summary = run.summary();
    let same =
        ["tally", "case_digest", "verdict_digest", "known", "not_shrunk", "unreproduced", "findings", "coverage"];
    let names = |folder: &str| {
        let mut names: Vec<String> = std::fs::read_dir(dir.join("out").join(folder))
            .unwrap()
            .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    };
    let counts = std::fs::read_to_string(dir.join("out/state/counts.json")).unwrap_or_else(|_| "{}".to_owned());
    Outcome {
        summary: same.map(|name| (name.to_owned(), summary[name].clone())).into(),
        findings: names("findings"),
        raw: names("raw"),
        found_again: serde_json::from_str::<Value>(&counts).unwrap()["found_again"].clone(),
    }
}

/// The lines of the journal, each of them JSON.
fn journal(dir: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(dir.join("out/journal.jsonl")).unwrap();
    text.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect()
}

/// Every case is in exactly one round, and no failure is written down or settled twice.
fn check_journal(dir: &Path, cases: u64) {
    let lines = journal(dir);
    let of = |event: &str| lines.iter().filter(|l| l["event"] == event).cloned().collect::<Vec<_>>();
    let rounds = of("round");
    let numbers: Vec<u64> = rounds.iter().map(|r| r["round"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..rounds.len() as u64).collect::<Vec<_>>());
    let in_round = |r: &Value| r["runs"].as_array().unwrap().iter().map(|x| x[1].as_u64().unwrap()).sum::<u64>();
    assert_eq!(rounds.iter().map(in_round).sum::<u64>(), cases);
    for event in ["bad", "settled"] {
        let numbers: Vec<u64> = of(event).iter().map(|l| l["case"].as_u64().unwrap()).collect();
        let distinct: BTreeSet<u64> = numbers.iter().copied().collect();
        assert_eq!(distinct.len(), numbers.len(), "a case is {event} twice");
        assert!(distinct.last().is_none_or(|last| *last < cases));
    }
}

/// Names of the findings that a run announced.
fn announced(run: &Run) -> Vec<String> {
    // The last line may be cut off by the kill.
    let events = run.stdout.lines().filter_map(|l| serde_json::from_str::<Value>(l).ok());
    events.filter(|e| e["event"] == "finding").map(|e| e["name"].as_str().unwrap().to_owned()).collect()
}

/// Waits, then kills the supervisor, some workers, or both.
fn cut_short(mut hunt: Hunt, delay: Duration, what: usize) -> Run {
    std::thread::sleep(delay);
    let workers = children(hunt.pid()).into_iter();
    match what % 3 {
        0 => {}
        1 => {
            // The hunt survives the end of workers; a little later it does not.
            workers.take(2).for_each(|w| kill(w, libc::SIGKILL));
            std::thread::sleep(delay / 4);
        }
        _ => workers.take(1).for_each(|w| kill(w, libc::SIGKILL)),
    }
    if hunt.is_running() {
        hunt.signal(libc::SIGKILL);
    }
    hunt.end()
}

#[test]
fn a_hunt_that_is_killed_at_any_instants_ends_as_one_that_is_not() {
    let campaigns = count(1, 50) as usize;
    let mut delays = instants((campaigns * KILLS) as u64, 3_000).enumerate();
    let mut whole: BTreeMap<&str, (Outcome, Duration)> = BTreeMap::new();
    let (mut kills, mut in_rounds, mut resumed) = (0, BTreeSet::new(), 0);
    for words in HUNTS.into_iter().cycle().take(campaigns) {
        let (reference, length) = whole.entry(words).or_insert_with(|| {
            let dir = tempfile::tempdir().unwrap();
            let began = Instant::now();
            let run = Hunt::start(dir.path(), words).end();
            (outcome(dir.path(), &run), began.elapsed())
        });
        let dir = tempfile::tempdir().unwrap();
        let mut found = BTreeSet::new();
        let resume = |dir: &Path| {
            let began = std::fs::read_to_string(dir.join("out/journal.jsonl")).is_ok_and(|t| t.contains('\n'));
            if began { format!("{words} --resume") } else { words.to_owned() }
        };
        for (i, delay) in delays.by_ref().take(KILLS) {
            // Of a length that the runs together reach the middle of the hunt, however fast the machine is.
            let delay = length.mul_f64(0.02 + delay.as_secs_f64() / 3.0 * 1.5 / KILLS as f64);
            let run = cut_short(Hunt::start(dir.path(), &resume(dir.path())), delay, i);
            kills += usize::from(run.code == -1);
            found.extend(announced(&run));
            resumed += run.stdout.lines().filter(|l| l.starts_with("{\"event\":\"resumed\"")).count();
            in_rounds.insert(
                std::fs::read_to_string(dir.path().join("out/journal.jsonl"))
                    .map_or(0, |t| t.lines().filter(|l| l.starts_with("{\"event\":\"round\"")).count()),
            );
        }
        let last = Hunt::start(dir.path(), &resume(dir.path())).end();
        assert!(last.code == 0 || last.code == 1, "{}\n{}", last.code, last.stderr);
        let ended = outcome(dir.path(), &last);
        assert_eq!(&ended, &*reference, "{words}");
        for name in found {
            assert!(ended.findings.contains(&format!("{name}.toml")), "{name} was announced and is missing");
        }
        check_journal(dir.path(), last.summary()["tally"].as_object().map(tally).unwrap());
    }
    println!(
        "{campaigns} campaigns, {kills} kills, {resumed} of them after a resume, in {in_rounds:?} complete rounds"
    );
    assert!(kills * 2 > campaigns * KILLS, "only {kills} of the runs were killed before they ended");
}

fn tally(tally: &serde_json::Map<String, Value>) -> u64 {
    tally.iter().filter(|(word, _)| *word != "sampled").map(|(_, n)| n.as_u64().unwrap()).sum()
}

const CLEAN: &str = "gemm --target sim:clean --seed 9 --jobs 2 --cases 1300";

#[test]
fn a_journal_that_is_cut_off_anywhere_is_gone_on_with_from_its_last_whole_round() {
    let dir = tempfile::tempdir().unwrap();
    let whole = hunt(dir.path(), CLEAN).expect(0).summary();
    let path = dir.path().join("out/journal.jsonl");
    let journal = std::fs::read(&path).unwrap();
    let start = journal.iter().position(|b| *b == b'\n').unwrap() as u64;
    for cut in instants(count(2, 40), journal.len() as u64 - start).map(|d| start + d.as_millis() as u64 + 1) {
        std::fs::write(&path, &journal[..cut as usize]).unwrap();
        let r = hunt(dir.path(), &format!("{CLEAN} --resume")).expect(0);
        let torn = journal[cut as usize - 1] != b'\n';
        assert_eq!(r.stderr.contains("what follows is left out"), torn, "{}", r.stderr);
        for sum in ["tally", "case_digest", "verdict_digest", "coverage"] {
            assert_eq!(r.summary()[sum], whole[sum], "cut at {cut}");
        }
        check_journal(dir.path(), 1300);
    }
}

#[test]
fn a_journal_that_lacks_a_round_or_has_one_twice_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    hunt(dir.path(), CLEAN).expect(0);
    let path = dir.path().join("out/journal.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let round = |line: &&str| line.contains("\"event\":\"round\"");
    let (first, last) = (text.lines().find(round).unwrap(), text.lines().rfind(round).unwrap());
    assert_ne!(first, last);
    let twice = text.replace(last, &format!("{last}\n{last}"));
    for damaged in [text.replace(&format!("{first}\n"), ""), twice] {
        std::fs::write(&path, &damaged).unwrap();
        let r = hunt(dir.path(), &format!("{CLEAN} --resume")).expect(2);
        assert!(r.stderr.contains("it was edited or damaged"), "{}", r.stderr);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), damaged);
    }
}

#[test]
fn a_hunt_that_is_made_longer_is_the_long_hunt() {
    let dir = tempfile::tempdir().unwrap();
    let words = "gemm --target sim:i32-sum,operand=B --seed 21 --shrinks 1 --keep-going";
    let whole = hunt(dir.path(), &format!("{words} --cases 1100")).expect(1);
    let whole = outcome(dir.path(), &whole);
    let parts = tempfile::tempdir().unwrap();
    hunt(parts.path(), &format!("{words} --cases 200")).expect(1);
    let r = hunt(parts.path(), &format!("{words} --cases 700 --jobs 1 --resume")).expect(1);
    assert_eq!(r.events_of("resumed")[0]["tally"]["pass"], 0, "a round that --cases cut is run again as a whole");
    let r = hunt(parts.path(), &format!("{words} --cases 1100 --resume")).expect(1);
    assert_eq!(outcome(parts.path(), &r), whole);
    // Nothing is left to do: the same is said again.
    let r = hunt(parts.path(), &format!("{words} --cases 1100 --resume")).expect(1);
    assert_eq!(outcome(parts.path(), &r), whole);
    assert_eq!(r.events_of("case").len(), 0);
    let r = hunt(parts.path(), &format!("{words} --cases 300 --resume")).expect(2);
    assert!(r.stderr.contains("more cases already than --cases allows"), "{}", r.stderr);
}

#[test]
fn a_hunt_goes_on_only_as_what_it_was_begun_as() {
    let dir = tempfile::tempdir().unwrap();
    let r = hunt(dir.path(), &format!("{CLEAN} --resume")).expect(2);
    assert!(r.stderr.contains("there is no hunt in"), "{}", r.stderr);
    hunt(dir.path(), "gemm --target sim:clean --cases 64 --seed 1").expect(0);
    let begun = "gemm --target sim:clean --cases 64 --resume";
    for (words, named) in [
        (format!("{begun} --seed 2"), "seed 1, and now it is 2"),
        (format!("{begun} --seed 1 --set m=1"), "pins none, and now it is m=1"),
        (format!("{begun} --seed 1 --profile packed"), "profile strided, and now it is packed"),
        (format!("{begun} --seed 1 --shard 1/2"), "shard 1/1, and now it is 1/2"),
        (format!("{begun} --seed 1 --keep-going"), "keep-going false, and now it is true"),
        (format!("{begun} --seed 1 --max-work 1000"), "max-work"),
        (format!("{begun} --seed 1 --corpus {{out}}/corpus"), "corpus"),
        (begun.replace("sim:clean", "sim:edge-overread") + " --seed 1", "target sim:clean"),
        ("allgather --cases 64 --resume --seed 1".to_owned(), "problem gemm, and now it is allgather"),
    ] {
        std::fs::create_dir_all(dir.path().join("corpus")).unwrap();
        let r = hunt(dir.path(), &words).expect(2);
        assert!(r.stderr.contains(&format!("was begun with {named}")), "{words}: {}", r.stderr);
    }
    let path = dir.path().join("out/journal.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let (verdict, other) = ("[[0,", "[[1,");
    assert!(text.contains(verdict));
    std::fs::write(&path, text.replace(verdict, other)).unwrap();
    let r = hunt(dir.path(), &format!("{begun} --seed 1")).expect(2);
    assert!(r.stderr.contains("it was edited or damaged"), "{}", r.stderr);
}

#[test]
fn shards_have_no_case_in_common_and_together_all_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let mut numbers = vec![];
    let mut cases = BTreeSet::new();
    for part in 1..=3 {
        let words = format!("gemm --target sim:clean --seed 4 --cases 700 --shard {part}/3 --out {{out}}/{part}");
        let r = run(dir.path(), &format!("{words} --json --regressions {{out}}/none")).expect(0);
        let again = format!("{words} --jobs 1 --json --regressions {{out}}/none").replace("{out}/", "{out}/again-");
        assert_eq!(r.summary()["case_digest"], run(dir.path(), &again).expect(0).summary()["case_digest"]);
        for case in r.events_of("case") {
            numbers.push(case["id"].as_u64().unwrap());
            cases.insert(case["case"].to_string());
        }
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (0..700).collect::<Vec<u64>>());
    assert!(cases.len() > 600, "only {} of 700 cases are distinct", cases.len());
    let r = run(dir.path(), "gemm --target sim:clean --cases 2 --shard 3/3 --out {out}/x").expect(2);
    assert!(r.stderr.contains("of 2 cases shard 3/3 has none"), "{}", r.stderr);
}

fn status(dir: &Path) -> Value {
    run(dir, "status {out}/out --json").expect(0).events().remove(0)
}

#[test]
fn another_terminal_sees_how_a_hunt_stands() {
    let dir = tempfile::tempdir().unwrap();
    let none = run(dir.path(), "status {out}/out").expect(2);
    assert!(none.stderr.contains("there was no hunt in"), "{}", none.stderr);
    let words = "gemm --target sim:i32-sum,operand=B --seed 21 --shrinks 1 --keep-going --time 10m";
    let mut under_way = Hunt::start(dir.path(), words);
    under_way.until("finding");
    let found = serde_json::from_str::<Value>(under_way.seen.last().unwrap()).unwrap()["name"].clone();
    let running = status(dir.path());
    assert_eq!((&running["state"], &running["pid"]), (&"running".into(), &under_way.pid().into()));
    assert_eq!(running["findings"], serde_json::json!([found]));
    assert!(running["tally"]["fault"].as_u64() > Some(0) && running["until"].is_string(), "{running}");
    let second = hunt(dir.path(), words).expect(3);
    assert!(second.stderr.contains(&format!("another run (process {})", under_way.pid())), "{}", second.stderr);
    under_way.signal(libc::SIGKILL);
    under_way.end();
    assert_eq!(status(dir.path())["state"], "killed");
    let text = run(dir.path(), "status {out}/out").expect(0).stdout;
    assert!(text.contains("killed: its process") && text.contains(" --time 10m "), "{text}");
    assert!(text.contains(" --resume\n") && text.contains(found.as_str().unwrap()), "{text}");
    let mut under_way = Hunt::start(dir.path(), &format!("{words} --resume"));
    under_way.until("resumed");
    under_way.signal(libc::SIGINT);
    under_way.end().expect(130);
    let ended = status(dir.path());
    assert_eq!((&ended["state"], &ended["complete"]), (&"ended".into(), &false.into()));
    assert_eq!(ended["findings"], serde_json::json!([found]));
    let another = hunt(dir.path(), "gemm --target sim:clean --cases 64").expect(0);
    assert!(another.stderr.contains("did not end; this one is another"), "{}", another.stderr);
    assert_eq!(status(dir.path())["complete"], true);
}
