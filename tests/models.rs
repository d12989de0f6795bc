//! Every sim model with a planted defect, its settings drawn from a seed: found within a minute, and shrunk to a case that an
//! enumerator of the model's documented rule lists as minimal, nearly always the least one.

mod common;
#[path = "common/rules/mod.rs"]
mod rules;

use common::{count, findings, hunt, run, within};
use rules::case::{Placement, Values};
use rules::enumerate::Search;
use rules::gather::Gather;
use rules::gemm::Gemm;
use rules::{Rule, Signature};
use std::time::Instant;

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
        assert!(began.elapsed() < within(60), "{model}, seed {seed}: {:?}", began.elapsed());
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

/// Each failing run costs its time limit, so the default of 10 s would leave no room for a minute. On a machine on which a case
/// with one row and one column takes longer, the run raises the limit.
#[test]
fn hang_is_found_and_shrunk() {
    let more = "--case-timeout 400ms --set m=1 --set n=1 --set batch=1";
    nearly_all_are_least(&hunts("gemm", "hang", more, 1..=count(1, 3)));
}

/// Models whose kernel is short to replay, so that a start can be known to fail before it is run.
const REPLAYED: [(&str, &str); 9] = [
    ("gemm", "i32-sum/A/32x64x8"),
    ("gemm", "i32-sum/C/64x16x4"),
    ("gemm", "i32-term/B/16x48x12"),
    ("gemm", "batch-i32/C/64x64x16"),
    ("gemm", "edge-overread/A/96x32x8"),
    ("gemm", "k-overread/B/32x32x32"),
    ("gemm", "edge-overwrite/64x128x16"),
    ("allgather", "persistent-i32/32x64"),
    ("allgather", "partitioned-i32/64x16"),
];

/// From large, unusual cases with several features, `shrink` arrives at the least case nearly always.
#[test]
fn ugly_starts_end_in_the_least_case() {
    let mut checked = vec![];
    for (number, (problem, kernel)) in REPLAYED.into_iter().enumerate() {
        let mut draw = Draw(number as u64);
        for _ in 0..count(1, 40) {
            checked.push(shrunk_from_an_ugly_start(problem, kernel, &mut draw));
        }
    }
    nearly_all_are_least(&checked);
}

fn shrunk_from_an_ugly_start(problem: &str, kernel: &str, draw: &mut Draw) -> Checked {
    let rule = rule_of(problem, &format!("built-in model sim:{kernel}, a defect"));
    let (case, place) = ugly(&*rule, draw);
    let dir = tempfile::tempdir().unwrap();
    let words = format!(
        "shrink {problem}:{} --target {} --placement {place} --seed {} --json --out {{out}}/out",
        case.text(&*rule),
        target(kernel),
        draw.below(1 << 20)
    );
    check(problem, &run(dir.path(), &words).expect(1), dir.path())
}

/// `i32-sum/A/32x64x8` as a target: `sim:i32-sum,operand=A,tile=32x64,unroll=8`.
fn target(kernel: &str) -> String {
    let parts: Vec<&str> = kernel.split('/').collect();
    let sides: Vec<&str> = parts[parts.len() - 1].split('x').collect();
    let mut text = format!("sim:{},tile={}x{}", parts[0], sides[0], sides[1]);
    if let [_, _, unroll] = sides[..] {
        text.push_str(&format!(",unroll={unroll}"));
    }
    if parts.len() == 3 {
        text.push_str(&format!(",operand={}", parts[1]));
    }
    text
}

/// SplitMix64.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Any bit length up to so many bits.
    fn of_bits(&mut self, most: u64) -> i128 {
        let bits = self.below(most) + 1;
        i128::from(1 + self.below(1 << bits))
    }
}

/// A case that fails under the rule in a way that the enumerator finds smaller cases of.
fn ugly(rule: &dyn Rule, draw: &mut Draw) -> (Values, &'static str) {
    for _ in 0..100_000 {
        let mut v = Values::plainest(rule);
        for (i, p) in rule.schema().iter().enumerate() {
            v.0[i] = match p.name {
                "m" | "n" | "k" | "M" | "N" => i128::from(1 + draw.below(24)),
                "ranks" | "batch" => i128::from(1 + draw.below(4)),
                name if name.contains("ld") || name.contains("stride") => draw.of_bits(33),
                name if name.starts_with("off") && draw.below(5) == 0 => draw.of_bits(12),
                _ if !p.choices.is_empty() && draw.below(5) < 2 => i128::from(draw.below(p.choices.len() as u64)),
                _ => v.0[i],
            };
        }
        v.settle(rule);
        // The longest strides that every problem has.
        let stride = |name: &str| name.starts_with("ld") || name.starts_with("stride");
        if rule.schema().iter().zip(&v.0).any(|(p, x)| stride(p.name) && *x > 1 << 34) {
            continue;
        }
        let place = ["end", "start", "end/256", "end+32", "start+64/256"][draw.below(5) as usize];
        if let rules::Verdict::Bad(signature) = rule.verdict(&v, &Placement::of(place)) {
            let search = Search { rule, signature: &signature, place: &Placement::of(place) };
            // Wraps into an operand's own gaps go by the distances of all its strides: starts beyond the enumerator.
            let plain = ["far", "past-end"].map(|p| Some(p.to_owned())).contains(&signature.place);
            if plain && !search.minimal().is_empty() {
                return (v, place);
            }
        }
    }
    panic!("no start fails");
}
