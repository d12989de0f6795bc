use super::super::{ChoiceEffect, Direction, NotShrunk, Options, ShrinkEvent, Shrunk, WitnessStatus, shrink};
use super::boundaries::{narrowed, run, start, witness};
use super::oracle::{Oracle, PASS, fault, wrong};
use super::rules::{Call, Rule};
use crate::device::Access;
use crate::exec::{Freshness, Place, ProbeError, Sample, Signature, Verdict, WrongKind};
use crate::problem::{Case, Placement, Problem};
use crate::target::sim::testing::modelled_gemm;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::cell::Cell;
use std::rc::Rc;

const SUM_OF_B: Rule = Rule::Wrap { operand: 1, alone: false, bytes: false, bits: 31 };

fn gemm() -> std::sync::Arc<Problem> {
    modelled_gemm()
}

fn ugly(problem: &Problem) -> Case {
    start(problem, &[("m", "33"), ("n", "70"), ("k", "19"), ("ldb", "90000001"), ("beta", "-1"), ("transA", "T")])
}

fn b_faults() -> Verdict {
    fault("B", Access::Read, Place::Far)
}

#[test]
fn a_flaky_failure_gets_its_rate_and_its_boundary() {
    let problem = narrowed("gemm", &[("m", "1"), ("k", "1"), ("n", "5")], &[]);
    let start = start(&problem, &[("ldb", "3000000000")]);
    let ldb = problem.param("ldb").unwrap();
    let (mut held, mut exact) = (0, 0);
    for seed in 0..20 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let rate = [0.3, 0.5, 0.8, 0.9][seed as usize % 4];
        let mut oracle = Oracle::new(|case: &Case, _| {
            let bad = SUM_OF_B.verdict(&Call::of(case));
            if rng.random_bool(rate) { bad } else { PASS }
        });
        let options = Options { seed, ..Options::default() };
        let Ok(shrunk) = shrink(&problem, &start, None, &mut oracle, &options, &mut |_| {}) else { continue };
        assert!(shrunk.rate.width() <= 0.25, "{:?}", shrunk.rate);
        held += u32::from(shrunk.rate.low <= rate && rate <= shrunk.rate.high);
        exact += u32::from(shrunk.minimal.params[ldb] == 1 << 29);
    }
    assert!(held >= 17, "the interval held the rate in {held} of 20");
    assert!(exact >= 18, "{exact} of 20 ended at the boundary");
}

#[test]
fn a_search_that_is_stopped_keeps_the_best_so_far() {
    let problem = gemm();
    let start = ugly(&problem);
    let mut last = None;
    for budget in [0, 1, 2, 3, 5, 10, 20, 40, 60, 100_000] {
        let mut oracle = Oracle::new(|case: &Case, _| SUM_OF_B.verdict(&Call::of(case)));
        oracle.budget = budget;
        match shrink(&problem, &start, None, &mut oracle, &Options::default(), &mut |_| {}) {
            Err(error) => {
                assert_eq!((budget, error), (0, NotShrunk::Probe(ProbeError::OutOfTime)));
            }
            Ok(shrunk) => {
                assert!(SUM_OF_B.verdict(&Call::of(&shrunk.minimal)).is_bad());
                assert!(shrunk.verdict.is_bad());
                let key = super::super::Key::of(&problem, &shrunk.minimal.params);
                assert!(last.as_ref().is_none_or(|l| key <= *l), "more probes never give a larger case");
                last = Some(key);
                assert_eq!(shrunk.stopped.is_none(), budget == 100_000);
            }
        }
    }
}

