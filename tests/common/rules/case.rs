//! Cases as plain numbers in declaration order, and the documented order among them.

use super::Rule;
use serde_json::Value;

/// How a parameter is written and counted.
pub struct Param {
    pub name: &'static str,
    /// Empty for an integer.
    pub choices: &'static [&'static str],
    pub least: i128,
    /// Counts as a feature where it is not at its least value.
    pub feature: bool,
}

/// Values in declaration order; a choice is its position.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Values(pub Vec<i128>);

/// Names and values of the sizes of a case.
pub type Sizes = Vec<(&'static str, i128)>;

impl Values {
    pub fn plainest(rule: &dyn Rule) -> Values {
        let mut v = Values(rule.schema().iter().map(|p| p.least).collect());
        v.settle(rule);
        v
    }

    /// The parameters of an event or a file.
    pub fn of_json(rule: &dyn Rule, params: &Value) -> Values {
        let number = |p: &Param| match (&params[p.name], p.choices) {
            (Value::Null, _) => p.least,
            (v, []) => i128::from(v.as_i64().unwrap()),
            (v, choices) => {
                let text = v.as_str().map_or_else(|| v.to_string(), str::to_owned);
                choices.iter().position(|c| *c == text).unwrap() as i128
            }
        };
        Values(rule.schema().iter().map(number).collect())
    }

    pub fn index(rule: &dyn Rule, name: &str) -> usize {
        rule.schema().iter().position(|p| p.name == name).unwrap()
    }

    pub fn with(&self, rule: &dyn Rule, name: &str, value: i128) -> Values {
        let mut v = self.clone();
        v.0[Values::index(rule, name)] = value;
        v
    }

    /// Raises strides to the least that the sizes leave them; takes parameters without a meaning back.
    pub fn settle(&mut self, rule: &dyn Rule) {
        for _ in 0..2 {
            for (i, p) in rule.schema().iter().enumerate() {
                if !rule.is_active(i, self) {
                    self.0[i] = p.least;
                } else if p.choices.is_empty() {
                    self.0[i] = self.0[i].max(rule.least(i, self));
                }
            }
        }
    }

    /// `m=1,n=2,...`: every parameter with a meaning.
    pub fn text(&self, rule: &dyn Rule) -> String {
        let shown = |(i, p): (usize, &Param)| {
            let value = p.choices.get(self.0[i] as usize).map_or_else(|| self.0[i].to_string(), |c| (*c).to_owned());
            rule.is_active(i, self).then(|| format!("{}={value}", p.name))
        };
        rule.schema().iter().enumerate().filter_map(shown).collect::<Vec<_>>().join(",")
    }

    /// Fewer features, then less work, then shorter numbers, then smaller ones in declaration order.
    pub fn key(&self, rule: &dyn Rule) -> (usize, i128, u32, Values) {
        let active = || (0..self.0.len()).filter(|i| rule.is_active(*i, self));
        let features = active().filter(|i| rule.schema()[*i].feature && self.0[*i] != rule.schema()[*i].least).count();
        let bits = active().map(|i| u128::BITS - self.0[i].unsigned_abs().leading_zeros()).sum();
        (features, rule.work(self), bits, self.clone())
    }
}

/// Where operands lie in their pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placement {
    pub at_end: bool,
    pub pad: i128,
    pub align: i128,
}

impl Placement {
    /// `end`, `start`, `end+PAD`, `end/ALIGN`, `end+PAD/ALIGN`.
    pub fn of(text: &str) -> Placement {
        let (flush, align) = text.split_once('/').unwrap_or((text, "1"));
        let (flush, pad) = flush.split_once('+').unwrap_or((flush, "0"));
        Placement { at_end: flush == "end", pad: pad.parse().unwrap(), align: align.parse().unwrap() }
    }
}
