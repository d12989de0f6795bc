//! Which failures are the one that is being shrunk.

use super::observe::Bad;
use crate::exec::{Family, Place, Signature, Verdict};
use crate::problem::Assignment;

/// The signature that is followed, and the last case known to fail in exactly that way.
///
/// Parts that the first failure did not know are filled in by the first accepted case that knows them, and from then on
/// hold for every later one; so what the final case says is compared with the first that could say it. A failure
/// without a place (wrong, unwritten) tells less than a fault and could be another one: next to a known place it is the
/// same failure only on a one-parameter line with a case that has the place.
///
/// A wrapped offset that lands within 64 KiB of its operand, or between its rows, looks like one that is a little off, and
/// shrinks to the line where it leaves these 64 KiB. On such a line, the same instruction that reaches the same operand
/// from near and then from far away is one failure, a far one. The other way round it may be two.
#[derive(Debug, Clone, PartialEq)]
pub struct Anchor {
    pub signature: Signature,
    /// The last accepted case whose failure said where, or the start.
    home: Assignment,
    /// The instruction that failed there, where it is known.
    code: Option<String>,
}

impl Anchor {
    pub fn new(signature: Signature, start: Assignment) -> Anchor {
        Anchor { signature, home: start, code: None }
    }

    /// Whether a failure of `case` is a failure of the same kind.
    pub fn holds(&self, case: &Assignment, signature: &Signature) -> bool {
        if !signature.matches(&self.signature) {
            return false;
        }
        if signature.family != Family::Memory || signature.is_located() == self.signature.is_located() {
            return true;
        }
        self.is_on_a_line(case)
    }

    fn is_on_a_line(&self, case: &Assignment) -> bool {
        case.0.iter().zip(&self.home.0).filter(|(a, b)| a != b).count() <= 1
    }

    /// Whether this failure of `case` is the one followed, seen from far away for the first time.
    pub fn leads_away(&self, case: &Assignment, bad: &Bad) -> bool {
        let near = matches!(self.signature.place, Some(Place::BeforeStart | Place::PastEnd | Place::Gap));
        let (theirs, mine) = (&bad.signature, &self.signature);
        near && theirs.place == Some(Place::Far)
            && (theirs.family, &theirs.operand, theirs.access) == (mine.family, &mine.operand, mine.access)
            && self.code.is_some()
            && code(&bad.verdict) == self.code.as_deref()
            && self.is_on_a_line(case)
    }

    /// Takes note of an accepted case.
    pub fn follow(&mut self, case: &Assignment, bad: &Bad) {
        let signature = &bad.signature;
        if self.signature.is_located() && !signature.is_located() {
            return;
        }
        if self.leads_away(case, bad) {
            self.signature.place = Some(Place::Far);
        }
        self.home = case.clone();
        self.code = code(&bad.verdict).map(str::to_owned);
        let mine = &mut self.signature;
        mine.operand = mine.operand.take().or_else(|| signature.operand.clone());
        mine.access = mine.access.or(signature.access);
        mine.place = mine.place.or(signature.place);
    }

    /// `params` with the one parameter in which the current case differs from the one that said where, as it is there.
    pub fn beside(&self, current: &Assignment, params: &Assignment) -> Option<Assignment> {
        let mut differ = (0..current.0.len()).filter(|i| current[*i] != self.home[*i]);
        let (Some(moved), None) = (differ.next().filter(|_| self.signature.is_located()), differ.next()) else {
            return None;
        };
        let mut sibling = params.clone();
        sibling[moved] = self.home[moved];
        Some(sibling)
    }

    /// The search returns to an accepted case; its line is the one that failures without a place have to lie on.
    pub fn return_to(&mut self, case: &Assignment) {
        self.home = case.clone();
    }
}

