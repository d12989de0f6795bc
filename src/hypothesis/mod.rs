//! The grammar of offset expressions: which quantity of a case may cross which line.
//!
//! A leaf: it knows problems and nothing else. Directed generation steps around its lines, the shrinker asks it where to
//! probe first. It never decides a verdict.

use crate::problem::expr::Env;
use crate::problem::{Assignment, Problem};

/// What an offset is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unit {
    Element,
    Byte,
}

/// Powers of two at which integers of some width, or exact integers in f32 (24), end.
pub const THRESHOLD_BITS: [u8; 4] = [16, 24, 31, 32];

/// "This sum of stride terms of this operand, in this unit, reaches 2^bits."
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hypothesis {
    pub operand: usize,
    /// Bit d set: the term `(extent_d - 1) * stride_d` is part of the sum.
    pub dims: u32,
    /// Whether the operand's own offset is part of it.
    pub offset: bool,
    pub unit: Unit,
    pub bits: u8,
}

impl Hypothesis {
    /// The quantity, in the unit, for the copy with the largest; `None` where the operand does not exist or the
    /// arithmetic overflows.
    pub fn quantity(&self, problem: &Problem, values: &Assignment) -> Option<i128> {
        let operand = &problem.operands[self.operand];
        if let Some(when) = &operand.when
            && !problem.holds(when, &values.0).ok()?
        {
            return None;
        }
        let bytes = |o: usize| i128::from(problem.element_bytes(o, &values.0));
        let last = match &operand.ranks {
            Some(e) => (problem.eval(e, &values.0, 0).ok()? - 1).clamp(0, 1 << 20) as i64,
            None => 0,
        };
        let env = Env { values: &values.0, element_bytes: &bytes, rank: last };
        let mut sum: i128 = 0;
        for (d, dim) in operand.dims.iter().enumerate() {
            if self.dims & (1 << d) != 0 {
                let extent = dim.extent.eval(&env).ok()?;
                let stride = dim.stride.eval(&env).ok()?;
                sum = sum.checked_add((extent - 1).max(0).checked_mul(stride.checked_abs()?)?)?;
            }
        }
        if let (true, Some(offset)) = (self.offset, &operand.offset) {
            sum = sum.checked_add(offset.eval(&env).ok()?)?;
        }
        match self.unit {
            Unit::Element => Some(sum),
            Unit::Byte => sum.checked_mul(bytes(self.operand)),
        }
    }

    /// The line: 2^bits.
    pub fn threshold(&self) -> i128 {
        1 << self.bits
    }

    /// Whether the quantity reaches the line; `None` where there is no quantity.
    pub fn crosses(&self, problem: &Problem, values: &Assignment) -> Option<bool> {
        self.quantity(problem, values).map(|q| q >= self.threshold())
    }

    /// The least value of `param` in `low..=high` at which the quantity reaches the line, all other parameters kept;
    /// `None` where it does not within the range or does not grow with the parameter.
    pub fn first_crossing(
        &self,
        problem: &Problem,
        values: &Assignment,
        param: usize,
        low: i64,
        high: i64,
    ) -> Option<i64> {
        let p = &problem.params[param];
        let (mut good, mut bad) = (p.round_up(low)?, p.round_down(high)?);
        let mut at = values.clone();
        let mut crosses = |v: i64| {
            at[param] = v;
            self.crosses(problem, &at)
        };
        if good > bad || crosses(good)? || !crosses(bad)? {
            return None;
        }
        while i128::from(bad) - i128::from(good) > i128::from(p.step()) {
            let middle = ((i128::from(good) + i128::from(bad)) / 2) as i64;
            let middle = p.round_down(middle).filter(|m| *m > good).or_else(|| p.round_up(good + 1))?;
            if crosses(middle)? {
                bad = middle;
            } else {
                good = middle;
            }
        }
        Some(bad)
    }

    /// For people: `(n-1)*ldb + (k-1) of B, elements, 2^31`, with the terms as the problem writes them.
    pub fn describe(&self, problem: &Problem) -> String {
        let operand = &problem.operands[self.operand];
        let mut terms = vec![];
        for (d, dim) in operand.dims.iter().enumerate() {
            if self.dims & (1 << d) != 0 {
                terms.push(format!("({} - 1) * {}", dim.extent.text(), dim.stride.text()));
            }
        }
        if let (true, Some(offset)) = (self.offset, &operand.offset) {
            terms.push(offset.text().to_owned());
        }
        let unit = match self.unit {
            Unit::Element => "elements",
            Unit::Byte => "bytes",
        };
        format!("{} of {}, {unit}, 2^{}", terms.join(" + "), operand.name, self.bits)
    }
}

/// Every hypothesis of the problem: for each operand every sum of stride terms (all subsets up to three dimensions, else
/// single terms and the full sum), with and without the operand's offset, in both units, at every threshold.
pub fn enumerate(problem: &Problem) -> Vec<Hypothesis> {
    let mut out = vec![];
    for (operand, o) in problem.operands.iter().enumerate() {
        let n = o.dims.len() as u32;
        let subsets: Vec<u32> =
            if n <= 3 { (1..1 << n).collect() } else { (0..n).map(|d| 1 << d).chain([(1 << n) - 1]).collect() };
        for dims in subsets {
            for offset in [false, true] {
                if offset && o.offset.is_none() {
                    continue;
                }
                for unit in [Unit::Element, Unit::Byte] {
                    for bits in THRESHOLD_BITS {
                        out.push(Hypothesis { operand, dims, offset, unit, bits });
                    }
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Builtin, Value};

    #[test]
    fn the_line_of_the_all_gather_report_is_between_32768_and_32769_rows() {
        let problem = Builtin::find("allgather").unwrap().problem();
        let named = [("ranks", 8), ("M", 65536), ("N", 8192)].map(|(n, v)| (n.to_owned(), Value::Int(v))).into();
        let mut values = problem.complete(&named).unwrap();
        values[problem.param("dtype").unwrap()] = 1;
        let h = Hypothesis {
            operand: problem.operand("out").unwrap(),
            dims: 0b111,
            offset: false,
            unit: Unit::Element,
            bits: 31,
        };
        let m = problem.param("M").unwrap();
        assert_eq!(h.first_crossing(&problem, &values, m, 1, 65536), Some(32769));
        assert_eq!(h.describe(&problem).matches('*').count(), 4);
        assert!(enumerate(&problem).contains(&h));
    }

    #[test]
    fn a_range_that_never_crosses_has_no_crossing() {
        let problem = Builtin::find("gemm").unwrap().problem();
        let values = problem.plainest().unwrap();
        for h in enumerate(&problem) {
            assert_eq!(h.first_crossing(&problem, &values, problem.param("m").unwrap(), 1, 4), None);
        }
    }
}
