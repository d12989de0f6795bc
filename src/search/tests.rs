//! Properties of whole campaigns' worth of cases.

mod reach;

use super::novelty::Outcome;
use super::*;
use crate::exec::Verdict;
use crate::problem::builder::Builder;
use crate::problem::{Builtin, Case, Narrow, Problem, Role, Use};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A problem that is neither built in nor like them: a pitched stencil with a negative stride, a stepped parameter-free
/// choice, a stride without a bound and an offset.
fn stencil() -> Arc<Problem> {
    let mut b = Builder::new("stencil");
    let build = |b: &mut Builder| {
        b.choice("order", &["up", "down"], "direction of the rows")
            .integer("rows", Role::Size, 1, 1 << 20, "rows")
            .integer("width", Role::Size, 1, 1 << 20, "columns")
            .integer("planes", Role::Count, 1, 1 << 16, "planes")
            .integer("pitch", Role::Stride, 1, 1 << 33, "distance of rows")
            .integer("plane", Role::Stride, 0, 1 << 35, "distance of planes")
            .choice("dtype", &["u8", "f64"], "element type")
            .integer("skip", Role::Offset, 0, 1 << 33, "elements before the first");
        b.constraint("pitch >= width + 2")?.constraint("width * planes <= 2^24")?;
        b.operand(
            "src",
            Use::Read,
            &[("width + 2", "1"), ("rows", "if(order == 'up', pitch, -pitch)"), ("planes", "plane")],
        )?
        .with(|b, o| {
            o.offset = Some(b.expr("skip + if(order == 'up', 0, (rows - 1) * pitch)")?);
            Ok(())
        })?;
        b.operand("dst", Use::Write, &[("width", "1"), ("rows", "width"), ("planes", "rows * width")])?;
        Ok::<(), crate::problem::expr::ParseError>(())
    };
    build(&mut b).unwrap();
    Arc::new(b.finish())
}

fn problems() -> Vec<Arc<Problem>> {
    vec![Builtin::find("gemm").unwrap().problem(), ranked(), stencil()]
}

/// All-gather as a run limits it: `--ranks 16`.
fn ranked() -> Arc<Problem> {
    let limit = Narrow::Range { param: "ranks".into(), min: 1, max: 16 };
    Arc::new(Builtin::find("allgather").unwrap().problem().narrowed(&[limit]).unwrap())
}

fn seeds(problem: &Problem) -> Vec<Case> {
    let Some(whole) = Builtin::find(&problem.name).map(|b| b.problem()) else { return vec![] };
    let seeds = corpus::built_in(&problem.name).unwrap();
    seeds.iter().filter_map(|s| s.transfer(&whole, problem).unwrap()).collect()
}

fn generator(problem: &Arc<Problem>, seed: u64, options: Options) -> Generator {
    Generator::new(Arc::clone(problem), seed, options, seeds(problem)).unwrap()
}

/// A made-up target: everything passes but what is large.
fn outcome(problem: &Problem, number: u64, case: &Case) -> Outcome {
    let large = problem.views(&case.params).unwrap().iter().flatten().any(|v| v.highest(0) >= 1 << 31);
    let verdict = if large { Verdict::Crash { how: "x".into(), code: None } } else { Verdict::Pass { sample: None } };
    Outcome::new(number, case.clone(), &verdict, None)
}

/// Rounds with their results folded.
fn campaign(generator: &mut Generator, rounds: u64) -> Vec<Group> {
    let mut all = vec![];
    for round in 0..rounds {
        let groups = generator.round(round);
        let problem = Arc::clone(generator.problem());
        let cases = groups.iter().flat_map(|g| &g.cases);
        generator.fold(cases.enumerate().map(|(n, c)| outcome(&problem, n as u64, &c.case)).collect());
        all.extend(groups);
    }
    all
}

#[test]
fn the_same_seed_gives_the_same_groups_on_any_number_of_threads() {
    for problem in problems() {
        let run = |threads: usize, seed: u64| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| campaign(&mut generator(&problem, seed, Options::default()), 4))
        };
        let first = run(1, 42);
        assert_eq!(first, run(1, 42));
        assert_eq!(first, run(5, 42));
        assert_ne!(first, run(1, 43));
        let numbers: Vec<u64> = first.iter().map(|g| g.number).collect();
        assert_eq!(numbers, (0..4 * GROUPS).collect::<Vec<_>>());
    }
}