fn code(verdict: &Verdict) -> Option<&str> {
    match verdict {
        Verdict::Fault(fault) => fault.code.as_deref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::oracle;
    use super::*;
    use crate::device::Access;

    fn fault(operand: &str) -> Signature {
        Signature {
            operand: Some(operand.into()),
            access: Some(Access::Read),
            place: Some(Place::Far),
            family: Family::Memory,
        }
    }

    fn seen(signature: Signature) -> Bad {
        Bad { signature, verdict: oracle::PASS, runs: 1 }
    }

    /// A read of B by an instruction.
    fn read_by(code: &str, place: Place) -> Bad {
        let Verdict::Fault(fault) = oracle::fault("B", Access::Read, place) else { unreachable!() };
        let verdict = Verdict::Fault(crate::exec::Fault { code: Some(code.into()), ..fault });
        Bad { signature: Signature::of(&verdict).unwrap(), verdict, runs: 1 }
    }

    fn wrong() -> Signature {
        Signature { operand: None, access: None, place: None, family: Family::Memory }
    }

    fn case(values: &[i64]) -> Assignment {
        Assignment(values.to_vec())
    }

    #[test]
    fn a_wrong_result_joins_a_fault_only_on_a_one_parameter_line() {
        let anchor = Anchor::new(fault("B"), case(&[4, 4, 9]));
        assert!(anchor.holds(&case(&[4, 4, 8]), &wrong()));
        assert!(!anchor.holds(&case(&[4, 3, 8]), &wrong()));
        assert!(anchor.holds(&case(&[1, 1, 8]), &fault("B")));
        assert!(!anchor.holds(&case(&[4, 4, 8]), &fault("C")));
    }

    #[test]
    fn steps_between_wrong_results_do_not_lead_away_from_the_last_fault() {
        let mut anchor = Anchor::new(fault("B"), case(&[4, 4]));
        anchor.follow(&case(&[4, 2]), &seen(wrong()));
        assert!(!anchor.holds(&case(&[2, 2]), &wrong()), "two parameters away from the last case with a place");
        anchor.follow(&case(&[4, 1]), &seen(fault("B")));
        assert!(anchor.holds(&case(&[2, 1]), &wrong()));
    }

    #[test]
    fn what_the_first_failure_did_not_know_is_filled_in_once() {
        let mut anchor = Anchor::new(wrong(), case(&[4, 4]));
        assert!(anchor.holds(&case(&[1, 1]), &wrong()));
        assert!(!anchor.holds(&case(&[1, 1]), &fault("A")), "a place counts only on a one-parameter line");
        anchor.follow(&case(&[4, 2]), &seen(fault("A")));
        assert!(!anchor.holds(&case(&[4, 1]), &fault("B")));
        assert!(anchor.holds(&case(&[1, 1]), &fault("A")));
    }

    #[test]
    fn a_sibling_has_the_parameter_that_shows_the_place() {
        let mut anchor = Anchor::new(fault("B"), case(&[4, 4, 9]));
        anchor.follow(&case(&[4, 4, 8]), &seen(wrong()));
        assert_eq!(anchor.beside(&case(&[4, 4, 8]), &case(&[2, 4, 8])), Some(case(&[2, 4, 9])));
        assert_eq!(anchor.beside(&case(&[4, 4, 9]), &case(&[2, 4, 9])), None, "the current case shows it itself");
        assert_eq!(Anchor::new(wrong(), case(&[4, 9])).beside(&case(&[4, 8]), &case(&[2, 8])), None);
    }

    #[test]
    fn another_family_is_another_failure() {
        let hang = Signature { family: Family::Hang, ..wrong() };
        assert!(!Anchor::new(wrong(), case(&[1])).holds(&case(&[1]), &hang));
    }

    #[test]
    fn an_instruction_that_reaches_an_operand_from_near_and_then_from_afar_is_one_failure_and_not_the_other_way_round()
    {
        let near = read_by("lib.so+0x10", Place::BeforeStart);
        let mut anchor = Anchor::new(near.signature.clone(), case(&[4, 9]));
        anchor.follow(&case(&[4, 9]), &near);
        let far = read_by("lib.so+0x10", Place::Far);
        assert!(anchor.leads_away(&case(&[4, 8]), &far));
        assert!(!anchor.leads_away(&case(&[3, 8]), &far), "two parameters away");
        assert!(!anchor.leads_away(&case(&[4, 8]), &read_by("lib.so+0x20", Place::Far)), "another instruction");
        assert!(!anchor.leads_away(&case(&[4, 8]), &read_by("lib.so+0x10", Place::Gap)), "near as well");
        anchor.follow(&case(&[4, 8]), &far);
        assert_eq!(anchor.signature.place, Some(Place::Far));
        assert!(!anchor.leads_away(&case(&[4, 7]), &near) && !anchor.holds(&case(&[4, 7]), &near.signature));
    }
}
