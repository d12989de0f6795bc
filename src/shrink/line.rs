//! One-parameter families of cases.

use crate::problem::{Assignment, Problem, Role};

/// What the other parameters do while the leading ones move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    /// They stay, unless a constraint forces them (a leading dimension below its column).
    Held,
    /// Strides tied to a leading parameter by a constraint are derived again, as small as they may be.
    Packed,
}

/// All cases that agree with `base` but for some integers, which share one value.
#[derive(Debug, Clone)]
pub struct Line<'p> {
    problem: &'p Problem,
    base: Assignment,
    params: Vec<usize>,
    follow: Follow,
    /// Strides to derive again.
    dependents: Vec<usize>,
}

/// Whether the parameter has more than one value left.
pub fn is_free(problem: &Problem, param: usize) -> bool {
    let p = &problem.params[param];
    if p.is_choice() { p.choices().len() > 1 } else { p.least() < p.most() }
}

/// Strides may follow other parameters; sizes follow only where nothing else can.
pub fn follows(problem: &Problem, param: usize) -> bool {
    let p = &problem.params[param];
    !p.is_choice() && p.role == Role::Stride
}

impl<'p> Line<'p> {
    pub fn new(problem: &'p Problem, base: &Assignment, params: &[usize], follow: Follow) -> Line<'p> {
        let tied = |s: usize| {
            problem.constraints.iter().any(|c| {
                let mut has = [false; 2];
                for p in c.condition.params() {
                    has[0] |= p == s;
                    has[1] |= params.contains(&p);
                }
                has == [true; 2]
            })
        };
        let dependents = match follow {
            Follow::Held => vec![],
            Follow::Packed => (0..problem.params.len())
                .filter(|s| follows(problem, *s) && is_free(problem, *s) && !params.contains(s) && tied(*s))
                .collect(),
        };
        Line { problem, base: base.clone(), params: params.to_vec(), follow, dependents }
    }

    /// Whether deriving strides again can make a difference.
    pub fn is_distinct(&self) -> bool {
        self.follow == Follow::Held || !self.dependents.is_empty()
    }

    /// The leading value of the base.
    pub fn value(&self) -> i64 {
        self.base[self.params[0]]
    }

    pub fn params(&self) -> &[usize] {
        &self.params
    }

    /// The case at a value, valid; `None` where there is none.
    pub fn at(&self, value: i64) -> Option<Assignment> {
        let mut values = self.base.clone();
        for p in &self.params {
            if !self.problem.params[*p].allows(value) {
                return None;
            }
            values[*p] = value;
        }
        self.settled(&values)
    }

    /// A case with the leading values of `values`, and the others held or derived again.
    pub fn settled(&self, values: &Assignment) -> Option<Assignment> {
        let mut values = values.clone();
        for s in &self.dependents {
            values[*s] = self.problem.params[*s].least();
        }
        self.problem.follow(&values, |i| self.params.contains(&i))
    }

    /// The largest value not above `v` that every leading parameter allows.
    pub fn round_down(&self, v: i64) -> Option<i64> {
        self.settle(v, |p, v| self.problem.params[p].round_down(v))
    }

    /// The smallest value not below `v` that every leading parameter allows.
    pub fn round_up(&self, v: i64) -> Option<i64> {
        self.settle(v, |p, v| self.problem.params[p].round_up(v))
    }

    fn settle(&self, mut v: i64, round: impl Fn(usize, i64) -> Option<i64>) -> Option<i64> {
        for _ in 0..64 {
            let mut moved = v;
            for p in &self.params {
                moved = round(*p, moved)?;
            }
            if moved == v {
                return Some(v);
            }
            v = moved;
        }
        None
    }

    /// Distance between two allowed values of the first leading parameter.
    pub fn step(&self) -> i64 {
        self.problem.params[self.params[0]].step()
    }

    /// The least value below the base's that has a valid case; `None` where the base's is the least.
    pub fn lowest(&self) -> Option<i64> {
        let high = self.value();
        let least = self.params.iter().map(|p| self.problem.params[*p].least()).max()?;
        let bound = self.params.iter().map(|p| self.problem.bounds(*p, &self.base.0).0).max()?;
        for v in [least, bound] {
            if let Some(v) = self.round_up(v).filter(|v| *v < high)
                && self.at(v).is_some()
            {
                return Some(v);
            }
        }
        // Neither end is a case: the least valid one, if validity is one interval that ends at the base.
        let (mut bad, mut good) = (least, high);
        while good - bad > 1 {
            let Some(middle) = self.round_up(bad + (good - bad) / 2).filter(|m| *m < good) else { break };
            if self.at(middle).is_some() { good = middle } else { bad = middle }
        }
        (good < high).then_some(good)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Builtin, Narrow, Value};

    fn gemm(pairs: &[(&str, i64)]) -> (std::sync::Arc<Problem>, Assignment) {
        let problem = Builtin::find("gemm").unwrap().problem();
        let named = pairs.iter().map(|(n, v)| ((*n).to_owned(), Value::Int(*v))).collect();
        let values = problem.complete(&named).unwrap();
        (problem, values)
    }

    #[test]
    fn a_leading_dimension_is_held_or_derived_again() {
        let (p, base) = gemm(&[("m", 100), ("lda", 300), ("k", 7), ("n", 5)]);
        let (m, lda) = (p.param("m").unwrap(), p.param("lda").unwrap());
        let at = |follow, v| Line::new(&p, &base, &[m], follow).at(v).unwrap()[lda];
        assert_eq!((at(Follow::Held, 20), at(Follow::Packed, 20), at(Follow::Held, 400)), (300, 20, 400));
    }

    #[test]
    fn the_lowest_stride_is_what_the_constraint_leaves() {
        let (p, base) = gemm(&[("m", 100), ("lda", 300)]);
        let lda = p.param("lda").unwrap();
        assert_eq!(Line::new(&p, &base, &[lda], Follow::Held).lowest(), Some(100));
        let (p, base) = gemm(&[("m", 100)]);
        assert_eq!(Line::new(&p, &base, &[lda], Follow::Held).lowest(), None);
    }

    #[test]
    fn an_equation_moves_both_its_sides() {
        let problem = Builtin::find("gemm").unwrap().problem();
        let square = problem.narrowed(&[Narrow::Require { condition: "m == n".into() }]).unwrap();
        let (m, n) = (square.param("m").unwrap(), square.param("n").unwrap());
        let base = square.complete(&[("m".to_owned(), Value::Int(40))].into()).unwrap();
        let line = Line::new(&square, &base, &[m], Follow::Held);
        assert_eq!(line.lowest(), Some(1));
        assert_eq!(line.at(17).unwrap()[n], 17);
    }
}
