//! Whole cases through a session: clean ones pass, every planted damage is seen where it is.

mod measure;
mod process;

use super::ground::HostGround;
use super::layout::Layout;
use super::oracle::BrokenOracle;
use super::session::{Listener, Session, State};
use crate::device::cpu::CpuArena;
use crate::exec::protocol::{Answer, LayoutLine, WireCase};
use crate::exec::verdict::{Place, Verdict, WrongKind};
use crate::problem::{Builtin, Case, Instance, Knobs, Placement, Value, allgather, gemm};
use crate::target::selftest::{Expected, KNOB, Plant, expected};
use crate::target::{Bases, Caps, Description, Footprint, Launched, Target, load, whole_or_skipped};
use proptest::prelude::*;
use std::time::Instant;

const TIB: u64 = 1 << 40;

fn case(problem: &str, text: &str, place: &str, plant: Option<Plant>) -> Case {
    let problem = Builtin::find(problem).unwrap().problem();
    let pairs = text.split_whitespace().map(|w| w.split_once('=').unwrap());
    let named = pairs.map(|(n, v)| (n.to_owned(), Value::from_word(v))).collect();
    let params = problem.complete(&named).unwrap();
    let knobs: Knobs = plant.iter().map(|p| (KNOB.to_owned(), p.word().into())).collect();
    Case { params, knobs, placement: place.parse::<Placement>().unwrap() }
}

fn line(problem: &str, cases: &[Case]) -> LayoutLine {
    let problem = Builtin::find(problem).unwrap().problem();
    let wire = |(i, c): (usize, &Case)| WireCase::new(100 + i as u64, 7 + i as u64, &problem, c);
    let cases: Vec<WireCase> = cases.iter().enumerate().map(wire).collect();
    LayoutLine { layout: 1, run: cases.iter().map(|c| c.id).collect(), cases, caps: Caps::default() }
}

#[derive(Default)]
struct Heard {
    launched: Vec<u64>,
    answers: Vec<Answer>,
}

impl Listener for Heard {
    fn launching(&mut self, id: u64) {
        self.launched.push(id);
    }

    fn step(&mut self) {}

    fn answer(&mut self, answer: &Answer) -> Result<(), String> {
        self.answers.push(answer.clone());
        Ok(())
    }
}

fn session(problem: &str, target: Box<dyn Target>, broken: Option<BrokenOracle>) -> Session {
    let ground = HostGround::new(CpuArena::reserve(16 * TIB, TIB).unwrap(), broken);
    Session::new(Builtin::find(problem).unwrap(), target, Box::new(ground), broken)
}

fn selftest(broken: Option<BrokenOracle>) -> Session {
    let problem = Builtin::find("gemm").unwrap().problem();
    session("gemm", load::load(&"selftest".parse().unwrap(), &problem, None).unwrap(), broken)
}

fn run(session: &mut Session, line: &LayoutLine) -> Vec<Answer> {
    let mut heard = Heard::default();
    session.layout(line, &mut heard).unwrap();
    assert_eq!(heard.answers.iter().map(|a| a.id).collect::<Vec<_>>(), line.run);
    heard.answers
}

fn verdicts(session: &mut Session, problem: &str, cases: &[Case]) -> Vec<Verdict> {
    run(session, &line(problem, cases)).iter().map(|a| a.verdict().unwrap()).collect()
}

/// The instance of a case, and what the self-test has to see.
fn expect(session: &Session, case: &Case, plant: Plant) -> Expected {
    let instance = Builtin::find("gemm").unwrap().problem().instance(case.clone()).unwrap();
    let layout = Layout::plan(&session.arena(), &[&instance]).unwrap();
    expected(plant, &instance, &layout, 0).unwrap()
}

/// A target made of one function.
struct Fake(fn(&Instance, &dyn Bases) -> Option<String>);

impl Target for Fake {
    fn describe(&self) -> Description {
        Description::default()
    }

    fn footprint(&self, instance: &Instance, caps: &Caps) -> Footprint {
        whole_or_skipped(instance, caps)
    }