#[test]
fn another_failure_on_the_way_is_kept_as_a_slip() {
    let problem = gemm();
    let shrunk = run(&problem, &ugly(&problem), |case| {
        let call = Call::of(case);
        if call.m < 5 && call.n > 1 { fault("C", Access::Write, Place::PastEnd) } else { SUM_OF_B.verdict(&call) }
    });
    assert_eq!(shrunk.signature, Signature::of(&b_faults()).unwrap());
    assert_eq!(shrunk.slips.len(), 1);
    assert_eq!(shrunk.slips[0].signature.operand.as_deref(), Some("C"));
    // Not certified below m = 5: the neighbour fails, but in another way.
    assert_eq!(shrunk.minimal.params[problem.param("m").unwrap()], 5);
    let WitnessStatus::NotCertified(why) = &witness(&shrunk, &problem, "m").status else { panic!() };
    assert_eq!(why, "4 fails in another way (fault: write of C, past the end)");
}

#[test]
fn a_case_that_only_fails_in_a_used_process_is_not_the_result() {
    let problem = narrowed("gemm", &[("m", "1"), ("k", "1")], &[]);
    let start = start(&problem, &[("n", "500")]);
    let mut oracle = Oracle::new(|case: &Case, freshness| {
        let least = if freshness == Freshness::Fresh { 40 } else { 7 };
        if Call::of(case).n >= least { b_faults() } else { PASS }
    });
    let shrunk = shrink(&problem, &start, None, &mut oracle, &Options::default(), &mut |_| {}).unwrap();
    assert_eq!(shrunk.minimal.params[problem.param("n").unwrap()], 40);
    assert_eq!(shrunk.confirmed.bad, shrunk.confirmed.runs);
}

fn pinned(refuse: impl Fn(i128) -> Option<Verdict>) -> (Problem, Shrunk) {
    let problem = narrowed("gemm", &[("m", "1"), ("k", "1")], &["lda == 1", "ldb == 1", "ldc == 1", "batch == 1"]);
    let start = start(&problem, &[("n", "500")]);
    let shrunk = run(&problem, &start, |case| {
        let n = Call::of(case).n;
        refuse(n).unwrap_or_else(|| if n >= 100 { b_faults() } else { PASS })
    });
    (problem, shrunk)
}

#[test]
fn a_neighbour_that_does_not_run_certifies_nothing() {
    let refused = || Some(Verdict::Refused { detail: "no kernel".into() });
    let (problem, shrunk) = pinned(|n| if (98..100).contains(&n) { refused() } else { None });
    let w = witness(&shrunk, &problem, "n");
    assert_eq!(w.status, WitnessStatus::Certified { direction: Direction::Down, steps: 3 });
    let (problem, shrunk) = pinned(|n| if (20..100).contains(&n) { refused() } else { None });
    let WitnessStatus::NotCertified(why) = &witness(&shrunk, &problem, "n").status else { panic!() };
    assert!(why.contains("no kernel"), "{why}");
}

#[test]
fn a_pass_that_skipped_the_extreme_offsets_certifies_nothing() {
    let sampled = Verdict::Pass { sample: Some(Sample { groups: 1, of: 9, extremes: false }) };
    let (problem, shrunk) = pinned(|n| if n < 100 { Some(sampled.clone()) } else { None });
    assert!(matches!(witness(&shrunk, &problem, "n").status, WitnessStatus::NotCertified(_)));
}

#[test]
fn what_does_not_matter_is_named_and_what_does_has_a_pair() {
    let problem = gemm();
    let shrunk = run(&problem, &ugly(&problem), |case| SUM_OF_B.verdict(&Call::of(case)));
    let name = |i: &usize| problem.params[*i].name.clone();
    let matters: Vec<String> = shrunk.witnesses.iter().map(|w| name(&w.param)).collect();
    assert_eq!(matters, ["n", "ldb"]);
    let irrelevant: Vec<String> = shrunk.irrelevant.iter().map(|(i, _)| name(i)).collect();
    for expected in ["m", "k", "lda", "ldc", "offA", "offC", "batch"] {
        assert!(irrelevant.iter().any(|n| n == expected), "{expected}");
    }
    let effect = |name: &str| {
        let param = problem.param(name).unwrap();
        shrunk.choices.iter().find(|c| c.param == param).unwrap().effect.clone()
    };
    assert_eq!((effect("transB"), effect("beta")), (ChoiceEffect::Passes, ChoiceEffect::Same));
    let (param, far) = shrunk.far.as_ref().unwrap();
    assert_eq!((name(param), far.case.params[*param]), ("ldb".into(), (1 << 31) + (1 << 30)));
}

