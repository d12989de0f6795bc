use super::*;
use crate::finding::Seed;
use crate::problem::{Builtin, Placement, Value};
use proptest::prelude::*;

const GOOD: &str = "format = 1\nproblem = \"gemm\"\n[params]\nm = 608\n";

fn error(text: &str) -> String {
    Seed::parse(text).unwrap_err()
}

#[test]
fn every_file_of_the_corpus_is_built_in_and_a_case_of_its_problem() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut files = 0;
    for b in crate::problem::BUILTINS {
        let problem = b.problem();
        let on_disk: Vec<Seed> = read_folder(&root, b.name).unwrap().into_iter().map(|(_, s)| s).collect();
        let mut built_in = built_in(b.name).unwrap();
        assert_eq!(on_disk.len(), built_in.len());
        built_in.sort_by_key(|s| on_disk.iter().position(|d| d == s));
        assert_eq!(on_disk, built_in);
        for seed in &on_disk {
            let case = seed.case(&problem).unwrap();
            let dtype = problem.param("dtype").unwrap();
            assert!(problem.params[dtype].show(case.params[dtype]).to_string().ends_with("f16"));
            assert!(seed.note.len() > 80, "a note says where the numbers come from");
        }
        files += on_disk.len();
    }
    assert_eq!(files, BUILT_IN.len());
}

#[test]
fn the_logged_call_reads_b_column_by_column() {
    let problem = Builtin::find("gemm").unwrap().problem();
    let seed = built_in("gemm").unwrap().into_iter().find(|s| s.params.get("n") == Some(&Value::Int(5376))).unwrap();
    let views = problem.views(&seed.case(&problem).unwrap().params).unwrap();
    let (a, b) = (views[0].as_ref().unwrap(), views[1].as_ref().unwrap());
    // Row-major A (608, 21504), and B (21504, 5376) with stride (1, 21504).
    assert_eq!(a.offset_of(0, &[1, 0, 0]), 21504);
    assert_eq!((b.offset_of(0, &[1, 0, 0]), b.offset_of(0, &[0, 1, 0])), (1, 21504));
    assert_eq!(b.highest(0), 21504 * 5376 - 1);
}

#[test]
fn what_is_wrong_is_said_in_one_sentence() {
    for (text, part) in [
        ("", "is empty"),
        ("problem = \"gemm\"", "there is no line format = 1"),
        ("format = 2\nproblem = \"gemm\"", "format = 2 is newer than 1"),
        ("format = \"1\"", "write format = 1"),
        ("format = 1\n[params]", "names no problem"),
        ("format = 1\nproblem = 3", "problem = 3 is no string"),
        ("format = 1\nproblem = \"gemm\"", "no [params]"),
        ("format = 1\nproblem = \"gemm\"\nparams = 3", "is no table"),
        ("format = 1\nproblem = \"gemm\"\n[params]\nm = 1.5", "params.m = 1.5 is no integer"),
        ("format = 1\nproblem = \"gemm\"\nplacement = \"middle\"\n[params]", "'middle' is no placement"),
        ("format = 1\nproblem = \"gemm\"\ncolour = 1\n[params]", "unknown key 'colour'"),
        ("format = 1\nm = = 3", "line 2: "),
        ("format = 1\nproblem = \"gemm\"\n[params]\nm = 1\nm = 2", "line 5: "),
    ] {
        let said = error(text);
        assert!(said.contains(part), "{text:?}: {said}");
        assert!(!said.contains('\n'), "{said}");
    }
    assert!(error(&format!("{GOOD}x = {}1{}", "[".repeat(5000), "]".repeat(5000))).contains("line 5: "));
}