    unsafe fn launch(&mut self, instance: &Instance, _: &Footprint, bases: &dyn Bases) -> Launched {
        Launched { refused: (self.0)(instance, bases), ..Launched::default() }
    }
}

fn element(instance: &Instance, bases: &dyn Bases, operand: usize, copy: u32, index: &[i64]) -> *mut u8 {
    let view = instance.view(operand).unwrap();
    let base = bases.base(operand, copy);
    base.wrapping_offset((view.offset_of(copy, index) * view.element_bytes) as isize)
}

/// A correct all-gather; the block of `skip.0` is not copied to rank `skip.1`.
fn gather(instance: &Instance, bases: &dyn Bases, skip: Option<(i64, u32)>) {
    let (ranks, rows, columns) = (instance.get("ranks"), instance.get("M"), instance.get("N"));
    let source = if instance.view(allgather::OWN).is_some() { allgather::OWN } else { allgather::IN };
    let bytes = instance.view(allgather::OUT).unwrap().element_bytes as usize;
    for (to, from) in (0..ranks as u32).flat_map(|to| (0..ranks).map(move |from| (to, from))) {
        if skip == Some((from, to)) {
            continue;
        }
        for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
            let have = element(instance, bases, source, from as u32, &[i, j]);
            let want = element(instance, bases, allgather::OUT, to, &[from, i, j]);
            // SAFETY: both elements are mapped.
            unsafe { std::ptr::copy(have, want, bytes) };
        }
    }
}

