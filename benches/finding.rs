//! From a seed to a finished finding, and three ways to shrink its start case on the same worker pool.
//!
//! Hint-first is what the program does. Plain bisection halves one parameter at a time. proptest's shrinking is the value
//! tree of a vector of integer strategies, one per parameter, filtered by the problem's constraints, and driven as
//! proptest's runner drives it; it gets the same signature as its idea of "the same failure", and no witnesses.
//! "passed" and "ended" count probes of the search and of its confirmation.

mod common;

use common::{PROGRAM, pool, print_machine, print_table, row};
use proptest::num::i64::BinarySearch;
use proptest::prelude::*;
use proptest::strategy::{NewTree, ValueTree};
use proptest::test_runner::{Config, TestRunner};
use shrinkfault::exec::blame::GapRule;
use shrinkfault::exec::pool::Pool;
use shrinkfault::exec::prober::PoolProber;
use shrinkfault::exec::{Freshness, Prober, Signature};
use shrinkfault::problem::{Assignment, Case, Placement, Problem, Value};
use shrinkfault::shrink::{self, Key, Options, Strategy as Search};
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The default model, as `auto` picks it.
const TARGET: &str = "sim:i32-sum,operand=B";
const SEEDS: [u64; 4] = [42, 1, 2, 3];
/// Probes after which proptest's shrinking is given up.
const MOST_PROBES: u64 = 20_000;

/// What a way of shrinking came to.
struct Outcome {
    minimal: Case,
    passed: u64,
    ended: u64,
    took: Duration,
    note: String,
}

fn main() {
    print_machine();
    let pool = pool(TARGET, 1).expect("the default model is built in");
    let mut whole = vec![row(&[&"seed", &"seconds, start to end", &"probes of the shrink", &"minimal"])];
    let mut ways =
        vec![row(&[&"start", &"way", &"seconds", &"passed", &"ended a process", &"same minimal case", &"minimal"])];
    for seed in SEEDS {
        let Some((start, line)) = hunt(seed, pool.problem()) else {
            whole.push(row(&[&seed, &"no finding"]));
            continue;
        };
        whole.push(line);
        compare(&pool, seed, &start, &mut ways);
    }
    print_table(&whole);
    print_table(&ways);
}

/// Runs the program as a newcomer would; the case that its shrinker started from, and a line of the table.
fn hunt(seed: u64, problem: &Problem) -> Option<(Case, Vec<String>)> {
    let out = tempfile::tempdir().ok()?;
    let began = Instant::now();
    let output = Command::new(PROGRAM)
        .args(["gemm", "--target", TARGET, "--seed", &seed.to_string(), "--json", "--out"])
        .arg(out.path())
        .output()
        .ok()?;
    let took = began.elapsed().as_secs_f64();
    let text = String::from_utf8_lossy(&output.stdout);
    let events: Vec<serde_json::Value> = text.lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
    let find = |kind: &str| events.iter().find(|e| e["event"] == kind);
    let start = case_of(&find("shrinking")?["case"], problem)?;
    let summary = &find("finding")?["summary"];
    let minimal = case_of(&summary["minimal"], problem)?;
    let probes = summary["probes"].as_str().unwrap_or_default();
    Some((start, row(&[&seed, &format!("{took:.2}"), &probes, &problem.short(&minimal.params)])))
}

fn case_of(shown: &serde_json::Value, problem: &Problem) -> Option<Case> {
    let named: BTreeMap<String, Value> = serde_json::from_value(shown["params"].clone()).ok()?;
    let stored = problem.params.iter().map(|p| p.store(named.get(&p.name)?).ok());
    let placement: Placement = shown["placement"].as_str()?.parse().ok()?;
    Some(Case { params: Assignment(stored.collect::<Option<_>>()?), knobs: Default::default(), placement })
}

fn compare(pool: &Pool, seed: u64, start: &Case, table: &mut Vec<Vec<String>>) {
    let hint = searched(pool, start, Search::HintFirst);
    let plain = searched(pool, start, Search::PlainBisection);
    let minimal = hint.minimal.clone();
    for (way, o) in [("hint first", hint), ("plain bisection", plain), ("proptest", proptest(pool, start))] {
        let key = |c: &Case| Key::of(pool.problem(), &c.params);
        let same = if o.minimal == minimal {
            "yes"
        } else if key(&o.minimal) < key(&minimal) {
            "no: smaller"
        } else {
            "no: larger"
        };
        let (took, short) = (format!("{:.2}", o.took.as_secs_f64()), pool.problem().short(&o.minimal.params));
        table.push(row(&[&seed, &way, &took, &o.passed, &o.ended, &same, &format!("{short}{}", o.note)]));
    }
}

fn searched(pool: &Pool, start: &Case, strategy: Search) -> Outcome {
    let mut prober = PoolProber::new(pool, 0, GapRule::Note);
    let options = Options { strategy, ..Options::default() };
    let s = shrink::shrink(pool.problem(), start, None, &mut prober, &options, &mut |_| {}).expect("the start fails");
    let note = s.stopped.map_or_else(String::new, |why| format!(" (stopped: {why})"));
    Outcome { minimal: s.minimal, passed: s.probes.passed, ended: s.probes.faulted, took: s.took, note }
}

/// An integer that starts at a value and shrinks towards the least, as proptest's ranges do.
#[derive(Debug)]
struct From {
    start: i64,
    least: i64,
}

impl Strategy for From {
    type Tree = BinarySearch;
    type Value = i64;

    fn new_tree(&self, _: &mut TestRunner) -> NewTree<Self> {
        Ok(BinarySearch::new(self.start - self.least))
    }
}

/// A proptest user's strategy: every parameter by itself, then the constraints as a filter.
fn strategy(problem: Arc<Problem>, start: &Case) -> impl Strategy<Value = Case> + use<> {
    let start = start.clone();
    let each = |(p, v): (&shrinkfault::problem::Param, &i64)| From { start: *v, least: p.least() };
    let all: Vec<From> = problem.params.iter().zip(&start.params.0).map(each).collect();
    let least: Vec<i64> = problem.params.iter().map(|p| p.least()).collect();
    let to_case =
        move |values: Vec<i64>| start.with_params(Assignment(values.iter().zip(&least).map(|(v, l)| v + l).collect()));
    all.prop_map(to_case).prop_filter("constraints", move |case| problem.check(&case.params).is_ok())
}

/// proptest's runner without its caps: simplify after a failure, complicate after a pass.
fn proptest(pool: &Pool, start: &Case) -> Outcome {
    let mut prober = PoolProber::new(pool, 0, GapRule::Note);
    let began = Instant::now();
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    let mut tree = strategy(Arc::clone(pool.problem()), start).new_tree(&mut runner).expect("the start is a case");
    let mut of = |case: &Case| prober.probe(case, Freshness::Warm).expect("the pool answers").verdict;
    let wanted = Signature::of(&of(start)).expect("the start fails");
    let (mut minimal, mut passed, mut ended) = (start.clone(), 0, 1);
    let mut goes_on = tree.simplify();
    while goes_on && passed + ended < MOST_PROBES {
        let case = tree.current();
        if Signature::of(&of(&case)).is_some_and(|s| wanted.matches(&s)) {
            (minimal, ended) = (case, ended + 1);
            goes_on = tree.simplify();
        } else {
            passed += 1;
            goes_on = tree.complicate();
        }
    }
    let note = if goes_on { format!(" (given up after {MOST_PROBES} probes)") } else { String::new() };
    Outcome { minimal, passed, ended, took: began.elapsed(), note }
}
