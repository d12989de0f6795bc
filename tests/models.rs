//! Every sim model with a planted defect, its settings drawn from a seed: found within a minute, and shrunk to a case that an
//! enumerator of the model's documented rule lists as minimal, nearly always the least one.

mod common;
#[path = "common/rules/mod.rs"]
mod rules;

use common::{count, findings, hunt};
use rules::case::{Placement, Values};
use rules::enumerate::Search;
use rules::gather::Gather;
use rules::gemm::Gemm;
use rules::{Rule, Signature};
use std::time::{Duration, Instant};

const MINUTE: Duration = Duration::from_secs(60);

/// What a run on a model came to, held against the model's rule.
struct Checked {
    is_least: bool,
    /// For people, where it is not.
    text: String,
}

fn rule_of(problem: &str, title: &str) -> Box<dyn Rule> {
    let kernel = title.strip_prefix("built-in model ").unwrap().split(',').next().unwrap();
    match problem {
        "gemm" => Box::new(Gemm::of_kernel(kernel)),
        _ => Box::new(Gather::of_kernel(kernel)),
    }
}

/// Holds the one finding of a run against the rule: it must be bad with the filed signature, 1-minimal, and on the list.
fn check(problem: &str, run: &common::Run, out: &std::path::Path) -> Checked {
    let title = run.events_of("started")[0]["title"].as_str().unwrap().to_owned();
    let rule = rule_of(problem, &title);
    let found = run.events_of("finding");
    let minimal = &found[0]["summary"]["minimal"];
    let case = Values::of_json(&*rule, &minimal["params"]);
    let place = Placement::of(minimal["placement"].as_str().unwrap());
    let files = findings(&out.join("out"));
    let file: toml::Table = std::fs::read_to_string(&files[0]).unwrap().parse().unwrap();
    let signature = Signature::of_file(&file);
    let said = rule.verdict(&case, &place);
    let text = format!("{title}: {} at {} with {signature:?}", case.text(&*rule), minimal["placement"]);
    assert!(said.is(&signature), "the rule says {said:?} of {text}");
    let search = Search { rule: &*rule, signature: &signature, place: &place };
    assert!(search.is_one_minimal(&case), "not 1-minimal: {text}");
    let listed = search.minimal();
    assert!(listed.values().any(|v| *v == case), "not among the {} 1-minimal cases: {text}", listed.len());
    let least = listed.values().next().unwrap();
    Checked { is_least: *least == case, text: format!("{text}; the least is {}", least.text(&*rule)) }
}

/// Hunts on a model with its settings drawn from each seed.
fn hunts(problem: &str, model: &str, more: &str, seeds: std::ops::RangeInclusive<u64>) -> Vec<Checked> {
    let one = |seed: u64| {
        let dir = tempfile::tempdir().unwrap();
        let began = Instant::now();
        let run =
            hunt(dir.path(), &format!("{problem} --target sim:{model},seed={seed} --seed {seed} {more}")).expect(1);
        assert!(began.elapsed() < MINUTE, "{model}, seed {seed}: {:?}", began.elapsed());
        check(problem, &run, dir.path())
    };
    seeds.map(one).collect()
}

/// At least 95% of the starts end in the least case.
fn nearly_all_are_least(checked: &[Checked]) {
    let others: Vec<&str> = checked.iter().filter(|c| !c.is_least).map(|c| c.text.as_str()).collect();
    assert!(others.len() * 20 <= checked.len(), "{} of {}:\n{}", others.len(), checked.len(), others.join("\n"));
}

fn is_found_and_shrunk(problem: &str, model: &str) {
    nearly_all_are_least(&hunts(problem, model, "", 1..=count(1, 3)));
}

macro_rules! models {
    ($($name:ident: $problem:literal $model:literal,)*) => {$(
        #[test]
        fn $name() {
            is_found_and_shrunk($problem, $model);
        }
    )*};
}

models! {
    i32_sum_is_found_and_shrunk: "gemm" "i32-sum",
    i32_term_is_found_and_shrunk: "gemm" "i32-term",
    batch_i32_is_found_and_shrunk: "gemm" "batch-i32",
    u32_bytes_drop_is_found_and_shrunk: "gemm" "u32-bytes-drop",
    edge_overread_is_found_and_shrunk: "gemm" "edge-overread",
    k_overread_is_found_and_shrunk: "gemm" "k-overread",
    edge_overwrite_is_found_and_shrunk: "gemm" "edge-overwrite",
    grid_u16_is_found_and_shrunk: "gemm" "grid-u16",
    grid_negative_is_found_and_shrunk: "gemm" "grid-negative",
    index_f32_is_found_and_shrunk: "gemm" "index-f32",
    abort_is_found_and_shrunk: "gemm" "abort",
    flaky_is_found_and_shrunk: "gemm" "flaky",
    persistent_i32_is_found_and_shrunk: "allgather" "persistent-i32",
    partitioned_i32_is_found_and_shrunk: "allgather" "partitioned-i32",
}

/// Each failing run costs its deadline, so the default of 10 s would leave no room for a minute.
#[test]
fn hang_is_found_and_shrunk() {
    nearly_all_are_least(&hunts("gemm", "hang", "--case-timeout 1s", 1..=count(1, 3)));
}
