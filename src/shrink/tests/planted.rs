use super::super::order::Key;
use super::super::{Options, Shrunk, Strategy, shrink};
use super::oracle::Oracle;
use super::rules::{Call, KINDS, Rule, draw};
use super::starts::{least, ugly};
use crate::exec::{Signature, Verdict};
use crate::problem::{Builtin, Case, Problem};

const STARTS: u64 = 100;

fn run(problem: &Problem, rule: &Rule, start: &Case, options: &Options) -> Shrunk {
    let mut oracle = Oracle::new(|case: &Case, _| rule.verdict(&Call::of(problem, case)));
    let shrunk = shrink(problem, start, None, &mut oracle, options, &mut |_| {}).unwrap();
    assert_eq!(shrunk.stopped, None);
    shrunk
}

/// Single steps, jumps to the least value and plainer choices, others held: none may fail in the same way.
fn is_one_minimal(problem: &Problem, rule: &Rule, shrunk: &Shrunk) -> Result<(), String> {
    let minimal = &shrunk.minimal.params;
    for (i, p) in problem.params.iter().enumerate() {
        let lower = if p.is_choice() { (0..minimal[i]).collect() } else { vec![minimal[i] - 1, p.least()] };
        for v in lower {
            let mut values = minimal.clone();
            values[i] = v;
            if v >= minimal[i] || problem.check(&values).is_err() {
                continue;
            }
            let case = shrunk.minimal.with_params(values);
            let same = Signature::of(&rule.verdict(&Call::of(problem, &case)))
                .is_some_and(|s| s.is_located() && s == shrunk.signature);
            if same {
                return Err(format!("{} = {v} still fails", p.name));
            }
        }
    }
    Ok(())
}

/// Of one kind: starts whose result is the least; passing and ended probes.
fn campaign(kind: &str, starts: u64, strategy: Strategy) -> (u64, u64, u64) {
    let problem = Builtin::find("gemm").unwrap().problem();
    let (mut reached, mut passed, mut faulted) = (0, 0, 0);
    for seed in 0..starts {
        let rule = draw(kind, seed / 10);
        let start = ugly(&problem, &rule, seed);
        let shrunk = run(&problem, &rule, &start, &Options { seed, strategy, ..Options::default() });
        passed += shrunk.probes.passed;
        faulted += shrunk.probes.faulted;
        let verdict: Verdict = rule.verdict(&Call::of(&problem, &shrunk.minimal));
        assert!(Signature::of(&verdict).is_some_and(|s| s.matches(&shrunk.signature)), "{kind} {seed}");
        if strategy == Strategy::PlainBisection {
            continue;
        }
        if let Err(why) = is_one_minimal(&problem, &rule, &shrunk) {
            panic!("{kind} {seed} {rule:?}: {}: {why}", problem.short(&shrunk.minimal.params));
        }
        let least = least(&problem, &rule, &shrunk.signature);
        if least.as_ref().is_none_or(|l| Key::of(&problem, &shrunk.minimal.params) <= *l) {
            reached += 1;
        } else {
            println!(
                "{kind} {seed} {rule:?}: from {} to {}, least {}",
                problem.short(&start.params),
                problem.short(&shrunk.minimal.params),
                least.map_or_else(String::new, |l| problem.short(&l.values))
            );
        }
    }
    println!("{kind} {strategy:?}: least {reached} of {starts}, {passed} passed, {faulted} ended a process");
    (reached, passed, faulted)
}

fn the_least_case_is_reached(kind: &str) {
    assert!(KINDS.contains(&kind));
    let (reached, _, _) = campaign(kind, STARTS, Strategy::HintFirst);
    assert!(reached * 100 >= STARTS * 95, "{kind}: {reached} of {STARTS}");
}

macro_rules! kinds {
    ($($test:ident $kind:literal)*) => {
        $(#[test]
        fn $test() {
            the_least_case_is_reached($kind);
        })*
    };
}

kinds! {
    a_sum_narrowed_together_shrinks_to_its_least_case "sum"
    terms_narrowed_alone_shrink_to_their_least_case "term"
    byte_offsets_shrink_to_their_least_case "bytes"
    a_signed_wrap_that_lands_anywhere_shrinks_to_its_least_case "signed"
    an_unsigned_wrap_that_lands_anywhere_shrinks_to_its_least_case "unsigned"
    a_wrap_that_ends_again_shrinks_to_its_least_case "window"
    a_batch_stride_shrinks_to_its_least_case "batch"
    an_edge_tile_shrinks_to_its_least_case "edge"
    a_tail_of_k_shrinks_to_its_least_case "tail"
    a_tile_count_in_16_bits_shrinks_to_its_least_case "tiles"
    an_index_rounded_up_shrinks_to_its_least_case "rounded"
    a_product_outside_the_grammar_shrinks_to_its_least_case "elements"
    a_remainder_shrinks_to_its_least_case "remainder"
    square_shapes_shrink_to_their_least_case "square"
}

#[test]
fn hints_end_far_fewer_processes_than_plain_bisection_on_wraps() {
    for kind in ["sum", "term", "bytes", "window"] {
        let (_, _, hinted) = campaign(kind, 20, Strategy::HintFirst);
        let (_, _, plain) = campaign(kind, 20, Strategy::PlainBisection);
        assert!(hinted * 2 < plain, "{kind}: {hinted} against {plain}");
    }
}
