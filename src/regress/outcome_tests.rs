use super::*;
use proptest::prelude::*;

fn seen(same: u32, other: u32, passes: u32) -> Seen {
    let otherwise = (other > 0).then(|| "crash".to_owned());
    Seen { runs: same + other + passes, same, other, passes, otherwise, nothing: None }
}

fn fails() -> Seen {
    seen(3, 0, 0)
}

fn passes() -> Seen {
    seen(0, 0, 3)
}

fn differs() -> Seen {
    seen(0, 3, 0)
}

fn refused() -> Seen {
    Seen { runs: 1, nothing: Some("refused: no kernel".into()), ..Seen::default() }
}

fn pair(good: Seen, bad: Option<Seen>) -> PairSeen {
    PairSeen { param: 4, name: "ldb".into(), good, bad }
}

fn observed(minimal: Seen, pairs: Vec<PairSeen>, far: Option<Seen>, original: Option<Seen>) -> Observed {
    Observed { needed: 3, minimal, pairs, far, original, ..Observed::default() }
}

fn on_another_core() -> Vec<String> {
    vec!["the core type is Haswell, and SkylakeX in the file".into()]
}

#[test]
fn a_minimal_case_that_fails_between_its_neighbours_is_reproduced_wherever_it_ran() {
    let all = observed(fails(), vec![pair(passes(), None)], None, None);
    assert_eq!(conclude(&all, &[]), Outcome::Reproduced);
    assert_eq!(conclude(&all, &on_another_core()), Outcome::Reproduced);
    let rare = observed(seen(1, 0, 2), vec![pair(passes(), None)], None, None);
    assert_eq!(conclude(&rare, &[]), Outcome::Reproduced);
    let unsure = observed(fails(), vec![pair(refused(), None)], None, None);
    assert_eq!(conclude(&unsure, &[]), Outcome::Reproduced);
}

#[test]
fn a_line_moved_where_one_side_of_a_pair_or_a_far_case_says_so() {
    let moved = |o: Observed| conclude(&o, &[]);
    assert_eq!(moved(observed(fails(), vec![pair(fails(), None)], None, None)), Outcome::Moved(Lead::Good(4)));
    let ends_early = observed(fails(), vec![pair(passes(), Some(passes()))], None, None);
    assert_eq!(moved(ends_early), Outcome::Moved(Lead::Bad(4)));
    let up = observed(passes(), vec![pair(passes(), None)], Some(fails()), Some(fails()));
    assert_eq!(conclude(&up, &on_another_core()), Outcome::NotComparable(on_another_core().join("; ")));
    assert_eq!(moved(up), Outcome::Moved(Lead::Far));
    assert_eq!(moved(observed(passes(), vec![], None, Some(fails()))), Outcome::Moved(Lead::Original));
    let beats = observed(passes(), vec![pair(differs(), None)], None, Some(fails()));
    assert_eq!(moved(beats), Outcome::Moved(Lead::Original));
}

#[test]
fn a_case_that_fails_without_what_has_to_run_first_is_another_failure() {
    let after = |alone| Observed { alone: Some(alone), ..observed(fails(), vec![pair(passes(), None)], None, None) };
    assert_eq!(conclude(&after(passes()), &[]), Outcome::Reproduced);
    for alone in [fails(), differs(), seen(1, 0, 2)] {
        assert!(matches!(conclude(&after(alone), &[]), Outcome::Different(why) if why.contains("without the cases")));
    }
}

#[test]
fn fixed_takes_a_pass_of_every_case_in_a_comparable_environment() {
    let all = || observed(passes(), vec![pair(passes(), Some(passes()))], Some(passes()), Some(passes()));
    assert_eq!(conclude(&all(), &[]), Outcome::Fixed);
    assert_eq!(conclude(&all(), &on_another_core()), Outcome::NotComparable(on_another_core().join("; ")));
    for silent in [refused(), seen(0, 0, 2)] {
        for spoil in 0..3 {
            let mut some = all();
            match spoil {
                0 => some.far = Some(silent.clone()),
                1 => some.original = Some(silent.clone()),
                _ => some.pairs[0].bad = Some(silent.clone()),
            }
            let outcome = conclude(&some, &[]);
            assert!(matches!(&outcome, Outcome::Skipped(why) if why.contains("cannot be called fixed")), "{outcome:?}");
        }
    }
}

