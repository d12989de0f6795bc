//! The packed form of a problem: every stride at its lower bound, so that only sizes move.

use super::description::Problem;
use super::narrow::Narrow;
use super::param::{Param, Role};

impl Problem {
    /// Restrictions that pin every free stride to its packed value.
    ///
    /// - A stride with lower bounds among the constraints (`lda >= m`) equals the largest of them.
    /// - A stride without one (the batch stride of an input, which may be 0) equals the span of one step: it is the whole
    ///   stride of a dimension of some operand, and the packed distance is `1 + sum((extent - 1) * |stride|)` over that
    ///   operand's other dimensions. Where it has no meaning it stays at its least value.
    /// - What is left (a stride that only occurs inside a larger expression, or two such strides in one operand, whose
    ///   order the description does not say) stays free.
    ///
    /// Strides that a caller pinned already are left as they are. A stride whose domain has steps is held to the first
    /// step at or above its packed value.
    pub fn packed(&self) -> Vec<Narrow> {
        let bounds: Vec<Option<String>> = self.params.iter().map(|p| self.lower_bound(p)).collect();
        let loose = |i: usize| is_free_stride(&self.params[i]) && bounds[i].is_none();
        let mut out = vec![];
        for (i, p) in self.params.iter().enumerate().filter(|(_, p)| is_free_stride(p)) {
            if self.is_held(i) {
                continue;
            }
            if let Some(value) = bounds[i].clone().or_else(|| self.span_of_one_step(i, &loose)) {
                let condition = match p.step() {
                    1 => format!("{} == {value}", p.name),
                    step => format!("{} >= {value} and {} <= {value} + {}", p.name, p.name, step - 1),
                };
                out.push(Narrow::Require { condition });
            }
        }
        out
    }

    /// Whether a constraint bounds the parameter from above as well: nothing more to pin.
    pub(crate) fn is_held(&self, param: usize) -> bool {
        use super::expr::Side;
        self.constraints.iter().any(|c| {
            let bounds = c.condition.bounds_on(param);
            bounds.iter().any(|b| b.side == Side::Lower) && bounds.iter().any(|b| b.side == Side::Upper)
        })
    }

    /// The largest lower bound that the constraints put on the parameter alone, as text.
    fn lower_bound(&self, param: &Param) -> Option<String> {
        let bounds = self.constraints.iter().filter_map(|c| {
            let (left, operator, right) = comparison(c.condition.text())?;
            match operator {
                ">=" if left == param.name => Some(format!("({right})")),
                ">" if left == param.name => Some(format!("({right}) + 1")),
                "<=" if right == param.name => Some(format!("({left})")),
                "<" if right == param.name => Some(format!("({left}) + 1")),
                _ => None,
            }
        });
        bounds.reduce(|a, b| format!("max({a}, {b})")).map(|b| format!("max({b}, {})", param.least()))
    }

    fn span_of_one_step(&self, param: usize, loose: &dyn Fn(usize) -> bool) -> Option<String> {
        let p = &self.params[param];
        let (operand, dim) = self
            .operands
            .iter()
            .find_map(|o| o.dims.iter().position(|d| d.stride.text().trim() == p.name).map(|d| (o, d)))?;
        let mut sum = "1".to_owned();
        for other in operand.dims.iter().enumerate().filter(|(d, _)| *d != dim).map(|(_, other)| other) {
            if other.stride.params().any(loose) || other.stride.text().trim() == p.name {
                return None;
            }
            let (extent, stride) = (other.extent.text(), other.stride.text());
            if stride.contains('-') {
                sum.push_str(&format!(" + ({extent} - 1) * max({stride}, -({stride}))"));
            } else {
                sum.push_str(&format!(" + ({extent} - 1) * ({stride})"));
            }
        }
        let value = format!("max({sum}, {})", p.least());
        Some(match &p.active {
            Some(when) => format!("if({}, {value}, {})", when.text(), p.least()),
            None => value,
        })
    }
}

fn is_free_stride(p: &Param) -> bool {
    p.role == Role::Stride && !p.is_choice() && p.least() < p.most()
}

