//! Cases in outside form.

use crate::problem::{Case, Problem};
use crate::report::event::ShownCase;

/// A case as reporters show it.
pub fn shown(problem: &Problem, case: &Case) -> ShownCase {
    let mut short = problem.short(&case.params);
    for (name, value) in &case.knobs {
        short.push_str(&format!(" {name}={value}"));
    }
    ShownCase {
        params: problem.show(&case.params).into_iter().collect(),
        knobs: case.knobs.clone(),
        placement: case.placement.to_string(),
        short: format!("{short} (placed {})", case.placement),
    }
}