#[test]
fn unknown_parameters_and_absurd_values_name_what_is_right() {
    let problem = Builtin::find("gemm").unwrap().problem();
    let said = |line: &str| Seed::parse(&format!("{GOOD}{line}\n")).unwrap().case(&problem).unwrap_err();
    assert!(said("q = 1").contains("no parameter 'q'; it has transA"));
    assert!(said("n = -3").contains("n = -3 is outside 1..="));
    assert!(said("dtype = \"f12\"").contains("is not one of f32"));
    assert!(said("lda = 7").contains("lda"));
    assert!(Seed::parse(GOOD).unwrap().case(&Builtin::find("allgather").unwrap().problem()).is_err());
}

#[test]
fn files_that_are_no_seed_cases_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.toml");
    assert!(Seed::read(&path).unwrap_err().to_string().contains("failed to read"));
    assert!(Seed::read(folder.path()).unwrap_err().to_string().contains("is not a file"));
    fs::write(&path, b"format = 1\xff").unwrap();
    assert!(Seed::read(&path).unwrap_err().to_string().contains("is not UTF-8"));
    fs::write(&path, vec![b'\n'; 2 << 20]).unwrap();
    assert!(Seed::read(&path).unwrap_err().to_string().contains("larger than 1 MiB"));
    fs::write(&path, Seed::parse(GOOD).unwrap().to_toml()).unwrap();
    assert_eq!(read_folder(folder.path(), "gemm").unwrap()[0].1, Seed::parse(GOOD).unwrap());
    assert!(read_folder(folder.path(), "allgather").unwrap().is_empty());
}

#[test]
fn a_seed_goes_to_the_nearest_case_of_a_narrowed_problem() {
    use crate::problem::Narrow;
    let problem = Builtin::find("gemm").unwrap().problem();
    let seed = Seed::parse(&format!("{GOOD}dtype = \"bf16\"\n")).unwrap();
    let float = Narrow::OneOf { param: "dtype".into(), values: vec!["f32".into(), "f64".into()] };
    let pinned = Narrow::Set { param: "k".into(), value: 9.into() };
    let narrowed = problem.narrowed(&[float, pinned]).unwrap();
    let case = seed.transfer(&problem, &narrowed).unwrap().unwrap();
    assert!(narrowed.check(&case.params).is_ok());
    assert_eq!((case.params[narrowed.param("m").unwrap()], case.params[narrowed.param("k").unwrap()]), (608, 9));
}

proptest! {
    #[test]
    fn any_text_is_a_seed_or_one_sentence(text in "(?s).{0,300}") {
        if let Err(said) = Seed::parse(&text) {
            prop_assert!(!said.contains('\n'), "{}", said);
        }
    }

    #[test]
    fn lines_that_nearly_fit_are_seeds_or_one_sentence(
        lines in prop::collection::vec(
            prop::sample::select(vec![
                "format = 1", "format = 99999999999999999999", "problem = \"gemm\"", "problem = []", "[params]",
                "[params.m]", "[[params]]", "m = 3", "m = -9223372036854775808", "m = 1979-05-27", "m = nan",
                "note = \"\"\"", "\"\"\"", "placement = \"end+16/256\"", "[knobs]", "\"a b\" = true", "x.y = 1", "\0",
            ]), 0..9)
    ) {
        let problem = Builtin::find("gemm").unwrap().problem();
        match Seed::parse(&lines.join("\n")) {
            Ok(seed) => drop(seed.case(&problem)),
            Err(said) => prop_assert!(!said.contains('\n'), "{}", said),
        }
    }

    #[test]
    fn a_seed_reads_back_as_written(
        problem in "\\PC{1,12}", target in prop::option::of("\\PC{0,12}"), note in "(?s).{0,60}", key in "(?s).{0,8}", text in "(?s).{0,20}", int: i64, flag: bool
    ) {
        let params = [(key.clone(), Value::Int(int)), (format!("{key}2"), Value::Text(text.clone()))].into();
        let knobs = [(key, Value::Bool(flag))].into();
        // A file has one kind of line end.
        let note = note.replace('\r', "");
        let seed = Seed { problem, params, knobs, placement: Some(Placement::START), target, note };
        prop_assert_eq!(Seed::parse(&seed.to_toml()), Ok(seed));
    }
}
