//! The least case of a rule, and its 1-minimal ones, by enumeration.

use super::case::{Placement, Values};
use super::{Rule, Signature};
use std::collections::BTreeMap;

/// Largest product of the small sizes.
const WORK: i128 = 8;
/// Strides up to this are tried one by one where an over-run ends at a page: a page of the narrowest elements, and a few.
const SHORT: i128 = 2100;

/// A rule, the failure looked for, and where operands lie.
pub struct Search<'a> {
    pub rule: &'a dyn Rule,
    pub signature: &'a Signature,
    pub place: &'a Placement,
}

impl Search<'_> {
    fn fails(&self, v: &Values) -> bool {
        self.rule.verdict(v, self.place).is(self.signature)
    }

    /// No integer can be lowered by one, halved or taken to its least, and no feature dropped, with the failure kept.
    pub fn is_one_minimal(&self, v: &Values) -> bool {
        let key = v.key(self.rule);
        self.fails(v)
            && (0..v.0.len()).filter(|i| self.rule.is_active(*i, v)).all(|i| {
                let p = &self.rule.schema()[i];
                let least = if p.choices.is_empty() { self.rule.least(i, v) } else { 0 };
                [v.0[i] - 1, least + (v.0[i] - least) / 2, least].into_iter().filter(|x| *x >= least).all(|x| {
                    let mut lower = v.clone();
                    lower.0[i] = x;
                    lower.settle(self.rule);
                    lower.key(self.rule) >= key || !self.fails(&lower)
                })
            })
    }

    /// The 1-minimal cases by key, the least first, among: no feature, one, or two (the first count of features that fails
    /// at all); small sizes, or those at which the rule's counts change; packed strides, or one raised.
    pub fn minimal(&self) -> BTreeMap<(usize, i128, u32, Values), Values> {
        let mut found = BTreeMap::new();
        for count in 0..=2 {
            for base in self.features(count) {
                for sized in self.sized(&base) {
                    self.look(&sized, &mut found);
                    for raised in self.raised(&sized) {
                        self.look(&raised, &mut found);
                    }
                }
            }
            if !found.is_empty() {
                break;
            }
        }
        found
    }

    fn look(&self, v: &Values, found: &mut BTreeMap<(usize, i128, u32, Values), Values>) {
        if self.fails(v) && self.is_one_minimal(v) {
            found.insert(v.key(self.rule), v.clone());
        }
    }

    /// The plainest case with so many features at another value: each choice, and counts one above their least.
    fn features(&self, count: usize) -> Vec<Values> {
        let plain = Values::plainest(self.rule);
        let mut level = vec![(0, plain)];
        for _ in 0..count {
            let mut next = vec![];
            for (from, base) in &level {
                for (i, p) in self.rule.schema().iter().enumerate().skip(*from).filter(|(_, p)| p.feature) {
                    for value in p.least + 1..p.least + p.choices.len().max(2) as i128 {
                        let mut v = base.clone();
                        v.0[i] = value;
                        v.settle(self.rule);
                        next.push((i + 1, v));
                    }
                }
            }
            level = next;
        }
        level.into_iter().map(|(_, v)| v).collect()
    }

    fn sized(&self, base: &Values) -> Vec<Values> {
        let schema = self.rule.schema();
        let is_size = |name: &str| ["m", "n", "k", "ranks", "M", "N"].contains(&name);
        let sizes: Vec<usize> = (0..schema.len()).filter(|i| is_size(schema[*i].name)).collect();
        let mut all = vec![base.clone()];
        for i in sizes {
            let with = |v: &Values| (1..=WORK).map(|x| v.with(self.rule, schema[i].name, x)).collect::<Vec<_>>();
            all = all.iter().flat_map(with).filter(|v| self.rule.work(v) <= WORK * self.rule.work(base)).collect();
        }
        for large in self.rule.large_sizes() {
            let place = |v: Values, (name, x): &(&'static str, i128)| v.with(self.rule, name, *x);
            all.push(large.iter().fold(base.clone(), place));
        }
        all.iter_mut().for_each(|v| v.settle(self.rule));
        all
    }

    /// One stride at a power of two over a small number, or next to it; where over-runs end at a page, every short one.
    fn raised(&self, base: &Values) -> Vec<Values> {
        let mut values: Vec<i128> = vec![];
        for bits in 27..=33u32 {
            for c in (1..=8i128).chain([15, 16, 31]) {
                let v = ((1i128 << bits) + c - 1) / c;
                values.extend([v - 1, v, v + 1]);
            }
        }
        if self.rule.is_overrun() {
            values = if self.rule.work(base) <= 2 { (1..=SHORT).collect() } else { vec![] };
        }
        let strides = ["lda", "ldb", "ldc", "ldd", "strideA", "strideB", "strideC", "strideD", "strideIn", "strideOut"];
        let mut out = vec![];
        for (i, p) in self.rule.schema().iter().enumerate().filter(|(_, p)| strides.contains(&p.name)) {
            if self.rule.is_active(i, base) {
                let higher = values.iter().filter(|v| **v > base.0[i]);
                out.extend(higher.map(|v| base.with(self.rule, p.name, *v)).map(|mut v| {
                    v.settle(self.rule);
                    v
                }));
            }
        }
        out
    }
}
