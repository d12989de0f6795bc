//! Ugly cases to start from, and the least case by enumeration.

use super::super::order::Key;
use super::rules::{Call, Rule};
use crate::exec::Signature;
use crate::problem::{Assignment, Case, Placement, Problem};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub fn case(params: Assignment) -> Case {
    Case { params, knobs: Default::default(), placement: Placement::END }
}

fn logarithmic(rng: &mut ChaCha8Rng, top: i64) -> i64 {
    let bits = rng.random_range(0.0..(top as f64).log2());
    (bits.exp2() as i64).clamp(1, top)
}

/// A random valid case that fails under the rule, with some features, sizes up to `size` and strides up to 2^33.
pub fn ugly(problem: &Problem, rule: &Rule, seed: u64) -> Case {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    for _ in 0..2_000_000 {
        let size = if matches!(rule, Rule::Tiles { .. } | Rule::Elements { .. }) { 1 << 20 } else { 1500 };
        let mut values = Assignment(problem.params.iter().map(|p| p.least()).collect());
        for (i, p) in problem.params.iter().enumerate() {
            values[i] = match p.name.as_str() {
                "m" | "n" | "k" => logarithmic(&mut rng, size),
                "batch" if rng.random_bool(0.4) => rng.random_range(2..7),
                name if name.starts_with("ld") => logarithmic(&mut rng, 1 << 33),
                name if name.starts_with("stride") => logarithmic(&mut rng, 1 << 33),
                name if name.starts_with("off") && rng.random_bool(0.2) => logarithmic(&mut rng, 5000),
                _ if p.is_choice() && rng.random_bool(0.4) => (rng.next_u64() % p.choices().len() as u64) as i64,
                _ => continue,
            };
        }
        if matches!(rule, Rule::Square { .. }) {
            let (m, n) = (problem.param("m").unwrap(), problem.param("n").unwrap());
            values[n] = values[m];
        }
        let sizes: Vec<usize> = ["m", "n", "k"].iter().map(|n| problem.param(n).unwrap()).collect();
        if !problem.repair(&mut values, |i| !sizes.contains(&i)) {
            continue;
        }
        let case = case(values);
        if rule.verdict(&Call::of(&case)).is_bad() {
            return case;
        }
    }
    panic!("no start fails under {rule:?}");
}

/// The least case that fails with a signature, among: up to two features at their next values (batch and offsets
/// included), small sizes or sizes at the edges that the rule's kinds have, packed strides or one stride at a power of
/// two over a small number and its neighbours.
pub fn least(problem: &Problem, rule: &Rule, signature: &Signature) -> Option<Key> {
    let mut best: Option<Key> = None;
    for features in feature_sets(problem) {
        for sizes in size_sets(rule) {
            let mut base = Assignment(problem.params.iter().map(|p| p.least()).collect());
            for (name, v) in ["m", "n", "k"].iter().zip(sizes) {
                base[problem.param(name).unwrap()] = v;
            }
            for (i, v) in &features {
                base[*i] = *v;
            }
            if !problem.repair(&mut base, |i| problem.params[i].name.starts_with(['l', 's'])) {
                continue;
            }
            let mut look = |values: &Assignment| {
                let case = case(values.clone());
                let bad = Signature::of(&rule.verdict(&Call::of(&case))).is_some_and(|s| s == *signature);
                if bad && problem.check(values).is_ok() {
                    let key = Key::of(problem, values);
                    if best.as_ref().is_none_or(|b| key < *b) {
                        best = Some(key);
                    }
                }
            };
            look(&base);
            if matches!(rule, Rule::Tiles { .. } | Rule::Elements { .. } | Rule::Square { .. }) {
                continue;
            }
            for (i, p) in problem.params.iter().enumerate() {
                if p.name.starts_with("ld") || p.name.starts_with("str") {
                    for v in edges() {
                        let mut values = base.clone();
                        values[i] = v;
                        look(&values);
                    }
                }
            }
        }
        if best.is_some() {
            break;
        }
    }
    best
}

/// None, then every single one, then every two, each at every next value (counts and offsets one step up).
fn feature_sets(problem: &Problem) -> Vec<Vec<(usize, i64)>> {
    let single: Vec<(usize, i64)> = problem
        .params
        .iter()
        .enumerate()
        .flat_map(|(i, p)| match p.name.as_str() {
            "batch" => vec![(i, 2)],
            _ if p.is_choice() => p.choices().into_iter().skip(1).map(|v| (i, v)).collect(),
            _ => vec![],
        })
        .collect();
    let mut sets = vec![vec![]];
    sets.extend(single.iter().map(|s| vec![*s]));
    for (a, first) in single.iter().enumerate() {
        for second in &single[a + 1..] {
            if first.0 != second.0 {
                sets.push(vec![*first, *second]);
            }
        }
    }
    sets
}

fn edges() -> Vec<i64> {
    let mut out = vec![];
    for bits in 28..=33u32 {
        for c in (1..=8i64).chain([15, 16, 31]) {
            let v = ((1i64 << bits) + c - 1) / c;
            out.extend([v - 1, v, v + 1]);
        }
    }
    out
}

fn size_sets(rule: &Rule) -> Vec<[i64; 3]> {
    match *rule {
        Rule::Tiles { m, n } => {
            (1..=65536i128).map(|a| [((a - 1) * m + 1) as i64, (((65536 + a - 1) / a - 1) * n + 1) as i64, 1]).collect()
        }
        Rule::Elements { above } => {
            let work = above as i64 + 1;
            (1..=work).filter(|m| work % m == 0).map(|m| [m, work / m, 1]).collect()
        }
        Rule::Square { from } => vec![[from as i64, from as i64, 1]],
        Rule::Edge { .. } | Rule::Tail { .. } | Rule::Remainder { .. } => {
            (1..1000).flat_map(|v| [[v, 1, 1], [1, v, 1], [1, 1, v]]).collect()
        }
        _ => {
            let mut out = vec![];
            for m in 1..=8 {
                for n in 1..=8 {
                    out.extend((1..=8).filter(|k| m * n * k <= 8).map(|k| [m, n, k]));
                }
            }
            out
        }
    }
}
