use super::*;
use crate::device::Access;
use crate::exec::{Family, Place};
use crate::finding::testing::{atlas, case};
use crate::problem::{Placement, Value};
use proptest::prelude::*;

fn known(facts: Facts) -> Known {
    let mut known = Known::default();
    known.add("regressions/atlas/x.toml".into(), Finding::new(facts).unwrap());
    known
}

fn far_read_of_b() -> Signature {
    Signature { operand: Some("B".into()), access: Some(Access::Read), place: Some(Place::Far), family: Family::Memory }
}

/// How the finding of [`atlas`], changed, knows a case.
fn by(change: impl FnOnce(&mut Facts), text: &str) -> Option<By> {
    let mut facts = atlas();
    change(&mut facts);
    let case = case(&facts.problem, text);
    let (problem, target) = (facts.problem.clone(), facts.target.clone());
    known(facts).matching(&problem, &target, &case, &far_read_of_b()).map(|m| m.by)
}

#[test]
fn own_cases_are_known_and_the_good_neighbour_is_not() {
    for own in ["m=1 n=5 k=1 ldb=536870912", "m=1 n=5 k=7 ldb=900000000", "m=1 n=5 k=1 ldb=805306368"] {
        assert_eq!(by(|_| {}, own), Some(By::OwnCase), "{own}");
    }
    assert_eq!(by(|_| {}, "m=1 n=5 k=1 ldb=536870911"), None);
}

#[test]
fn cases_past_the_certified_lines_are_known() {
    for past in ["m=1 n=5 k=1 ldb=536870913", "m=1 n=5 k=3 ldb=900000000", "m=9 n=5 k=1 ldb=536870912"] {
        assert_eq!(by(|_| {}, past), Some(By::PastLines), "{past}");
    }
}

#[test]
fn a_parameter_that_nobody_settled_must_be_the_same() {
    assert_eq!(by(|_| {}, "m=1 n=6 k=1 ldb=536870912"), None, "n has no pair and is not at its least");
    assert_eq!(by(|f| f.irrelevant.clear(), "m=1 n=5 k=3 ldb=900000000"), Some(By::PastLines), "k is at its least");
    let offset = "m=1 n=5 k=1 ldb=536870912 offB=3";
    assert_eq!(by(|_| {}, offset), Some(By::PastLines));
}

#[test]
fn a_choice_must_be_the_same_or_known_to_make_no_difference() {
    assert_eq!(by(|_| {}, "transA=T m=1 n=5 k=1 ldb=536870912"), Some(By::PastLines));
    assert_eq!(by(|_| {}, "transB=T m=1 n=5 k=1 ldb=536870912"), None);
    assert_eq!(by(|_| {}, "dtype=f64 m=1 n=5 k=1 ldb=536870912"), None);
}

#[test]
fn operand_and_place_alone_make_nothing_known() {
    let uncertified = |f: &mut Facts| f.witnesses[0].certified = Certified::No("stopped".into());
    assert_eq!(by(uncertified, "m=1 n=5 k=1 ldb=536870913"), None);
    assert_eq!(by(|f| f.witnesses.clear(), "m=1 n=5 k=1 ldb=900000001"), None);
}

#[test]
fn a_line_that_fails_below_is_read_downwards() {
    let below = |f: &mut Facts| {
        f.pins.retain(|pin| !pin.to_string().starts_with("n="));
        let n = f.problem.param("n").unwrap();
        let tally = f.witnesses[0].bad.1;
        let good = f.witnesses[0].good.unwrap().1;
        let certified = Certified::Yes { steps: 1 };
        f.witnesses.push(crate::finding::Witness { param: n, good: Some((6, good)), bad: (5, tally), certified });
    };
    assert_eq!(by(below, "m=1 n=4 k=1 ldb=536870912"), Some(By::PastLines));
    assert_eq!(by(below, "m=1 n=6 k=1 ldb=536870912"), None);
}

#[test]
fn knobs_target_and_signature_must_agree_and_the_library_version_need_not() {
    let facts = atlas();
    let (problem, target) = (facts.problem.clone(), facts.target.clone());
    let case = facts.minimal.clone();
    let known = known(facts);
    let asks = |target: &TargetSpec, case: &Case, signature: &Signature| {
        known.matching(&problem, target, case, signature).is_some()
    };
    let newer = target.clone().with_library(Some("/opt/libatlas.so.4.1".into()));
    assert!(asks(&newer, &case, &far_read_of_b()));
    let other = target.clone().with_library(Some("/opt/libgslcblas.so.0".into()));
    assert!(!asks(&other, &case, &far_read_of_b()));
    let mut knobbed = case.clone();
    knobbed.knobs.insert("threads".into(), Value::Int(2));
    assert!(!asks(&target, &knobbed, &far_read_of_b()));
    let unknown = Signature { operand: None, access: None, place: None, family: Family::Memory };
    assert!(asks(&target, &case, &unknown));
    assert!(!asks(&target, &case, &Signature { place: Some(Place::PastEnd), ..far_read_of_b() }));
    assert!(!asks(&target, &case, &Signature { family: Family::Hang, ..unknown }));
}