#[test]
fn a_failure_of_another_kind_is_different_even_in_another_environment() {
    let minimal = observed(differs(), vec![], None, None);
    assert_eq!(conclude(&minimal, &on_another_core()), Outcome::Different("crash".into()));
    let neighbour = observed(fails(), vec![pair(differs(), None)], None, None);
    assert_eq!(conclude(&neighbour, &[]), Outcome::Different("the last good value of ldb: crash".into()));
    let far = observed(passes(), vec![pair(passes(), None)], Some(differs()), Some(refused()));
    assert_eq!(conclude(&far, &[]), Outcome::Different("the far witness: crash".into()));
}

#[test]
fn a_case_that_was_not_run_is_skipped_with_the_reason() {
    let all = observed(refused(), vec![], None, None);
    assert_eq!(conclude(&all, &[]), Outcome::Skipped("refused: no kernel".into()));
    let few = Seen { passes: 2, runs: 2, ..Seen::default() };
    assert_eq!(few.says(9), Says::Nothing("passed 2 times, and it takes 9".into()));
    assert_eq!(Seen::default().says(0), Says::Nothing("passed 0 times, and it takes 0".into()));
}

#[test]
fn a_fixed_finding_that_fails_again_is_back() {
    for outcome in [Outcome::Reproduced, Outcome::Moved(Lead::Far)] {
        assert_eq!(Word::of(&outcome, Status::Fixed), Word::Back);
    }
    assert_eq!(Word::of(&Outcome::Moved(Lead::Far), Status::Open), Word::Moved);
    assert_eq!(Word::of(&Outcome::Fixed, Status::Fixed), Word::Fixed);
    let failures = [Word::Back, Word::Moved, Word::Different];
    let all = [Word::Reproduced, Word::Fixed, Word::NotComparable, Word::Skipped].into_iter().chain(failures);
    for word in all {
        assert_eq!(word.is_failure(), failures.contains(&word), "{}", word.text());
        assert!(!(word.is_failure() && word.is_as_filed()));
    }
}

fn any_seen() -> impl Strategy<Value = Seen> {
    (0u32..3, 0u32..3, 0u32..5, any::<bool>()).prop_map(|(same, other, passes, silent)| Seen {
        nothing: silent.then(|| "skipped".to_owned()),
        ..seen(same, other, passes)
    })
}

proptest! {
    #[test]
    fn fixed_is_said_only_if_nothing_failed_and_everything_was_run(
        minimal in any_seen(), good in any_seen(), bad in prop::option::of(any_seen()),
        far in prop::option::of(any_seen()), original in prop::option::of(any_seen()), comparable in any::<bool>(),
    ) {
        let all = observed(minimal.clone(), vec![pair(good.clone(), bad.clone())], far.clone(), original.clone());
        let differences = if comparable { vec![] } else { on_another_core() };
        let outcome = conclude(&all, &differences);
        let cases: Vec<Seen> = [Some(minimal.clone()), Some(good), bad, far, original].into_iter().flatten().collect();
        let clean = cases.iter().all(|s| s.same + s.other == 0 && s.nothing.is_none() && s.passes >= 3);
        prop_assert_eq!(outcome == Outcome::Fixed, clean && comparable);
        let wrongly = !comparable && matches!(outcome, Outcome::Fixed | Outcome::Moved(_));
        prop_assert!(!wrongly);
        prop_assert!(outcome != Outcome::Reproduced || minimal.same > 0);
        prop_assert!(!matches!(outcome, Outcome::Moved(_)) || cases.iter().any(|s| s.same > 0));
    }
}