fn any_gemm() -> impl Strategy<Value = Case> {
    let sizes = (1i64..20, 1i64..20, 1i64..20, 1i64..3);
    let more = prop::array::uniform3(prop_oneof![Just(0i64), 0i64..40, 0i64..1 << 22]);
    let words = (prop::sample::select(vec!["N", "T"]), prop::sample::select(vec!["f32", "f64", "bf16", "f16"]));
    let rest = (prop::sample::select(vec!["0", "1", "-1"]), 0i64..5, 0u32..3, 0u32..10, any::<bool>());
    (sizes, more, words, rest).prop_map(|((m, n, k, batch), more, (trans, dtype), (beta, off, pad, align, start))| {
        let (a, b) = if trans == "T" { (k, n) } else { (m, k) };
        let (lda, ldb, ldc) = (a + more[0], b + more[1], m + more[2]);
        let text = format!(
            "m={m} n={n} k={k} batch={batch} lda={lda} ldb={ldb} ldc={ldc} transA={trans} transB={trans} dtype={dtype} \
             beta={beta} offA={off} offC={off}"
        );
        let align = if align == 0 { 0 } else { 1 << (align - 1) };
        let placement = Placement { pad: pad * 9, align, ..if start { Placement::START } else { Placement::END } };
        case("gemm", &text, &placement.to_string(), None)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn clean_cases_pass_in_one_session(layouts in prop::collection::vec(prop::collection::vec(any_gemm(), 1..5), 1..4)) {
        let mut session = selftest(None);
        for cases in layouts {
            for verdict in verdicts(&mut session, "gemm", &cases) {
                prop_assert_eq!(verdict, Verdict::Pass { sample: None });
            }
        }
    }

    #[test]
    fn a_clean_all_gather_passes(ranks in 1i64..5, m in 1i64..6, n in 1i64..6, more in 0i64..3000, inplace in any::<bool>()) {
        let mut session = session("allgather", Box::new(Fake(|i, b| { gather(i, b, None); None })), None);
        let strides = if inplace { format!("strideOut={}", n + more) } else { format!("strideOut={} strideIn={}", n + more, n + 1) };
        let c = case("allgather", &format!("ranks={ranks} M={m} N={n} inplace={inplace} {strides}"), "end", None);
        prop_assert_eq!(verdicts(&mut session, "allgather", &[c.clone(), c]), vec![Verdict::Pass { sample: None }; 2]);
    }

    #[test]
    fn any_changed_byte_outside_the_outputs_is_a_stray_write(m in 1i64..9, k in 1i64..9, more in 0i64..5, at in 0usize..4096) {
        // The byte is one of A's page: an element, padding, or what lies beside them.
        let c = case("gemm", &format!("m={m} k={k} n=2 lda={} offB={at}", m + more), "end", None);
        let mut session = session("gemm", Box::new(Fake(|i, bases| {
            let clean = load::load(&"selftest".parse().unwrap(), &i.problem, None);
            // SAFETY: the case is mapped.
            unsafe { clean.unwrap().launch(i, &Footprint::Whole, bases) };
            let page = (bases.base(gemm::A, 0) as usize) / 4096 * 4096;
            let byte: *mut u8 = std::ptr::with_exposed_provenance_mut(page + i.get("offB") as usize);
            // SAFETY: as above.
            unsafe { *byte ^= 1 };
            None
        })), None);
        let answers = run(&mut session, &line("gemm", std::slice::from_ref(&c)));
        let wrong = answers[0].wrong.clone().unwrap();
        let hit = wrong.hit.clone().unwrap();
        prop_assert_eq!((wrong.kind, wrong.count, wrong.operand.as_str()), (WrongKind::Stray, 1, "A"));
        let instance = Builtin::find("gemm").unwrap().problem().instance(c).unwrap();
        let base = Layout::plan(&session.arena(), &[&instance]).unwrap().base(0, gemm::A, 0);
        prop_assert_eq!(base.wrapping_add_signed(hit.from_base) % 4096, at as u64);
        let element = instance.view(gemm::A).unwrap().contains(0, hit.from_base.div_euclid(4));
        prop_assert_eq!(hit.place == Place::Element, element);
        // The damage is repaired: the next case starts from rest.
        prop_assert_eq!(run(&mut session, &line("gemm", &[case("gemm", "m=30", "end", None)]))[0].wrong.clone().unwrap().count, 1);
    }
}

#[test]
fn planted_damage_is_seen_where_it_is() {
    let mut session = selftest(None);
    for (plant, place) in [
        (Plant::None, "start"),
        (Plant::Canary, "end+16"),
        (Plant::Sentinel, "end"),
        (Plant::Value, "end"),
        (Plant::None, "end"),
    ] {
        for beta in ["0", "1"] {
            let c = case("gemm", &format!("m=5 n=4 k=3 ldc=9 beta={beta}"), place, Some(plant));
            let verdict = verdicts(&mut session, "gemm", std::slice::from_ref(&c)).remove(0);
            let expected = expect(&session, &c, plant);
            assert!(expected.agrees(&verdict, None), "{plant:?}: {verdict:?} is not {expected:?}");
        }
    }
}

#[test]
fn a_disabled_oracle_misses_its_plant_and_no_other() {
    for (broken, plant) in [(BrokenOracle::Canary, Plant::Canary), (BrokenOracle::Sentinel, Plant::Sentinel)] {
        let mut session = selftest(Some(broken));
        for other in [Plant::Canary, Plant::Sentinel, Plant::Value] {
            let c = case("gemm", "m=5 n=4 k=3", "end+16", Some(other));
            let verdict = verdicts(&mut session, "gemm", std::slice::from_ref(&c)).remove(0);
            assert_eq!(expect(&session, &c, other).agrees(&verdict, None), other != plant, "{broken}: {verdict:?}");
        }
    }
    for (broken, plant, text) in
        [(BrokenOracle::Guard, Plant::Guard, "m=5 n=4 k=3"), (BrokenOracle::Gap, Plant::Gap, "m=5 n=4 k=3 ldb=262144")]
    {
        let c = case("gemm", text, "end", Some(plant));
        let mut session = selftest(Some(broken));
        let verdict = verdicts(&mut session, "gemm", std::slice::from_ref(&c)).remove(0);
        assert!(!expect(&session, &c, plant).agrees(&verdict, None), "{broken}: {verdict:?}");
    }
}

#[test]
fn a_block_that_does_not_arrive_is_unwritten() {
    let target = Fake(|i, b| {
        gather(i, b, Some((2, 1)));
        None
    });
    let mut session = session("allgather", Box::new(target), None);
    let c = case("allgather", "ranks=3 M=2 N=5 inplace=true", "end", None);
    match verdicts(&mut session, "allgather", &[c]).remove(0) {
        Verdict::Wrong(w) => {
            assert_eq!((w.kind, w.operand.as_str(), w.copy), (WrongKind::Unwritten, "out", 1));
            assert_eq!((w.first, w.count, w.compared), (vec![2, 0, 0], 10, 90));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_target_that_declines_leaves_memory_at_rest() {
    let mut session = session("gemm", Box::new(Fake(|_, _| Some("not today".to_owned()))), None);
    let c = case("gemm", "m=5 n=4 k=3", "end", None);
    for verdict in verdicts(&mut session, "gemm", &[c.clone(), c]) {
        assert_eq!(verdict, Verdict::Refused { detail: "not today".to_owned() });
    }
}

#[test]
fn a_kept_mapping_is_not_mapped_again() {
    let mut session = selftest(None);
    let c = case("gemm", "m=5 n=4 k=3", "end", None);
    let remapped: Vec<u32> =
        run(&mut session, &line("gemm", &[c.clone(), c.clone()])).iter().map(|a| a.remapped).collect();
    assert_eq!(remapped, [3, 0]);
    assert_eq!(run(&mut session, &line("gemm", &[c]))[0].remapped, 0);
    // B moves away from its first column, A and C stay.
    let other = case("gemm", "m=5 n=4 k=3 ldb=100000", "end", None);
    assert_eq!(run(&mut session, &line("gemm", &[other]))[0].remapped, 3);
}

#[test]
fn cases_above_a_cap_are_skipped_and_the_others_run() {
    let mut session = selftest(None);
    let small = case("gemm", "m=5 n=4 k=3", "end", None);
    let memory = case("gemm", "m=1 n=1 k=4000 lda=1025", "end", None);
    let ranges = case("gemm", "m=1 n=1 k=30000 lda=4096", "end", None);
    let work = case("gemm", "m=1024 n=1024 k=1024", "end", None);
    let mut line = line("gemm", &[small.clone(), memory, ranges, work, small]);
    line.caps.memory = 1 << 22;
    let answers = run(&mut session, &line);
    let words: Vec<&str> = answers.iter().map(|a| a.verdict.as_str()).collect();
    assert_eq!(words, ["pass", "skipped", "skipped", "skipped", "pass"]);
    for (answer, reason) in answers[1..4].iter().zip(["--max-memory", "page ranges", "--max-work"]) {
        assert!(answer.detail.as_ref().unwrap().contains(reason), "{answer:?}");
        assert!(!answer.state);
    }
}

#[test]
fn cases_that_are_too_much_together_run_one_after_the_other() {
    let mut session = selftest(None);
    let of = |operand: &str| case("gemm", &format!("m=2 n=300 k=300 ld{operand}=3000"), "end", None);
    let mut line = line("gemm", &[of("a"), of("b"), of("a")]);
    line.caps.memory = 5 << 19;
    let answers = run(&mut session, &line);
    assert!(answers.iter().all(|a| a.verdict == "pass"), "{answers:?}");
    assert!(answers.iter().all(|a| a.remapped > 0), "{answers:?}");
}

#[test]
fn an_operand_larger_than_the_arena_is_skipped() {
    let mut session = selftest(None);
    let c = case("gemm", "m=1 n=1 k=2000 lda=17179869184", "end", None);
    match verdicts(&mut session, "gemm", &[c]).remove(0) {
        Verdict::Skipped { detail, state } => assert!(detail.contains("does not fit") && !state, "{detail}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn gap_pages_can_be_mapped_besides() {
    let mut session = selftest(None);
    let c = case("gemm", "m=5 n=4 k=3 ldb=262144", "end", Some(Plant::Gap));
    let Expected::Fault { address, .. } = expect(&session, &c, Plant::Gap) else { panic!() };
    let mut line = line("gemm", std::slice::from_ref(&c));
    line.cases[0].also_map = vec![address - session.arena().base];
    let wrong = run(&mut session, &line)[0].wrong.clone().unwrap();
    assert_eq!((wrong.kind, wrong.count, wrong.hit.unwrap().place), (WrongKind::Stray, 1, Place::Gap));
    line.cases[0].also_map = vec![session.arena().len];
    assert!(session.layout(&line, &mut Heard::default()).unwrap_err().contains("also_map"));
}

#[test]
fn nonsense_ends_a_session_with_a_sentence() {
    let mut session = selftest(None);
    let good = line("gemm", &[case("gemm", "m=5", "end", None)]);
    let unknown = LayoutLine { run: vec![5], ..good.clone() };
    let mut lacking = good.clone();
    lacking.cases[0].params.remove("lda");
    let mut broken = good;
    broken.cases[0].params.insert("lda".to_owned(), 1.into());
    for (line, word) in [(unknown, "case 5"), (lacking, "lacks lda"), (broken, "lda")] {
        let mut heard = Heard::default();
        let why = session.layout(&line, &mut heard).unwrap_err();
        assert!(why.contains(word) && heard.launched.is_empty(), "{why}");
    }
}

#[test]
fn clean_models_pass_whole_and_in_part() {
    for model in crate::target::sim::models("gemm").iter().chain(crate::target::sim::models("allgather")) {
        if !model.clean {
            continue;
        }
        let builtin = Builtin::find(model.problem).unwrap();
        let spec = format!("sim:{}", model.name).parse().unwrap();
        let mut session = session(builtin.name, load::load(&spec, &builtin.problem(), None).unwrap(), None);
        let texts: &[&str] = match builtin.name {
            "gemm" => &[
                "m=40 n=30 k=20 beta=-1",
                "m=33 n=5 k=3 out=D ldd=5000 batch=2 dtype=bf16",
                "m=70000 n=40000 k=4",
                "m=3 n=5 k=4 ldb=2147483648 ldc=4294967297 transB=T",
            ],
            _ => &[
                "ranks=3 M=5 N=7 strideOut=9",
                "ranks=3 M=5 N=7 inplace=true dtype=bf16",
                "ranks=8 M=32769 N=8192 dtype=bf16",
                "ranks=8 M=32769 N=8192 dtype=bf16 inplace=true",
            ],
        };
        for text in texts {
            for place in ["end", "start+64/256"] {
                let begin = Instant::now();
                let cases = [case(builtin.name, text, place, None)];
                let verdict = verdicts(&mut session, builtin.name, &cases).remove(0);
                println!("{} {text} {place}: {verdict:?} in {:?}", model.name, begin.elapsed());
                assert!(verdict.is_witness_pass(), "{} {text} {place}: {verdict:?}", model.name);
            }
        }
    }
}

/// A library that breaks down in every case with two rows.
struct Breaks;

impl Target for Breaks {
    fn describe(&self) -> Description {
        Description::default()
    }

    fn footprint(&self, instance: &Instance, caps: &Caps) -> Footprint {
        whole_or_skipped(instance, caps)
    }

    unsafe fn launch(&mut self, instance: &Instance, _: &Footprint, _: &dyn Bases) -> Launched {
        let broken = instance.get("m") == 2;
        let told = |is: bool, what: &str| is.then(|| what.to_owned());
        Launched {
            kernel: Some("f".to_owned()),
            refused: told(!broken, "not of this shape"),
            failed: told(broken, "CUBLAS_STATUS_INTERNAL_ERROR (14): f"),
            ..Launched::default()
        }
    }
}

#[test]
fn a_library_that_says_that_it_broke_down_is_a_crash_and_ends_the_worker() {
    let mut session = session("gemm", Box::new(Breaks), None);
    let cases = ["m=1", "m=2", "m=3"].map(|text| case("gemm", text, "end", None));
    let mut heard = Heard::default();
    let state = session.layout(&line("gemm", &cases), &mut heard).unwrap();
    assert_eq!((state, heard.answers.len()), (State::Lost, 2));
    assert!(matches!(heard.answers[0].verdict(), Ok(Verdict::Refused { .. })));
    let crash = &heard.answers[1];
    assert_eq!(crash.kernel.as_deref(), Some("f"));
    let Ok(Verdict::Crash { how, .. }) = crash.verdict() else { panic!("{crash:?}") };
    assert_eq!(how, "CUBLAS_STATUS_INTERNAL_ERROR (14): f");
}
