//! Cases, and what is said of them, in outside form.

use crate::finding::Tally;
use crate::problem::{Case, Problem};
use crate::report::event::ShownCase;
use std::time::Duration;

/// A case as reporters show it.
pub fn shown(problem: &Problem, case: &Case) -> ShownCase {
    let mut short = problem.short(&case.params);
    for (name, value) in &case.knobs {
        short.push_str(&format!(" {name}={value}"));
    }
    let placement = case.placement.to_string();
    if !problem.placed_by_program {
        short.push_str(&format!(" (placed {placement})"));
    }
    ShownCase { params: problem.show(&case.params).into_iter().collect(), knobs: case.knobs.clone(), placement, short }
}

/// What is said of a case that answers past the time limit, which is `limit` from then on.
pub fn slow(took: Duration, limit: Duration) -> String {
    let (took, limit) = (took.as_secs_f64(), limit.as_secs_f64());
    format!("slow, no hang: it answered after {took:.1} s; the time limit of a case is {limit:.1} s from here on")
}

/// What is said of a case that failed now and then after others, where the list may have nothing to do with it.
pub fn too_rare(after: Tally, alone: Tally) -> String {
    format!(
        "failed {} of {} times after what ran before it and {} of {} times alone: too rarely to tell what it needs",
        after.failed, after.runs, alone.failed, alone.runs
    )
}