#[test]
fn a_parameter_that_matters_upwards_only_has_its_pair_there() {
    let problem = narrowed("gemm", &[("m", "1")], &[]);
    let start = start(&problem, &[("n", "500"), ("k", "2")]);
    let shrunk = run(&problem, &start, |case| {
        let call = Call::of(case);
        if call.n >= 9 && call.k < 5 { b_faults() } else { PASS }
    });
    let k = problem.param("k").unwrap();
    let w = witness(&shrunk, &problem, "k");
    assert_eq!(w.status, WitnessStatus::Certified { direction: Direction::Up, steps: 1 });
    assert_eq!((w.first_bad.case.params[k], w.last_good.as_ref().unwrap().case.params[k]), (4, 5));
}

#[test]
fn a_failure_that_ends_again_is_reported_with_its_edge() {
    let problem = narrowed("gemm", &[("m", "1"), ("k", "1"), ("n", "2")], &[]);
    let start = start(&problem, &[("ldb", "2500000000")]);
    let shrunk = run(&problem, &start, |case| Rule::Window.verdict(&Call::of(case)));
    let ldb = problem.param("ldb").unwrap();
    assert_eq!(shrunk.minimal.params[ldb], 1 << 31);
    assert!(shrunk.islands.is_empty(), "the looks reach twice the boundary at most: {:?}", shrunk.islands);
    let shrunk = run(&problem, &start, |case| {
        let v = case.params[ldb];
        if (1 << 31..5 << 29).contains(&v) || v >= 15 << 28 { b_faults() } else { PASS }
    });
    let [island] = &shrunk.islands[..] else { panic!("{:?}", shrunk.islands) };
    assert_eq!((island.param, island.from), (ldb, 5 << 29));
    assert!(island.bad_again.is_none_or(|v| v >= 15 << 28));
}

#[test]
fn a_wrong_result_on_the_line_of_a_fault_is_its_continuation() {
    let problem = narrowed("gemm", &[("m", "1"), ("k", "1"), ("n", "2")], &[]);
    let start = start(&problem, &[("ldb", "4294967999")]);
    let shrunk = run(&problem, &start, |case| Rule::Narrowed { signed: false }.verdict(&Call::of(case)));
    let ldb = problem.param("ldb").unwrap();
    assert_eq!((shrunk.minimal.params[ldb], shrunk.verdict.word()), (1 << 32, "wrong"));
    assert_eq!(shrunk.signature.place, Some(Place::Gap));
}

#[test]
fn an_unknown_operand_is_filled_in_on_one_line_only() {
    let problem = narrowed("gemm", &[("m", "1"), ("k", "1")], &[]);
    let start = start(&problem, &[("n", "500")]);
    let shrunk = run(&problem, &start, |case| match Call::of(case).n {
        0..30 => PASS,
        30..200 => b_faults(),
        _ => wrong(WrongKind::Value),
    });
    assert_eq!(shrunk.signature, Signature::of(&b_faults()).unwrap());
    assert_eq!(shrunk.minimal.params[problem.param("n").unwrap()], 30);
}

#[test]
fn a_start_that_passes_or_is_no_case_is_refused() {
    let problem = gemm();
    let start = ugly(&problem);
    let mut oracle = Oracle::new(|_: &Case, _| PASS);
    let outcome = shrink(&problem, &start, None, &mut oracle, &Options::default(), &mut |_| {});
    assert_eq!(outcome.unwrap_err(), NotShrunk::DoesNotFail(20));
    let mut broken = start.clone();
    broken.params[problem.param("lda").unwrap()] = 0;
    let outcome = shrink(&problem, &broken, None, &mut oracle, &Options::default(), &mut |_| {});
    assert!(matches!(outcome, Err(NotShrunk::Invalid(_))));
    let mut oracle = Oracle::new(|_: &Case, _| b_faults());
    let other = Signature::of(&fault("A", Access::Read, Place::Far)).unwrap();
    let outcome = shrink(&problem, &start, Some(&other), &mut oracle, &Options::default(), &mut |_| {});
    assert!(matches!(outcome, Err(NotShrunk::AnotherSignature(_))));
}