#[test]
fn the_order_of_results_does_not_matter_but_the_corpus_does() {
    let problem = Builtin::find("gemm").unwrap().problem();
    let mut forward = generator(&problem, 1, Options::default());
    let mut backward = generator(&problem, 1, Options::default());
    let cases: Vec<Case> = forward.round(0).into_iter().flat_map(|g| g.cases).map(|c| c.case).collect();
    let results: Vec<Outcome> = cases.iter().enumerate().map(|(n, c)| outcome(&problem, n as u64, c)).collect();
    forward.fold(results.clone());
    backward.fold(results.into_iter().rev().collect());
    assert!(forward.corpus_len() > seeds(&problem).len() + 10);
    assert_eq!(forward.round(1), backward.round(1));
    let bare = Generator::new(Arc::clone(&problem), 1, Options::default(), vec![]).unwrap();
    assert_ne!(bare.corpus_digest(), forward.corpus_digest());
    assert_ne!(bare.round(0), generator(&problem, 1, Options::default()).round(0));
}

#[test]
fn every_case_is_valid_within_the_caps_and_shares_its_group_s_comb() {
    for problem in problems() {
        for profile in [Profile::Strided, Profile::Packed] {
            let options = Options { profile, ..Options::default() };
            let limits = options.limits;
            let mut generator = generator(&problem, 7, options);
            let narrowed = Arc::clone(generator.problem());
            let tight = problem.narrowed(&problem.packed()).unwrap();
            let (mut count, mut groups) = (0, 0);
            for group in campaign(&mut generator, 40) {
                let first = &group.cases[0].case;
                assert!(group.cases.len() <= GROUP);
                let (mut strides, mut packed) = (true, true);
                for planned in &group.cases {
                    let case = &planned.case;
                    narrowed.check(&case.params).unwrap();
                    problem.check(&case.params).unwrap();
                    let views = problem.views(&case.params).unwrap();
                    assert!(limits.allow(&problem, &case.params, &views), "{}", problem.short(&case.params));
                    assert_eq!((case.placement, &case.knobs), (group.placement, &first.knobs));
                    for (i, _) in problem.params.iter().enumerate().filter(|(_, p)| p.role == Role::Stride) {
                        let active = problem.is_active(i, &case.params.0) && problem.is_active(i, &first.params.0);
                        strides &= !active || case.params[i] == first.params[i];
                    }
                    packed &= tight.check(&case.params).is_ok();
                }
                assert!(strides || packed, "{}: {:?}", problem.name, group);
                count += group.cases.len();
                groups += 1;
            }
            assert!(count > groups * 12, "{} {profile:?}: {count} cases in {groups} groups", problem.name);
        }
    }
}

#[test]
#[ignore = "long: 100,000 cases per problem and profile"]
fn a_hundred_thousand_cases_are_valid_and_within_the_caps() {
    for problem in problems() {
        for profile in [Profile::Strided, Profile::Packed] {
            let options = Options { profile, ..Options::default() };
            let limits = options.limits;
            let mut generator = generator(&problem, 11, options);
            let mut count = 0;
            let mut round = 0;
            while count < 100_000 {
                for planned in generator.round(round).iter().flat_map(|g| &g.cases) {
                    problem.check(&planned.case.params).unwrap();
                    let views = problem.views(&planned.case.params).unwrap();
                    assert!(limits.allow(&problem, &planned.case.params, &views));
                    count += 1;
                }
                generator.fold(vec![]);
                round += 1;
            }
        }
    }
}

#[test]
fn a_quarter_of_the_cases_is_past_a_32_bit_line_and_a_quarter_flush_at_an_edge() {
    for problem in problems() {
        let mut generator = generator(&problem, 3, Options::default());
        let mut coverage = Coverage::new(&problem, 4096);
        for group in campaign(&mut generator, 40) {
            for planned in &group.cases {
                coverage.record(&problem, planned, group.origin, "pass");
            }
        }
        println!("{}: {coverage}", problem.name);
        assert!(coverage.past * 4 >= coverage.ran, "{coverage}");
        assert!(coverage.at_edge * 4 >= coverage.ran, "{coverage}");
        assert!(coverage.can_be_silent * 4 <= coverage.ran, "{coverage}");
    }
}

#[test]
fn seed_cases_come_first_as_they_are_where_they_fit() {
    let problem = Builtin::find("gemm").unwrap().problem();
    let seeds = seeds(&problem);
    let groups = generator(&problem, 5, Options::default()).round(0);
    let mut whole = 0;
    for (i, (seed, group)) in seeds.iter().zip(&groups).enumerate() {
        let Origin::Seed { index, fitted } = group.origin else { panic!("{:?}", group.origin) };
        assert_eq!(index, i);
        assert_eq!(group.cases[0].case.params == seed.params, !fitted);
        whole += usize::from(!fitted);
    }
    // The two logged calls are 7e10 multiply-adds, the others below the default cap.
    assert_eq!((seeds.len(), whole), (6, 4));
    let sampled = SpanLimits { sampled: true, ..SpanLimits::default() };
    let groups = generator(&problem, 5, Options { limits: sampled, ..Options::default() }).round(0);
    assert!(seeds.iter().zip(&groups).all(|(s, g)| s.params == g.cases[0].case.params));
}

