//! The total order in which one case is smaller than another.

use crate::problem::{Assignment, Problem, Role};

/// Sorts as people would: fewer unusual features first, then less work, then shorter numbers, then smaller ones.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Active features that are not at their plainest value.
    pub features: usize,
    /// Work of the case, in the problem's unit.
    pub work: i128,
    /// Sum of the bit lengths of all active parameters.
    pub bits: u32,
    /// The values in declaration order.
    pub values: Assignment,
}

impl Key {
    pub fn of(problem: &Problem, values: &Assignment) -> Key {
        let active = (0..problem.params.len()).filter(|i| problem.is_active(*i, &values.0));
        let bits = active.map(|i| u64::BITS - values[i].unsigned_abs().leading_zeros()).sum();
        Key { features: features(problem, values).len(), work: problem.work(values), bits, values: values.clone() }
    }
}

/// Whether a value of the parameter above the plainest makes a case unusual: choices, counts and offsets. Extents and
/// the number of ranks are size; strides are measured by their length alone.
pub fn can_be_feature(problem: &Problem, param: usize) -> bool {
    let p = &problem.params[param];
    p.is_choice() || matches!(p.role, Role::Count | Role::Offset)
}

/// The active features that are not at their plainest value, in declaration order.
pub fn features(problem: &Problem, values: &Assignment) -> Vec<usize> {
    (0..problem.params.len())
        .filter(|i| can_be_feature(problem, *i) && values[*i] != problem.params[*i].least())
        .filter(|i| problem.is_active(*i, &values.0))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Builtin, Value};

    fn key(pairs: &[(&str, &str)]) -> Key {
        let problem = Builtin::find("gemm").unwrap().problem();
        let named = pairs.iter().map(|(n, v)| ((*n).to_owned(), Value::from_word(v))).collect();
        Key::of(&problem, &problem.complete(&named).unwrap())
    }

    #[test]
    fn a_plain_large_case_is_smaller_than_an_unusual_small_one() {
        let plain = key(&[("m", "1000"), ("n", "1000"), ("k", "1000")]);
        for feature in [("transA", "T"), ("batch", "2"), ("offB", "1"), ("beta", "-1"), ("dtype", "f64")] {
            let unusual = key(&[feature]);
            assert_eq!(unusual.features, 1, "{feature:?}");
            assert!(plain < unusual);
        }
    }

    #[test]
    fn less_work_beats_shorter_numbers_and_shorter_numbers_beat_smaller_ones() {
        assert!(key(&[("n", "2"), ("ldb", "2147483648")]) < key(&[("n", "3")]));
        assert!(key(&[("m", "1"), ("n", "1000001")]) < key(&[("m", "101"), ("n", "9901")]));
        assert!(key(&[("ldb", "4")]) < key(&[("ldb", "5")]));
    }

    #[test]
    fn strides_of_a_single_product_do_not_count() {
        let one = key(&[]);
        let batched = key(&[("batch", "2"), ("strideA", "1000")]);
        assert_eq!((one.features, batched.features), (0, 1));
        assert_eq!(one.bits, 7, "m n k lda ldb ldc and batch are 1, the batch strides are inactive");
    }
}
