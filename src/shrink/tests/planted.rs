use super::super::order::Key;
use super::super::{Options, ShrinkEvent, Shrunk, Strategy, shrink};
use super::oracle::{Oracle, PASS, fault};
use super::rules::{Call, KINDS, Rule, draw};
use super::starts::{least, ugly};
use crate::device::Access;
use crate::exec::{Place, Signature, Verdict};
use crate::problem::{Case, Placement, Problem, Value};
use crate::target::sim::testing::modelled_gemm;
use std::collections::HashMap;

/// Starts per kind; a build without optimisation takes a part of them.
const STARTS: u64 = if cfg!(debug_assertions) { 20 } else { 100 };

/// The end of a shrink, and how many processes its descents ended.
fn run(problem: &Problem, rule: &Rule, start: &Case, options: &Options) -> (Shrunk, u64) {
    let mut oracle = Oracle::new(|case: &Case, _| rule.verdict(&Call::of(case)));
    let (mut shrinking, mut ended) = (false, 0);
    let mut on_event = |event: ShrinkEvent<'_>| match event {
        ShrinkEvent::Phase(name) => shrinking = name == "shrink",
        ShrinkEvent::Probed { observation, .. } => {
            ended += u64::from(shrinking && observation.verdict.ends_worker());
        }
        ShrinkEvent::Accepted(_) | ShrinkEvent::Slow { .. } => {}
    };
    let shrunk = shrink(problem, start, None, &mut oracle, options, &mut on_event).unwrap();
    assert_eq!(shrunk.stopped, None);
    (shrunk, ended)
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
            let same =
                Signature::of(&rule.verdict(&Call::of(&case))).is_some_and(|s| s.is_located() && s == shrunk.signature);
            if same {
                return Err(format!("{} = {v} still fails", p.name));
            }
        }
    }
    Ok(())
}

/// Of one kind: starts whose result is the least; passing probes; processes that the descents ended.
fn campaign(kind: &str, starts: u64, strategy: Strategy) -> (u64, u64, u64) {
    let problem = modelled_gemm();
    let (mut reached, mut passed, mut faulted, mut all) = (0, 0, 0, 0);
    let mut known: HashMap<(u64, Signature), Option<Key>> = HashMap::new();
    for seed in 0..starts {
        let rule = draw(kind, seed / 10);
        let start = ugly(&problem, &rule, seed);
        let (shrunk, ended) = run(&problem, &rule, &start, &Options { seed, strategy, ..Options::default() });
        passed += shrunk.probes.passed;
        faulted += ended;
        all += shrunk.probes.faulted;
        let verdict: Verdict = rule.verdict(&Call::of(&shrunk.minimal));
        assert!(Signature::of(&verdict).is_some_and(|s| s.matches(&shrunk.signature)), "{kind} {seed}");
        if strategy == Strategy::PlainBisection {
            continue;
        }
        if let Err(why) = is_one_minimal(&problem, &rule, &shrunk) {
            panic!("{kind} {seed} {rule:?}: {}: {why}", problem.short(&shrunk.minimal.params));
        }
        let least = known
            .entry((seed / 10, shrunk.signature.clone()))
            .or_insert_with(|| least(&problem, &rule, &shrunk.signature))
            .clone()
            .expect("the enumeration covers every rule");
        if Key::of(&problem, &shrunk.minimal.params) <= least {
            reached += 1;
        } else {
            println!(
                "{kind} {seed} {rule:?}: from {} to {}, least {}",
                problem.short(&start.params),
                problem.short(&shrunk.minimal.params),
                problem.short(&least.values)
            );
        }
    }
    if strategy == Strategy::HintFirst {
        println!("{kind}: the least case from {reached} of {starts} starts");
    }
    println!("{kind} {strategy:?}: {passed} passed, {faulted} processes ended, {all} with confirmation");
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

/// As a kernel for one column, which takes four elements at a time: most cases beyond its line pass.
#[test]
fn the_line_of_a_kernel_that_few_shapes_take_is_found_without_a_bisection() {
    let problem = modelled_gemm();
    let get = |case: &Case, name: &str| i128::from(case.params[problem.param(name).unwrap()]);
    let named = [("m", 4), ("n", 1), ("k", 214), ("lda", 1_704_110_550), ("ldb", 214), ("ldc", 30)];
    let named = named.iter().map(|(n, v)| ((*n).to_owned(), Value::Int(*v))).collect();
    let start =
        Case { params: problem.complete(&named).unwrap(), knobs: Default::default(), placement: Placement::END };
    let mut oracle = Oracle::new(|case: &Case, _| {
        let (m, n, k, lda) = (get(case, "m"), get(case, "n"), get(case, "k"), get(case, "lda"));
        let taken = get(case, "transA") == 0 && n == 1 && m >= 2 && k % 4 != 0;
        if taken && (k - 1) * lda >= 1 << 31 { fault("A", Access::Read, Place::Far) } else { PASS }
    });
    // That of an H200: a pass is cheap enough for thousands of them.
    oracle.ratio = 400.0;
    let shrunk = shrink(&problem, &start, None, &mut oracle, &Options::default(), &mut |_| {}).unwrap();
    let least: i128 = (get(&shrunk.minimal, "k") - 1) * get(&shrunk.minimal, "lda");
    assert_eq!((get(&shrunk.minimal, "m"), get(&shrunk.minimal, "n"), least), (2, 1, 1 << 31));
    assert!(shrunk.probes.passed < 600, "{:?}", shrunk.probes);
}