#[test]
fn packed_all_gathers_reach_the_line_where_a_target_runs_samples() {
    let whole = Builtin::find("allgather").unwrap().problem();
    let pins = [("ranks", 8), ("N", 8192)].map(|(p, v)| Narrow::Set { param: p.into(), value: v.into() });
    let problem = Arc::new(whole.narrowed(&pins).unwrap());
    let limits = SpanLimits { sampled: true, ..SpanLimits::default() };
    let options = Options { profile: Profile::Packed, limits, ..Options::default() };
    let mut generator = Generator::new(Arc::clone(&problem), 4, options, vec![]).unwrap();
    let rows = problem.param("M").unwrap();
    let all: Vec<i64> =
        campaign(&mut generator, 20).iter().flat_map(|g| &g.cases).map(|c| c.case.params[rows]).collect();
    let past = all.iter().filter(|m| **m * 8 * 8192 > 1 << 31).count();
    let near = all.iter().filter(|m| (32_766..=32_772).contains(*m)).count();
    assert!(past * 10 >= all.len(), "{past} of {}", all.len());
    assert!(near >= 10, "{near} of {} within 3 rows of the line", all.len());
}

#[test]
fn pins_placement_and_knobs_are_kept() {
    let problem = Builtin::find("gemm").unwrap().problem();
    let pins = [("m", 1.into()), ("n", 5.into()), ("k", 1.into()), ("transA", "N".into()), ("out", "C".into())]
        .map(|(p, value)| Narrow::Set { param: p.into(), value });
    let pinned = Arc::new(problem.narrowed(&pins).unwrap());
    let knobs = BTreeMap::from([
        ("algo".to_owned(), vec![1.into(), 2.into(), 3.into()]),
        ("core".to_owned(), vec!["haswell".into()]),
    ]);
    let placement = crate::problem::Placement::START;
    let options = Options { placement: Some(placement), knobs, ..Options::default() };
    let mut algos = BTreeMap::new();
    for group in campaign(&mut generator(&pinned, 9, options), 20) {
        for c in group.cases {
            assert!(pins.iter().all(|n| match n {
                Narrow::Set { param, value } => {
                    let i = problem.param(param).unwrap();
                    problem.params[i].show(c.case.params[i]) == *value
                }
                _ => true,
            }));
            assert_eq!(c.case.placement, placement);
            assert_eq!(c.case.knobs["core"], "haswell".into());
            *algos.entry(c.case.knobs["algo"].clone()).or_insert(0) += 1;
        }
    }
    assert_eq!(algos.len(), 3);
    assert!(algos[&1.into()] > algos[&2.into()], "the plainest most often: {algos:?}");
}

#[test]
fn a_problem_whose_plainest_case_is_above_a_cap_is_refused_with_a_remedy() {
    let problem = Builtin::find("gemm").unwrap().problem();
    let pin = |p: &str| Narrow::Range { param: p.into(), min: 1 << 20, max: 1 << 20 };
    let pinned = Arc::new(problem.narrowed(&[pin("m"), pin("n")]).unwrap());
    let refused = Generator::new(Arc::clone(&pinned), 1, Options::default(), vec![]).unwrap_err();
    assert!(refused.to_string().contains("--max-work"), "{refused}");
    let limits = SpanLimits { sampled: true, ..SpanLimits::default() };
    assert!(Generator::new(pinned, 1, Options { limits, ..Options::default() }, vec![]).is_ok());
    let ends = problem.params.iter().map(|p| Narrow::Set { param: p.name.clone(), value: p.show(p.least()) });
    let single = Arc::new(problem.narrowed(&ends.collect::<Vec<_>>()).unwrap());
    let group = &Generator::new(single, 1, Options::default(), vec![]).unwrap().round(0)[0];
    assert_eq!(group.cases.len(), 1, "a problem with one case gives it once a group");
}

#[test]
#[ignore = "a measurement: run in release"]
fn time_per_case() {
    for problem in problems() {
        for profile in [Profile::Strided, Profile::Packed] {
            let generator = generator(&problem, 1, Options { profile, ..Options::default() });
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
            // Time on the processor, from the scheduler: the machine may be busy with other things.
            let spent = || -> u64 {
                let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
                text.split(' ').next().unwrap().parse().unwrap()
            };
            let (count, nanoseconds) = pool.install(|| {
                let start = spent();
                let count: usize = (0..100).flat_map(|r| generator.round(r)).map(|g| g.cases.len()).sum();
                (count as u64, spent() - start)
            });
            println!("{} {profile:?}: {} ns of one core per case", problem.name, nanoseconds / count);
        }
    }
}
