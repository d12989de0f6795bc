//! What a campaign really exercised, counted from the cases that ran.

use super::group::{Origin, Planned};
use super::placing;
use crate::problem::{Assignment, Problem, Role};
use serde::Serialize;
use std::fmt;

/// Counts of one operand.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct OperandCoverage {
    pub name: String,
    /// Cases in which the operand exists.
    pub present: u64,
    /// Cases with an extreme offset of at least 2^31 and 2^32 elements, then bytes, from the pointer that the target is
    /// given: a base offset is part of that pointer, and no arithmetic of the target.
    pub past_elements: [u64; 2],
    pub past_bytes: [u64; 2],
    /// Cases in which its edge is the edge of a page: the next byte is unmapped.
    pub at_edge: u64,
}

/// Counts of a campaign. Only cases that ran count as covered; refused and skipped ones are counted as such.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Coverage {
    pub operands: Vec<OperandCoverage>,
    /// Cases that ran.
    pub ran: u64,
    /// Cases of which any operand is past 2^31 elements or bytes.
    pub past: u64,
    /// Cases of which any operand is flush at an edge.
    pub at_edge: u64,
    pub refused: u64,
    pub skipped: u64,
    /// Cases that ran and in which a wrapped offset can land on mapped pages.
    pub can_be_silent: u64,
    /// By [`Origin::index`].
    pub origins: [u64; 5],
    #[serde(skip)]
    page_bytes: i64,
}

impl Coverage {
    pub fn new(problem: &Problem, page_bytes: i64) -> Coverage {
        let named = |o: &crate::problem::Operand| OperandCoverage { name: o.name.clone(), ..Default::default() };
        Coverage {
            operands: problem.operands.iter().map(named).collect(),
            ran: 0,
            past: 0,
            at_edge: 0,
            refused: 0,
            skipped: 0,
            can_be_silent: 0,
            origins: [0; 5],
            page_bytes,
        }
    }

    /// Counts a case with the word of its verdict.
    pub fn record(&mut self, problem: &Problem, planned: &Planned, origin: Origin, verdict: &str) {
        match verdict {
            "refused" => return self.refused += 1,
            "skipped" => return self.skipped += 1,
            _ => {}
        }
        let Ok(views) = problem.views(&planned.case.params) else { return };
        let Ok(seen) = problem.views(&without_base_offsets(problem, &planned.case.params)) else { return };
        self.ran += 1;
        self.origins[origin.index()] += 1;
        self.can_be_silent += u64::from(planned.can_be_silent);
        let (mut past, mut at_edge) = (false, false);
        for ((count, view), seen) in self.operands.iter_mut().zip(&views).zip(&seen) {
            let Some(view) = view.as_ref().filter(|v| !v.is_empty()) else { continue };
            let copies = [0, view.copies() - 1];
            let seen = seen.as_ref().unwrap_or(view);
            let far = |c: u32| seen.highest(c).unsigned_abs().max(seen.lowest(c).unsigned_abs());
            let elements = copies.into_iter().map(far).max().unwrap_or(0);
            let bytes = elements.saturating_mul(view.element_bytes.unsigned_abs());
            count.present += 1;
            for (i, bits) in [31, 32].into_iter().enumerate() {
                count.past_elements[i] += u64::from(elements >> bits > 0);
                count.past_bytes[i] += u64::from(bytes >> bits > 0);
            }
            past |= bytes >> 31 > 0;
            // An alias lies in the memory of another operand, whose edge counts.
            let known = view.alias.is_none() && !problem.placed_by_program;
            let edge = known && placing::touches_edge(view, planned.case.placement, self.page_bytes);
            count.at_edge += u64::from(edge);
            at_edge |= edge;
        }
        self.past += u64::from(past);
        self.at_edge += u64::from(at_edge);
    }
}

/// The case with every base pointer at element 0.
fn without_base_offsets(problem: &Problem, params: &Assignment) -> Assignment {
    let mut params = params.clone();
    for (i, p) in problem.params.iter().enumerate().filter(|(_, p)| p.role == Role::Offset) {
        params[i] = p.least();
    }
    params
}

impl fmt::Display for Coverage {
    /// A line for the campaign and one per operand, without a last line break.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} cases ran ({} refused, {} skipped): {} past 2^31 elements or bytes, {} flush at a page edge, {} could be silent",
            self.ran, self.refused, self.skipped, self.past, self.at_edge, self.can_be_silent
        )?;
        for (i, word) in Origin::WORDS.into_iter().enumerate() {
            write!(f, "{}{word} {}", if i == 0 { "; " } else { ", " }, self.origins[i])?;
        }
        for o in self.operands.iter().filter(|o| o.present > 0) {
            write!(
                f,
                "\n{}: in {} cases; past 2^31 elements {}, 2^32 elements {}, 2^31 bytes {}, 2^32 bytes {}; at an edge {}",
                o.name, o.present, o.past_elements[0], o.past_elements[1], o.past_bytes[0], o.past_bytes[1], o.at_edge
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Builtin, Case, Placement};

    #[test]
    fn a_base_offset_is_part_of_the_pointer() {
        let problem = Builtin::find("gemm").unwrap().problem();
        let mut params = problem.plainest().unwrap();
        params[problem.param("offB").unwrap()] = 3 << 30;
        let case = Case { params, knobs: Default::default(), placement: Placement::END };
        let mut coverage = Coverage::new(&problem, 4096);
        coverage.record(&problem, &Planned { case, can_be_silent: false }, Origin::Edge, "pass");
        assert_eq!((coverage.ran, coverage.past, coverage.operands[1].past_bytes), (1, 0, [0, 0]));
    }

    #[test]
    fn only_cases_that_ran_count_as_covered() {
        let problem = Builtin::find("gemm").unwrap().problem();
        let mut params = problem.plainest().unwrap();
        for (name, value) in [("n", 3), ("ldc", 1 << 30)] {
            params[problem.param(name).unwrap()] = value;
        }
        let case = Case { params, knobs: Default::default(), placement: Placement::END };
        let planned = Planned { case, can_be_silent: true };
        let mut coverage = Coverage::new(&problem, 4096);
        for verdict in ["pass", "refused", "skipped"] {
            coverage.record(&problem, &planned, Origin::Directed, verdict);
        }
        assert_eq!((coverage.ran, coverage.refused, coverage.skipped), (1, 1, 1));
        assert_eq!((coverage.past, coverage.at_edge, coverage.can_be_silent), (1, 1, 1));
        let c = &coverage.operands[2];
        assert_eq!((c.past_elements, c.past_bytes, c.at_edge), ([1, 0], [1, 1], 1));
        assert_eq!(coverage.operands[3].present, 0);
        assert!(coverage.to_string().contains("directed 1"));
    }
}