/// A loop over K that never ends from 5000 on, and takes a second for 1000 before: the time limit is two seconds.
fn endless(limit: &Rc<Cell<u32>>) -> impl FnMut(&Case, Freshness) -> Verdict + use<> {
    let limit = Rc::clone(limit);
    move |case, _| {
        let seconds = match Call::of(case).k {
            k @ 0..5000 => k / 1000,
            _ => i128::MAX,
        };
        if seconds > 2 * i128::from(limit.get()) { Verdict::Hang { after_ms: 2000 } } else { PASS }
    }
}

#[test]
fn a_slow_case_is_not_taken_for_a_hang() {
    let problem = narrowed("gemm", &[("m", "1"), ("n", "1")], &[]);
    let start = start(&problem, &[("k", "80000"), ("lda", "7"), ("ldb", "80000")]);
    let limit = Rc::new(Cell::new(1));
    let mut oracle = Oracle { limit: Rc::clone(&limit), ..Oracle::new(endless(&limit)) };
    let mut restarts = 0;
    let shrunk = shrink(&problem, &start, None, &mut oracle, &Options::default(), &mut |event| {
        restarts += u32::from(matches!(event, ShrinkEvent::Slow { .. }));
    });
    let shrunk = shrunk.unwrap();
    assert_eq!((restarts, limit.get()), (1, 4));
    assert_eq!(shrunk.minimal.params[problem.param("k").unwrap()], 5000);
    assert!(shrunk.confirmed.bad >= 3 && shrunk.confirmed.passes == 0);
}

#[test]
fn a_start_that_is_slow_is_no_finding() {
    let problem = narrowed("gemm", &[("m", "1"), ("n", "1")], &[]);
    let start = start(&problem, &[("k", "4999")]);
    let limit = Rc::new(Cell::new(1));
    let mut oracle = Oracle { limit: Rc::clone(&limit), ..Oracle::new(endless(&limit)) };
    let outcome = shrink(&problem, &start, None, &mut oracle, &Options::default(), &mut |_| {});
    assert_eq!(outcome.unwrap_err(), NotShrunk::DoesNotFail(20));
}

/// From `end/256` with padding: fails in any placement that is flush to the end, whatever its alignment.
#[test]
fn the_plainest_placement_that_fails_alike_is_taken_unless_one_was_asked_for() {
    let problem = narrowed("gemm", &[("m", "1"), ("n", "1")], &[]);
    let (plain, padded) = (Placement::END, "end+512/256".parse::<Placement>().unwrap());
    let from = |placement| Case { placement, ..start(&problem, &[("k", "100")]) };
    let rule = |fails: fn(&Case) -> bool| {
        move |case: &Case, _| if fails(case) && Call::of(case).k >= 9 { b_faults() } else { PASS }
    };
    let placed = |from: &Case, fails: fn(&Case) -> bool, keep_placement: bool| {
        let mut oracle = Oracle::new(rule(fails));
        let options = Options { keep_placement, ..Options::default() };
        shrink(&problem, from, None, &mut oracle, &options, &mut |_| {}).unwrap().minimal.placement
    };
    assert_eq!(placed(&from(padded), |_| true, false), plain);
    assert_eq!(placed(&from(padded), |_| true, true), padded);
    assert_eq!(placed(&from(padded), |c| c.placement != Placement::END, false), Placement::START);
    assert_eq!(placed(&from(padded), |c| c.placement.align == 256, false), padded);
    assert_eq!(placed(&from(Placement::START), |c| c.placement == Placement::START, false), Placement::START);
}
