//! Findings to test with: one written by hand, and any.

use super::check;
use super::environment::Environment;
use super::facts::{Certified, Choice, Confirmation, Effect, Facts, Far, History, Ranks, Step, Tally, Witness};
use crate::device::Access;
use crate::exec::history::Earlier;
use crate::exec::{Fault, Hit, Place, Signature, Verdict, Wrong, WrongKind};
use crate::problem::{Assignment, BUILTINS, Builtin, Case, Flush, Narrow, Placement, Problem, Value};
use proptest::prelude::*;
use std::sync::Arc;

const THREE: Tally = Tally { runs: 3, failed: 3 };
const CLEAN: Tally = Tally { runs: 3, failed: 0 };

/// The parameters of a case, the others completed.
pub fn values(problem: &Problem, text: &str) -> Assignment {
    let pairs = text.split(' ').filter_map(|p| p.split_once('='));
    problem.complete(&pairs.map(|(n, v)| (n.to_owned(), Value::from_word(v))).collect()).unwrap()
}

pub fn case(problem: &Problem, text: &str) -> Case {
    Case { params: values(problem, text), knobs: Default::default(), placement: Placement::END }
}

/// A wrap of (n-1)*ldb at 2^31 elements, pinned to m=1, n=5, k=1.
pub fn atlas() -> Facts {
    let problem = Builtin::find("gemm").unwrap().problem();
    let hit = Hit { operand: "B".into(), copy: 0, place: Place::Far, from_base: -(4 << 31), from_edge: -(4 << 31) };
    let ldb = problem.param("ldb").unwrap();
    let minimal = case(&problem, "m=1 n=5 k=1 ldb=536870912");
    Facts {
        target: "cblas@/usr/lib/x86_64-linux-gnu/atlas/libatlas.so.3".parse().unwrap(),
        pins: vec![
            Narrow::Set { param: "m".into(), value: Value::Int(1) },
            Narrow::Range { param: "n".into(), min: 1, max: 5 },
        ],
        profile: "strided".into(),
        seed: 42,
        verdict: Verdict::Fault(Fault {
            address: Some(0x7e51_0000_1000),
            page: None,
            access: Some(Access::Read),
            hit: Some(hit),
            code: Some("libatlas.so.3+0x1a2b0 (ATL_sgemm)".into()),
            channel: "SIGSEGV handler".into(),
        }),
        signature: Signature {
            operand: Some("B".into()),
            access: Some(Access::Read),
            place: Some(Place::Far),
            family: crate::exec::Family::Memory,
        },
        original: case(&problem, "m=1 n=5 k=7 ldb=900000000"),
        history: None,
        witnesses: vec![Witness {
            param: ldb,
            good: Some((536_870_911, CLEAN)),
            bad: (536_870_912, THREE),
            certified: Certified::Yes { steps: 1 },
        }],
        far: Some(Far { params: values(&problem, "m=1 n=5 k=1 ldb=805306368"), tally: THREE }),
        choices: vec![
            Choice { param: problem.param("transA").unwrap(), value: 1, effect: Effect::Same },
            Choice { param: problem.param("transB").unwrap(), value: 1, effect: Effect::Passes },
        ],
        irrelevant: vec![(problem.param("k").unwrap(), 4)],
        windows: vec![],
        ranks: None,
        confirmation: Confirmation { bad: THREE, good: CLEAN, rate: None },
        slips: vec![],
        ladder: vec![
            Step { by: "minimise k".into(), case: "m=1 n=5 k=1 ldb=900000000".into() },
            Step { by: "minimise ldb".into(), case: "m=1 n=5 k=1 ldb=536870912".into() },
        ],
        environment: Environment {
            shrinkfault: "0.1.0".into(),
            device: "cpu".into(),
            page: "4096 bytes".into(),
            ..Environment::default()
        },
        minimal,
        problem,
    }
}

fn params(problem: &Arc<Problem>) -> BoxedStrategy<Assignment> {
    let problem = Arc::clone(problem);
    let raw: Vec<BoxedStrategy<i64>> = problem
        .params
        .iter()
        .map(|p| {
            if p.is_choice() { (0..p.choices().len() as i64).boxed() } else { (0i64..20).prop_map(|b| 1 << b).boxed() }
        })
        .collect();
    let valid = move |raw: Vec<i64>| {
        let mut values = Assignment(raw);
        problem.repair(&mut values, |_| true).then_some(values)
    };
    raw.prop_filter_map("a case", valid).boxed()
}

fn any_case(problem: &Arc<Problem>) -> impl Strategy<Value = Case> + use<> {
    let value = prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        any::<String>().prop_map(Value::Text)
    ];
    let knobs = prop::collection::btree_map(any::<String>(), value, 0..3);
    (params(problem), knobs, any::<bool>(), 0u32..4096).prop_map(|(params, knobs, start, pad)| Case {
        params,
        knobs,
        placement: Placement { flush: if start { Flush::Start } else { Flush::End }, pad, align: 0 },
    })
}

