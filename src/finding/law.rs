//! On which side of a finding's line does a shape lie?
//!
//! Until somebody asks which expression is to blame, a finding knows its certified pairs, and no more is claimed than they
//! say. A shape is comparable if, for every parameter that means something in it or in the minimal case,
//! - an integer has a certified pair, is listed as irrelevant, or has the minimal case's value; or it is a stride that has
//!   the least value its sizes leave, in both;
//! - a choice has the minimal case's value, or one of which the finding says that it fails in the same way.
//!
//! A comparable shape is *past* the line if every parameter with a pair is at or past its first bad value, seen from its
//! last good one, and *before* it if one is at or before its last good value and none is past its first bad one. With one
//! parameter before and another past, or beyond a place from which the finding saw it pass again, nobody can say.

use super::facts::Facts;
use super::known::{certified_pair, fails_alike, is_least};
use crate::problem::{Assignment, Case, Knobs, Placement, Problem, Role};

/// Where a shape lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    Past,
    Before,
    /// Why no pair of the finding decides it.
    CannotSay(String),
}

impl Standing {
    pub fn word(&self) -> &'static str {
        match self {
            Standing::Past => "past",
            Standing::Before => "before",
            Standing::CannotSay(_) => "cannot-say",
        }
    }
}

/// A value seen from a pair of one parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Good,
    Between,
    FirstBad,
    Beyond,
}

/// Compares a shape with a finding. Knobs and placement count where the shape names them.
pub fn standing(facts: &Facts, params: &Assignment, knobs: Option<&Knobs>, placement: Option<Placement>) -> Standing {
    let minimal = &facts.minimal;
    if knobs.is_some_and(|k| *k != minimal.knobs) {
        return Standing::CannotSay("its knobs are not those of the finding".to_owned());
    }
    if placement.is_some_and(|p| p != minimal.placement) {
        return Standing::CannotSay(format!("it is placed otherwise than the finding ({})", minimal.placement));
    }
    if is_failing_case(facts, params) {
        return Standing::Past;
    }
    let mut sides = vec![];
    for param in 0..facts.problem.params.len() {
        match compared(facts, params, param) {
            Ok(side) => sides.extend(side.map(|side| (param, side))),
            Err(why) => return Standing::CannotSay(why),
        }
    }
    decide(facts, params, &sides)
}

/// The minimal case, the original one, or the far witness.
fn is_failing_case(facts: &Facts, params: &Assignment) -> bool {
    let original = Case { params: params.clone(), ..facts.minimal.clone() } == facts.original;
    original || *params == facts.minimal.params || facts.far.as_ref().is_some_and(|far| far.params == *params)
}

/// The side that a parameter lies on, where the finding has a pair for it; or why the shape cannot be compared.
fn compared(facts: &Facts, params: &Assignment, param: usize) -> Result<Option<Side>, String> {
    let (problem, minimal) = (&facts.problem, &facts.minimal.params);
    let (value, filed) = (params[param], minimal[param]);
    let p = &problem.params[param];
    if !problem.is_active(param, &params.0) && !problem.is_active(param, &minimal.0) {
        return Ok(None);
    }
    if p.is_choice() {
        if value == filed || fails_alike(facts, param, value) {
            return Ok(None);
        }
        return Err(format!("{} is {}, and the finding knows {}", p.name, p.show(value), p.show(filed)));
    }
    if let Some(pair) = certified_pair(facts, param) {
        return Ok(Some(side(pair, value)));
    }
    let follows = |values| p.role == Role::Stride && is_least(problem, values, param);
    let irrelevant = facts.irrelevant.iter().any(|(i, _)| *i == param);
    if value == filed || irrelevant || (follows(params) && follows(minimal)) {
        return Ok(None);
    }
    Err(format!("{} is {value}, and the finding knows {filed} only", p.name))
}

fn side((good, bad): (i64, i64), value: i64) -> Side {
    let (value, good, bad) = if bad > good { (value, good, bad) } else { (-value, -good, -bad) };
    match value {
        v if v > bad => Side::Beyond,
        v if v == bad => Side::FirstBad,
        v if v <= good => Side::Good,
        _ => Side::Between,
    }
}

fn decide(facts: &Facts, params: &Assignment, sides: &[(usize, Side)]) -> Standing {
    let problem = &facts.problem;
    let find = |side: Side| sides.iter().find(|s| s.1 == side).map(|s| problem.params[s.0].name.as_str());
    if sides.is_empty() {
        return Standing::CannotSay("the finding has no certified pair".to_owned());
    }
    if let Some(name) = find(Side::Between) {
        return Standing::CannotSay(format!("{name} lies between last good and first bad, where nothing could be run"));
    }
    match (find(Side::Good), find(Side::Beyond)) {
        (Some(before), Some(past)) => {
            Standing::CannotSay(format!("{before} lies before its line, {past} past its own"))
        }
        (Some(_), None) => Standing::Before,
        (None, _) => match facts.windows.iter().find(|w| passes_again(problem, w, params)) {
            Some(window) => Standing::CannotSay(format!("the finding says: {window}")),
            None => Standing::Past,
        },
    }
}

