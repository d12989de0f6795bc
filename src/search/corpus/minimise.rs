//! Which cases of a corpus add nothing to those before them.

use crate::finding::CaseInput;
use crate::problem::{Case, Knobs, Placement, Problem};
use crate::search::novelty::{self, Outcome};
use crate::search::placing;
use std::collections::HashMap;

/// What two cases must share for the second to add nothing: what the search calls the same result, and the parts of a case
/// that pick another code path or another edge.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Adds {
    problem: String,
    /// Magnitude of every operand's most extreme offset; where the case ran, also kernel, verdict and place of the damage.
    result: novelty::Key,
    choices: Vec<i64>,
    knobs: Knobs,
    placement: Placement,
    /// Which operands end or begin at an unmapped page.
    at_edge: Vec<bool>,
}

/// A case of a corpus, and what came of running it, where it ran.
#[derive(Debug)]
pub struct Member<'a> {
    pub input: &'a CaseInput,
    pub case: &'a Case,
    pub outcome: Option<Outcome>,
}

/// For every member the index of an earlier one that it adds nothing to; `None` where it is worth keeping. A case that
/// says nothing, because it is none or was refused, skipped or hung, is kept.
pub fn repeats(members: &[Member<'_>], page_bytes: i64) -> Vec<Option<usize>> {
    let mut seen: HashMap<Adds, usize> = HashMap::new();
    let mut out = vec![];
    for (i, member) in members.iter().enumerate() {
        let like = adds(member, page_bytes).and_then(|adds| {
            let first = *seen.entry(adds).or_insert(i);
            (first != i).then_some(first)
        });
        out.push(like);
    }
    out
}

fn adds(member: &Member<'_>, page_bytes: i64) -> Option<Adds> {
    let (problem, case): (&Problem, &Case) = (&member.input.problem, member.case);
    let result = match &member.outcome {
        Some(outcome) if outcome.feeds_back() => novelty::key(problem, outcome)?,
        Some(_) => return None,
        None => novelty::unrun_key(problem, case)?,
    };
    let views = problem.views(&case.params).ok()?;
    let touches = |v: &crate::problem::View| !v.is_empty() && placing::touches_edge(v, case.placement, page_bytes);
    let choices =
        problem.params.iter().enumerate().filter(|(i, p)| p.is_choice() && problem.is_active(*i, &case.params.0));
    Some(Adds {
        problem: problem.name.clone(),
        result,
        choices: choices.map(|(i, _)| case.params[i]).collect(),
        knobs: case.knobs.clone(),
        placement: case.placement,
        at_edge: views.iter().map(|v| v.as_ref().is_some_and(touches)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::Verdict;
    use crate::finding::Catalog;

    fn inputs(texts: &[&str]) -> Vec<(CaseInput, Case)> {
        let read = |text: &&str| {
            let input = CaseInput::read(text, None, &[], &Catalog::default()).unwrap();
            let case = input.case(&input.problem, Placement::END).unwrap();
            (input, case)
        };
        texts.iter().map(read).collect()
    }

    fn found(texts: &[&str], verdicts: &[Option<Verdict>]) -> Vec<Option<usize>> {
        let inputs = inputs(texts);
        let member = |(i, (input, case)): (usize, &'_ (CaseInput, Case))| {
            let outcome = verdicts.get(i).cloned().flatten().map(|v| Outcome::new(0, case.clone(), &v, None));
            (input.clone(), case.clone(), outcome)
        };
        let made: Vec<_> = inputs.iter().enumerate().map(member).collect();
        let members: Vec<Member<'_>> =
            made.iter().map(|(input, case, outcome)| Member { input, case, outcome: outcome.clone() }).collect();
        repeats(&members, 4096)
    }

    #[test]
    fn a_case_of_the_same_magnitudes_and_choices_adds_nothing() {
        let texts =
            ["gemm:m=600,n=600,k=600", "gemm:m=601,n=601,k=601", "gemm:m=5000", "gemm:m=601,n=601,k=601,transA=T"];
        assert_eq!(found(&texts, &[]), [None, Some(0), None, None]);
        assert_eq!(found(&["gemm:m=2", "allgather:ranks=2", "gemm:m=2"], &[]), [None, None, Some(0)]);
    }

    #[test]
    fn what_came_of_a_run_tells_cases_apart_and_what_did_not_run_is_kept() {
        let texts = ["gemm:m=600", "gemm:m=601", "gemm:m=602", "gemm:m=603"];
        let pass = || Some(Verdict::Pass { sample: None });
        let crash = Some(Verdict::Crash { how: "SIGABRT".into(), code: None });
        let refused = Some(Verdict::Refused { detail: String::new() });
        assert_eq!(found(&texts, &[pass(), crash, pass(), refused]), [None, None, Some(0), None]);
    }
}