fn any_hit(problem: &Arc<Problem>) -> impl Strategy<Value = Hit> + use<> {
    let operands: Vec<String> = problem.operands.iter().map(|o| o.name.clone()).collect();
    let place = prop::sample::select(vec![Place::BeforeStart, Place::PastEnd, Place::Gap, Place::Element, Place::Far]);
    (prop::sample::select(operands), any::<u32>(), place, any::<i64>(), any::<i64>())
        .prop_map(|(operand, copy, place, from_base, from_edge)| Hit { operand, copy, place, from_base, from_edge })
}

fn any_verdict(problem: &Arc<Problem>) -> impl Strategy<Value = Verdict> + use<> {
    let access = || prop::option::of(prop::sample::select(vec![Access::Read, Access::Write]));
    let hit = || prop::option::of(any_hit(problem));
    let fault = (any::<Option<u64>>(), access(), hit(), any::<Option<String>>(), any::<String>()).prop_map(
        |(address, access, hit, code, channel)| {
            let page = address.filter(|a| a % 3 == 0).map(|_| 4096);
            Verdict::Fault(Fault { address, page, access, hit, code, channel })
        },
    );
    let kind = prop::sample::select(vec![WrongKind::Value, WrongKind::Unwritten, WrongKind::Stray]);
    let first = prop::collection::vec(any::<i64>(), 0..4);
    let operand = problem.operands[0].name.clone();
    let wrong = (kind, any::<u32>(), first, any::<u64>(), any::<u64>(), hit()).prop_map(
        move |(kind, copy, first, count, compared, hit)| {
            Verdict::Wrong(Wrong { kind, operand: operand.clone(), copy, first, count, compared, hit })
        },
    );
    let hang = any::<u64>().prop_map(|after_ms| Verdict::Hang { after_ms });
    let crash = (any::<String>(), any::<Option<String>>()).prop_map(|(how, code)| Verdict::Crash { how, code });
    prop_oneof![fault, wrong, hang, crash]
}

/// Any facts that do not contradict each other.
pub fn facts() -> impl Strategy<Value = Facts> {
    prop::sample::select(BUILTINS.map(|b| b.name).to_vec()).prop_flat_map(|name| {
        let problem = Builtin::find(name).unwrap().problem();
        let cases = (any_case(&problem), any_case(&problem), prop::collection::vec(any_case(&problem), 0..2));
        let far = (params(&problem), any::<bool>());
        let texts = prop::collection::vec(any::<String>(), 0..5);
        let rate = prop::option::of((0.0..0.5f64, 0.5..1.0f64));
        let number = (any::<u64>(), 0u32..10, 0u32..10);
        (cases, any_verdict(&problem), far, texts, number, rate, any::<bool>()).prop_map(
            move |((minimal, original, before), verdict, (far, has_far), texts, (seed, x, y), rate, flag)| {
                let tally = Tally { runs: x + y + 1, failed: y + 1 };
                let plain = |params: &Assignment| check::filed(&problem, &minimal.with_params(params.clone())).params;
                let has_far = has_far && plain(&far) != plain(&minimal.params);
                let signature = Signature::of(&verdict).unwrap();
                let history = (!before.is_empty()).then(|| History {
                    found_after: x + 4,
                    alone: Tally { runs: tally.runs, failed: 0 },
                    before: [Earlier::Same].into_iter().chain(before.into_iter().map(Earlier::Case)).collect(),
                });
                let named = |i: usize| texts.get(i).cloned().unwrap_or_default();
                let param = problem.params.iter().position(|p| !p.is_choice()).unwrap();
                let bad = (minimal.params[param], THREE);
                let ranks = Ranks { failing: vec![x + 10], passing: (0..x).collect(), not_run: vec![], copy: Some(y) };
                Facts {
                    problem: Arc::clone(&problem),
                    target: "sim:i32-sum,operand=B".parse().unwrap(),
                    pins: vec![],
                    profile: if flag { "packed" } else { "strided" }.into(),
                    seed,
                    verdict,
                    signature,
                    minimal,
                    original,
                    history,
                    witnesses: vec![Witness { param, good: None, bad, certified: Certified::No(named(0)) }],
                    far: has_far.then_some(Far { params: far, tally: Tally { runs: x + y + 1, failed: y + 1 } }),
                    choices: vec![],
                    irrelevant: vec![(param, x + 1)],
                    windows: texts.clone(),
                    ranks: flag.then_some(ranks),
                    confirmation: Confirmation { bad: tally, good: CLEAN, rate },
                    slips: texts.iter().take(2).cloned().collect(),
                    ladder: texts.iter().map(|t| Step { by: t.clone(), case: named(1) }).collect(),
                    environment: Environment {
                        os: named(0),
                        cpu: named(1),
                        target: vec![(named(2), named(3)), ("path".into(), "/x".into())],
                        ..Environment::default()
                    },
                }
            },
        )
    })
}
