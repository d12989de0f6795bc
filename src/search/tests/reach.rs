//! Whether planted failures are found: rules with integer arithmetic of their own, over the cases of a campaign.

use super::outcome;
use crate::problem::{Case, Flush, Problem};
use crate::search::{Generator, Options};
use crate::target::sim::testing::modelled_gemm;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Values of a GEMM case by name, for rules that know nothing of operands.
struct Gemm<'a>(&'a Problem, &'a Case);

impl Gemm<'_> {
    fn get(&self, name: &str) -> i128 {
        i128::from(self.1.params[self.0.param(name).unwrap()])
    }

    fn end(&self) -> bool {
        self.1.placement.flush == Flush::End && self.1.placement.pad == 0 && self.1.placement.align == 0
    }

    /// Columns, leading dimension and rows of a stored operand.
    fn stored(&self, operand: char) -> (i128, i128, i128) {
        let (m, n, k) = (self.get("m"), self.get("n"), self.get("k"));
        match operand {
            'A' if self.get("transA") == 1 => (m, self.get("lda"), k),
            'A' => (k, self.get("lda"), m),
            'B' if self.get("transB") == 1 => (k, self.get("ldb"), n),
            'B' => (n, self.get("ldb"), k),
            'C' => (n, self.get("ldc"), m),
            _ => (n, self.get("ldd") * self.get("out"), m),
        }
    }

    fn bytes(&self) -> i128 {
        [4, 8, 2, 2][self.get("dtype") as usize]
    }
}

type Rule = Box<dyn Fn(&Gemm<'_>) -> bool>;

/// Planted failures with parameters drawn from a seed; each with its own arithmetic.
fn rules(seed: u64) -> Vec<(&'static str, Rule)> {
    let pick =
        |list: &[i128], salt: u64| list[(crate::problem::contents::mix(seed, salt) % list.len() as u64) as usize];
    let operand = ['A', 'B', 'C', 'D'][pick(&[0, 1, 2, 3], 0) as usize];
    let tile = pick(&[16, 32, 48, 64, 96, 128, 192, 256], 1);
    let unroll = pick(&[4, 8, 16, 32], 2);
    let launch = pick(&[16, 32, 64], 3);
    let batch = ["strideA", "strideB", "strideC"][pick(&[0, 1, 2], 4) as usize];
    let axis = ["m", "n"][pick(&[0, 1], 5) as usize];
    vec![
        (
            "i32 sum, elements",
            Box::new(move |g| {
                let (columns, ld, rows) = g.stored(operand);
                (columns - 1) * ld + rows > 1 << 31
            }),
        ),
        (
            "i32 product, bytes",
            Box::new(move |g| {
                let (columns, ld, _) = g.stored(operand);
                (columns - 1) * ld * g.bytes() >= 1 << 31
            }),
        ),
        (
            "u32 product, elements",
            Box::new(move |g| {
                let (columns, ld, _) = g.stored(operand);
                (columns - 1) * ld >= 1 << 32
            }),
        ),
        (
            "f32 index",
            Box::new(move |g| {
                let (columns, ld, _) = g.stored(operand);
                let last = (columns - 1) * ld;
                last >= 1 << 24 && last % 2 == 1
            }),
        ),
        ("batch stride, i32", Box::new(move |g| (g.get("batch") - 1) * g.get(batch) >= 1 << 31)),
        ("edge tile read", Box::new(move |g| g.end() && g.get(axis) % tile != 0 && g.get(axis) > tile)),
        ("edge residue", Box::new(move |g| g.end() && g.get(axis) % tile == 1 && g.get("k") > 1)),
        ("k tail", Box::new(move |g| g.end() && g.get("k") % unroll != 0 && g.get("transB") == 1)),
        (
            "tile count, u16",
            Box::new(move |g| {
                let tiles = |n: i128| (n + launch - 1) / launch;
                tiles(g.get("m")) * tiles(g.get("n")) >= 1 << 16
            }),
        ),
        ("launch limit on one axis", Box::new(move |g| (g.get(axis) + launch - 1) / launch > 65_535)),
        ("more than 65535 batches", Box::new(|g| g.get("batch") > 65_535)),
        (
            "before the start",
            Box::new(|g| g.1.placement.flush == Flush::Start && g.get("m") == 1 && g.get("beta") != 0),
        ),
    ]
}

/// Number of the first case (from 1) that each rule fails, over the cases of a seed.
fn reached(seed: u64, cases: u64) -> Vec<(&'static str, Option<u64>)> {
    let problem = modelled_gemm();
    let rules = rules(seed);
    let mut first: Vec<Option<u64>> = vec![None; rules.len()];
    let mut generator = Generator::new(Arc::clone(&problem), seed, Options::default(), vec![]).unwrap();
    let (mut count, mut round) = (0, 0);
    while count < cases && first.contains(&None) {
        let groups = generator.round(round);
        let mut results = vec![];
        for planned in groups.iter().flat_map(|g| &g.cases) {
            count += 1;
            for (found, (_, fails)) in first.iter_mut().zip(&rules) {
                if found.is_none() && fails(&Gemm(&problem, &planned.case)) {
                    *found = Some(count);
                }
            }
            results.push(outcome(&problem, count, &planned.case));
        }
        generator.fold(results);
        round += 1;
    }
    rules.iter().map(|r| r.0).zip(first).collect()
}

fn reach(seeds: u64) {
    let mut table: BTreeMap<&str, Vec<Option<u64>>> = BTreeMap::new();
    for seed in 0..seeds {
        for (rule, first) in reached(seed, 20_000) {
            table.entry(rule).or_default().push(first);
        }
    }
    for (rule, mut found) in table {
        found.sort();
        println!("{rule}: median {:?}, worst {:?}", found[found.len() / 2], found.last());
        assert!(found.iter().all(|f| f.is_some_and(|n| n <= 20_000)), "{rule}: {found:?}");
    }
}

#[test]
fn planted_failures_are_reached_within_20000_cases() {
    reach(3);
}

#[test]
#[ignore = "long: 30 seeds"]
fn planted_failures_are_reached_within_20000_cases_for_thirty_seeds() {
    reach(30);
}