/// Splits `a >= b` into its sides, where the text is one comparison and nothing else.
fn comparison(text: &str) -> Option<(&str, &str, &str)> {
    // What is nested or quoted, blanked out byte by byte: what is left decides.
    let (mut depth, mut quoted) = (0u32, false);
    let mut bare = text.as_bytes().to_vec();
    for b in &mut bare {
        match *b {
            b'\'' => quoted = !quoted,
            b'(' if !quoted => depth += 1,
            b')' if !quoted => depth = depth.saturating_sub(1),
            _ if !quoted && depth == 0 && b.is_ascii() => continue,
            _ => {}
        }
        *b = b'.';
    }
    let bare = String::from_utf8(bare).ok()?;
    let at = bare.find(['<', '>', '=', '!'])?;
    let length = if bare[at + 1..].starts_with('=') { 2 } else { 1 };
    let more = bare[at + length..].contains(['<', '>', '=', '!']);
    let joined = bare.split_whitespace().any(|w| matches!(w, "and" | "or" | "not"));
    (!more && !joined).then(|| (text[..at].trim(), &text[at..at + length], text[at + length..].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Builtin, Value};

    fn packed(name: &str) -> Problem {
        let problem = Builtin::find(name).unwrap().problem();
        problem.narrowed(&problem.packed()).unwrap()
    }

    fn complete(problem: &Problem, pairs: &[(&str, i64)]) -> Vec<(String, Value)> {
        let named = pairs.iter().map(|(n, v)| ((*n).to_owned(), Value::Int(*v))).collect();
        problem.show(&problem.complete(&named).unwrap())
    }

    #[test]
    fn packed_gemm_has_the_smallest_leading_dimensions_and_touching_batches() {
        let shown = complete(&packed("gemm"), &[("m", 7), ("n", 5), ("k", 3), ("batch", 4)]);
        let get = |name: &str| shown.iter().find(|(n, _)| n == name).unwrap().1.clone();
        assert_eq!((get("lda"), get("ldb"), get("ldc")), (7.into(), 3.into(), 7.into()));
        assert_eq!((get("strideA"), get("strideB"), get("strideC")), (21.into(), 15.into(), 35.into()));
        assert_eq!((get("ldd"), get("strideD")), (1.into(), 0.into()));
    }

    #[test]
    fn packed_all_gather_moves_with_its_columns() {
        let problem = packed("allgather");
        let shown = complete(&problem, &[("ranks", 8), ("M", 9), ("N", 100)]);
        assert!(shown.contains(&("strideOut".into(), 100.into())) && shown.contains(&("strideIn".into(), 100.into())));
        assert!(problem.complete(&[("strideOut".to_owned(), Value::Int(101))].into()).is_err());
    }

    #[test]
    fn packed_vectors_have_increments_of_1() {
        for name in ["gemv", "ger", "axpy", "iamax"] {
            let shown = complete(&packed(name), &[("n", 9)]);
            let increments = shown.iter().filter(|(n, _)| n.starts_with("inc"));
            assert!(
                increments.clone().count() > 0 && increments.clone().all(|(_, v)| *v == 1.into()),
                "{name}: {shown:?}"
            );
        }
    }

    #[test]
    fn packing_twice_changes_nothing_and_pinned_strides_stay() {
        assert!(packed("gemm").packed().is_empty());
        let problem = Builtin::find("gemm").unwrap().problem();
        let pin = Narrow::Set { param: "lda".into(), value: 5000.into() };
        let pinned = problem.narrowed(&[pin]).unwrap();
        let packed = pinned.narrowed(&pinned.packed()).unwrap();
        assert_eq!(packed.plainest().unwrap()[problem.param("lda").unwrap()], 5000);
    }

    #[test]
    fn only_single_comparisons_are_split() {
        assert_eq!(comparison("lda >= if(transA == 'T', k, m)"), Some(("lda", ">=", "if(transA == 'T', k, m)")));
        assert_eq!(comparison("m<lda"), Some(("m", "<", "lda")));
        for text in [
            "lda >= m and ldb >= n",
            "a == 1 or b == 2",
            "not a >= b",
            "flag",
            "x == '>='  and y > 2",
            "lda >= m or flag",
        ] {
            assert_eq!(comparison(text), None, "{text}");
        }
    }
}