/// Whether a sentence of the finding about values that pass beyond the line is about a value such as this shape's:
/// `not every larger n fails: n=4 passes, ...`, in older files `n passes again from 4, ...`.
fn passes_again(problem: &Problem, window: &str, params: &Assignment) -> bool {
    let now = window.strip_prefix("not every larger ").and_then(|w| w.split_once(" fails: ")?.1.split_once(" passes"));
    let pair = match now {
        Some((pair, _)) => pair.split_once('='),
        None => window.split_once(" passes again from "),
    };
    let Some((name, rest)) = pair else { return false };
    let Some(param) = problem.param(name) else { return false };
    let digits = rest.split(',').next().unwrap_or_default().trim();
    digits.parse::<i64>().is_ok_and(|from| params[param] >= from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::facts::{Certified, Tally, Witness};
    use crate::finding::testing::{atlas, values};
    use crate::problem::Value;

    const RUNS: Tally = Tally { runs: 3, failed: 3 };

    fn pair(facts: &mut Facts, name: &str, good: i64, bad: i64) {
        let param = facts.problem.param(name).unwrap();
        let good = Some((good, Tally { failed: 0, ..RUNS }));
        facts.witnesses.push(Witness { param, good, bad: (bad, RUNS), certified: Certified::Yes { steps: 1 } });
    }

    /// `past`, `before`, or why nobody can say; n has a pair too, at 4 and 5.
    fn says(change: impl FnOnce(&mut Facts), text: &str) -> String {
        let mut facts = atlas();
        pair(&mut facts, "n", 4, 5);
        change(&mut facts);
        let params = values(&facts.problem, text);
        match standing(&facts, &params, None, None) {
            Standing::CannotSay(why) => why,
            other => other.word().to_owned(),
        }
    }

    #[test]
    fn at_and_past_every_first_bad_value_is_past() {
        for text in [
            "m=1 n=5 k=1 ldb=536870912",
            "m=1 n=6 k=1 ldb=536870912",
            "m=1 n=5 k=9 ldb=2147483647",
            "m=1 n=5 k=1 ldb=536870912 transA=T",
            "m=1 n=5 k=7 ldb=900000000",
        ] {
            assert_eq!(says(|_| {}, text), "past", "{text}");
        }
    }

    #[test]
    fn one_parameter_before_and_none_past_is_before() {
        for text in ["m=1 n=5 k=1 ldb=536870911", "m=1 n=4 k=1 ldb=536870912", "m=1 n=2 k=1 ldb=7"] {
            assert_eq!(says(|_| {}, text), "before", "{text}");
        }
    }

    #[test]
    fn what_no_pair_covers_nobody_can_say() {
        let open = |text| says(|_| {}, text);
        assert_eq!(open("m=1 n=3 k=1 ldb=1073741824"), "n lies before its line, ldb past its own");
        assert_eq!(open("m=2 n=5 k=1 ldb=536870912"), "m is 2, and the finding knows 1 only");
        assert_eq!(open("m=1 n=5 k=1 ldb=536870912 transB=T"), "transB is T, and the finding knows N");
        assert_eq!(open("m=1 n=5 k=1 ldb=536870912 dtype=f64"), "dtype is f64, and the finding knows f32");
        let none = says(|f| f.witnesses.clear(), "m=1 n=5 k=2 ldb=536870912");
        assert_eq!(none, "the finding has no certified pair");
        let apart = says(|f| f.witnesses[0].good = Some((536_870_904, RUNS)), "m=1 n=5 k=1 ldb=536870910");
        assert!(apart.contains("between last good and first bad"), "{apart}");
    }

    #[test]
    fn beyond_a_place_where_it_passes_again_nobody_can_say() {
        for text in [
            "n passes again from 8, fails again at 12",
            "not every larger n fails: n=8 passes, n=12 fails again; what lies between these values was not all run",
            "not every larger n fails: n=8 passes; what lies between these values was not all run",
        ] {
            let window = |f: &mut Facts| f.windows.push(text.into());
            assert_eq!(says(window, "m=1 n=7 k=1 ldb=536870912"), "past", "{text}");
            assert_eq!(says(window, "m=1 n=8 k=1 ldb=536870912"), format!("the finding says: {text}"));
            assert_eq!(says(window, "m=1 n=4 k=1 ldb=536870912"), "before", "{text}");
        }
    }

    #[test]
    fn knobs_and_placement_count_where_they_are_named() {
        let facts = atlas();
        let params = values(&facts.problem, "m=1 n=5 k=1 ldb=536870913");
        let knobs = Knobs::from([("threads".to_owned(), Value::Int(2))]);
        let own = standing(&facts, &params, Some(&facts.minimal.knobs), Some(facts.minimal.placement));
        assert_eq!(own, Standing::Past);
        assert!(matches!(standing(&facts, &params, Some(&knobs), None), Standing::CannotSay(_)));
        assert!(matches!(standing(&facts, &params, None, Some(Placement::START)), Standing::CannotSay(_)));
    }
}