#[test]
fn a_failure_without_a_place_belongs_to_a_located_finding_only_along_one_line() {
    let facts = atlas();
    let (problem, target) = (facts.problem.clone(), facts.target.clone());
    let known = known(facts);
    let nowhere = Signature { operand: None, access: None, place: None, family: Family::Memory };
    let asks = |text: &str| known.matching(&problem, &target, &case(&problem, text), &nowhere).map(|m| m.by);
    assert_eq!(asks("m=1 n=5 k=1 ldb=600000000"), Some(By::PastLines));
    assert_eq!(asks("m=9 n=5 k=1 ldb=600000000"), None);
    assert_eq!(asks("m=9 n=5 k=1 ldb=536870912"), None);
}

#[test]
fn a_problem_with_pins_asks_the_same_question() {
    let facts = atlas();
    let narrowed = facts.problem.narrowed(&[crate::problem::Narrow::Set { param: "ldd".into(), value: Value::Int(5) }]);
    let narrowed = narrowed.unwrap();
    let mut case = facts.minimal.clone();
    case.params[narrowed.param("ldd").unwrap()] = 5;
    let known = known(facts.clone());
    assert!(known.same_minimal(&narrowed, &facts.target, &case, &far_read_of_b(), &[]).is_some());
    assert!(known.matching(&narrowed, &facts.target, &case, &far_read_of_b()).is_some());
    let from_narrowed = Finding::new(Facts { problem: narrowed.into(), minimal: case, ..facts.clone() }).unwrap();
    assert_eq!(from_narrowed.name(), Finding::new(facts).unwrap().name());
}

#[test]
fn the_same_minimal_case_is_found_wherever_its_operands_lie() {
    let facts = atlas();
    let (problem, target, mut case) = (facts.problem.clone(), facts.target.clone(), facts.minimal.clone());
    let known = known(facts);
    assert!(known.same_minimal(&problem, &target, &case, &far_read_of_b(), &[]).is_some());
    // A value without a meaning makes no other case.
    case.params[problem.param("ldd").unwrap()] = 7;
    assert!(known.same_minimal(&problem, &target, &case, &far_read_of_b(), &[]).is_some());
    case.placement = Placement::START;
    assert!(known.same_minimal(&problem, &target, &case, &far_read_of_b(), &[]).is_some());
    case.knobs.insert("threads".to_owned(), Value::Int(2));
    assert!(known.same_minimal(&problem, &target, &case, &far_read_of_b(), &[]).is_none());
}

#[test]
fn an_open_finding_is_preferred_to_a_fixed_one() {
    let facts = atlas();
    let (problem, target, case) = (facts.problem.clone(), facts.target.clone(), facts.minimal.clone());
    let mut known = Known::default();
    known.add("fixed.toml".into(), Finding::new(facts.clone()).unwrap().with_status(Status::Fixed));
    let back = known.matching(&problem, &target, &case, &far_read_of_b()).unwrap();
    assert_eq!(back.status, Status::Fixed);
    let mut open = facts;
    open.pins.clear();
    known.add("open.toml".into(), Finding::new(open).unwrap());
    let found = known.matching(&problem, &target, &case, &far_read_of_b()).unwrap();
    assert_eq!((found.status, found.path), (Status::Open, "open.toml".into()));
}

#[test]
fn a_broken_file_is_a_warning_and_the_others_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let group = dir.path().join("atlas");
    std::fs::create_dir(&group).unwrap();
    let finding = Finding::new(atlas()).unwrap();
    std::fs::write(group.join("good.toml"), finding.to_toml().unwrap()).unwrap();
    std::fs::write(group.join("broken.toml"), "format = 9").unwrap();
    std::fs::write(group.join(".half.toml"), "format").unwrap();
    std::fs::write(dir.path().join("README.md"), "no finding").unwrap();
    std::os::unix::fs::symlink(dir.path(), group.join("loop")).unwrap();
    let (known, warnings) = Known::load(&[dir.path().to_owned(), dir.path().join("none")], &Catalog::default());
    assert_eq!(known.entries().len(), 1);
    assert_eq!(known.entries()[0].name, finding.name());
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].0.contains("broken.toml: format = 9 is newer"), "{warnings:?}");
}

proptest! {
    #[test]
    fn nothing_below_a_certified_line_is_known(ldb in 1i64..536_870_912, m in 1i64..9, k in 1i64..9) {
        let text = format!("m={m} n=5 k={k} ldb={}", ldb.max(k));
        prop_assert_eq!(by(|_| {}, &text), None);
    }
}
