use super::super::{Direction, Options, Shrunk, Witness, WitnessStatus, shrink};
use super::oracle::{Oracle, PASS, fault};
use super::rules::{Call, Rule};
use super::starts::case;
use crate::device::Access;
use crate::exec::{Place, Verdict};
use crate::problem::builder::Builder;
use crate::problem::{Builtin, Case, Narrow, Problem, Role, Use, Value};
use crate::target::sim::testing::modelled_gemm;

pub fn narrowed(problem: &str, pins: &[(&str, &str)], require: &[&str]) -> Problem {
    let pins = pins.iter().map(|(p, v)| Narrow::Set { param: (*p).into(), value: Value::from_word(v) });
    let require = require.iter().map(|c| Narrow::Require { condition: (*c).into() });
    let all: Vec<Narrow> = pins.chain(require).collect();
    let described = if problem == "gemm" { modelled_gemm() } else { Builtin::find(problem).unwrap().problem() };
    described.narrowed(&all).unwrap()
}

pub fn start(problem: &Problem, named: &[(&str, &str)]) -> Case {
    let named = named.iter().map(|(n, v)| ((*n).to_owned(), Value::from_word(v))).collect();
    case(problem.complete(&named).unwrap())
}

pub fn run(problem: &Problem, start: &Case, rule: impl FnMut(&Case) -> Verdict) -> Shrunk {
    let mut rule = rule;
    let mut oracle = Oracle::new(|case: &Case, _| rule(case));
    shrink(problem, start, None, &mut oracle, &Options::default(), &mut |_| {}).unwrap()
}

pub fn witness<'s>(shrunk: &'s Shrunk, problem: &Problem, name: &str) -> &'s Witness {
    let param = problem.param(name).unwrap();
    shrunk.witnesses.iter().find(|w| w.param == param).unwrap_or_else(|| panic!("{name} has no witness"))
}

/// Values of a parameter in the last good and the first bad case of a certified pair.
fn pair(shrunk: &Shrunk, problem: &Problem, name: &str) -> (i64, i64) {
    let w = witness(shrunk, problem, name);
    assert_eq!(w.status, WitnessStatus::Certified { direction: Direction::Down, steps: 1 });
    let good = w.last_good.as_ref().unwrap();
    assert!(good.counts.passes >= 3 && good.counts.passes == good.counts.runs);
    assert!(w.first_bad.counts.bad >= 3 && w.first_bad.counts.bad == w.first_bad.counts.runs);
    (good.case.params[w.param], w.first_bad.case.params[w.param])
}

/// Offsets of the gathered block are kept in 31 bits: ranks * M * N elements, whatever the strides are called.
fn gather(case: &Case) -> Verdict {
    let v = |i: usize| i128::from(case.params[i]);
    let (ranks, rows, columns) = (v(0), v(1), v(2));
    if ranks * rows * columns > 1 << 31 { fault("out", Access::Write, Place::Far) } else { PASS }
}

#[test]
fn the_all_gather_report_is_found_for_8_and_for_64_ranks() {
    for (ranks, bad) in [("8", 32769), ("64", 4097)] {
        let problem = narrowed("allgather", &[("ranks", ranks), ("N", "8192")], &["strideOut == N"]);
        let start = start(&problem, &[("M", "65536"), ("dtype", "bf16"), ("strideIn", "8192")]);
        let shrunk = run(&problem, &start, gather);
        assert_eq!(pair(&shrunk, &problem, "M"), (bad - 1, bad), "{ranks} ranks");
        assert_eq!(shrunk.far.as_ref().unwrap().1.case.params[1], bad + bad / 2);
    }
}

#[test]
fn a_pinned_product_gives_the_boundary_of_ldb() {
    let pins = [("m", "1"), ("n", "5"), ("k", "1"), ("transA", "N"), ("transB", "N")];
    let problem = narrowed("gemm", &pins, &[]);
    let start = start(&problem, &[("ldb", "3_000_000_001"), ("ldc", "77"), ("beta", "1"), ("dtype", "f64")]);
    let rule = Rule::Wrap { operand: 1, alone: false, bytes: false, bits: 31 };
    let shrunk = run(&problem, &start, |c| rule.verdict(&Call::of(c)));
    assert_eq!(pair(&shrunk, &problem, "ldb"), ((1 << 29) - 1, 1 << 29));
    assert_eq!(problem.short(&shrunk.minimal.params), "m=1 n=5 k=1 ldb=536870912");
    assert!(shrunk.probes.faulted < 40, "{:?}", shrunk.probes);
}

/// A problem of another kind under other names: planes of an image with a pitch.
fn image() -> Problem {
    let mut b = Builder::new("image");
    b.integer("lines", Role::Size, 1, 1 << 20, "lines of a plane")
        .integer("width", Role::Size, 1, 1 << 20, "pixels of a line")
        .integer("planes", Role::Count, 1, 64, "planes")
        .integer("pitch", Role::Stride, 1, 1 << 34, "pixels from line to line")
        .flag("mirrored", "lines are read backwards");
    b.constraint("pitch >= width").unwrap().work("lines * width * planes").unwrap();
    b.operand("pixels", Use::ReadWrite, &[("planes", "lines * pitch"), ("lines", "pitch"), ("width", "1")]).unwrap();
    b.finish()
}

#[test]
fn a_problem_with_other_names_shrinks_the_same_way() {
    let problem = image();
    let named = [("lines", "480"), ("width", "641"), ("planes", "3"), ("pitch", "9000001"), ("mirrored", "true")];
    let start = start(&problem, &named);
    let shrunk = run(&problem, &start, |case| {
        let v = |i: usize| i128::from(case.params[i]);
        let bytes = ((v(0) - 1) * v(3) + v(1) - 1) * 4;
        if bytes >= 1 << 32 { fault("pixels", Access::Write, Place::Far) } else { PASS }
    });
    assert_eq!(problem.short(&shrunk.minimal.params), "lines=2 width=1 pitch=1073741824");
    assert_eq!(pair(&shrunk, &problem, "pitch"), ((1 << 30) - 1, 1 << 30));
    assert_eq!(pair(&shrunk, &problem, "lines"), (1, 2));
}
