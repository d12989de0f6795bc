use super::*;
use crate::exec::Signature;
use crate::finding::testing::atlas;
use proptest::prelude::*;

fn parse(source: &str, text: &str) -> Result<CaseInput, String> {
    super::parse(source, text, &Catalog::default())
}

fn read(text: &str, problem: Option<&str>) -> Result<CaseInput, String> {
    CaseInput::read(text, problem, &[], &Catalog::default()).map_err(|e| e.to_string())
}

#[test]
fn a_case_on_the_command_line_names_its_problem_or_is_told_it() {
    for (text, problem) in [("gemm:m=608,n=5376,alpha=-2", None), ("m=608, n=5_376,alpha=-2", Some("gemm"))] {
        let input = read(text, problem).unwrap();
        assert_eq!(input.problem.name, "gemm");
        assert_eq!(input.named["n"], Value::Int(5376));
        assert_eq!(input.named["alpha"], Value::Text("-2".into()));
        let case = input.case(&input.problem, Placement::START).unwrap();
        assert_eq!((case.params[2], case.placement), (608, Placement::START));
    }
}

#[test]
fn a_case_that_is_none_says_why() {
    let cases = [
        ("m=608", None, "'m=608': say of which problem, for instance gemm:m=608"),
        ("allgather:ranks=8", Some("gemm"), "'allgather:ranks=8': it is a case of allgather, not of gemm"),
        ("gemm:m=1,m=2", None, "'gemm:m=1,m=2': m is given twice"),
        ("gemm:m=1,n", None, "'gemm:m=1,n': 'n' should read NAME=VALUE, for instance m=608"),
        ("gemm:q=1", None, "'gemm:q=1': gemm has no parameter 'q'"),
        ("gemm:m=0", None, "'gemm:m=0': m = 0 is outside 1..="),
        ("gemm:m=9,lda=3", None, "'gemm:m=9,lda=3': "),
        ("nothing-there", None, "'nothing-there' is neither a file, nor a finding in"),
        ("no/such.toml", None, "failed to read no/such.toml"),
    ];
    for (text, problem, expected) in cases {
        let error = read(text, problem).unwrap_err();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
}

#[test]
fn a_seed_case_may_leave_out_what_is_completed() {
    let text = "format = 1\nproblem = \"gemm\"\nnote = \"logged call\"\nplacement = \"end/256\"\n\
        [params]\nm = 608\nn = 5376\nk = 21504\ndtype = \"bf16\"\n[knobs]\nalgo = 3\n";
    let input = parse("seed.toml", text).unwrap();
    let case = input.case(&input.problem, Placement::END).unwrap();
    assert_eq!(input.problem.short(&case.params), "m=608 n=5376 k=21504 lda=608 ldb=21504 ldc=608 dtype=bf16");
    assert_eq!(case.placement.align, 256);
    assert_eq!(case.knobs["algo"], Value::Int(3));
    assert!(input.target.is_none() && input.finding.is_none());

    let errors = [
        ("format = 1\nproblem = \"gemm\"\n", "there is neither [minimal] nor [params]"),
        ("format = 1\nproblem = \"x\"\n[params]\n", "problem = 'x' is not one of gemm, allgather"),
        ("format = 1\nproblem = \"gemm\"\n[params]\nq = 1\n", "gemm has no parameter 'q'"),
        ("format = 1\nproblem = \"gemm\"\nseeds = 1\n[params]\n", "unknown key 'seeds'"),
        ("format = 1\n[params]\n", "names no problem"),
        ("m = 1\n", "there is no line format = 1"),
    ];
    for (text, expected) in errors {
        let error = parse("x", text).unwrap_err();
        assert!(error.contains(expected) && !error.contains('\n'), "{error}");
    }
}

#[test]
fn a_finding_gives_its_minimal_case_target_and_witnesses_by_path_or_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let finding = Finding::new(atlas()).unwrap();
    let group = dir.path().join("regressions").join("atlas");
    std::fs::create_dir_all(&group).unwrap();
    let path = group.join(format!("{}.toml", finding.name()));
    std::fs::write(&path, finding.to_toml().unwrap()).unwrap();
    let folders = [dir.path().join("out"), dir.path().join("regressions")];
    for text in [finding.name(), path.display().to_string()] {
        let input = CaseInput::read(&text, None, &folders, &Catalog::default()).unwrap();
        let case = input.case(&input.problem, Placement::START).unwrap();
        assert_eq!(case, finding.facts().minimal);
        assert_eq!(input.target.unwrap().to_string(), "cblas@libatlas.so.3");
        assert_eq!(input.finding.unwrap().facts().witnesses.len(), 1);
    }
}

#[test]
fn a_seed_case_that_the_program_writes_reads_back() {
    let facts = atlas();
    let signature = Signature::of(&facts.verdict).unwrap();
    let seed = Seed::of(&facts.problem, &facts.original, &signature.to_string());
    let seed = Seed { target: Some(facts.target.to_string()), ..seed };
    let input = parse("raw", &seed.to_toml()).unwrap();
    assert_eq!(input.case(&facts.problem, Placement::START).unwrap(), facts.original);
    assert_eq!(input.target, Some(facts.target));
}

proptest! {
    #[test]
    fn any_text_is_a_case_or_one_sentence(text in "(gemm:|allgather:)?([a-zA-Z]{1,8}=\\PC{0,6},?){0,4}") {
        if let Err(e) = read(&text, Some("gemm")) {
            prop_assert!(!e.is_empty());
        }
    }

    #[test]
    fn any_file_is_a_case_or_one_sentence(params in "([a-z]{1,3} = [-0-9a-z\"\\[]{1,6}\n){0,4}", head in "(format = 1\n)?(problem = \"gemm\"\n)?") {
        if let Err(e) = parse("x", &format!("{head}[params]\n{params}")) {
            prop_assert!(!e.is_empty() && !e.contains('\n'), "{}", e);
        }
    }
}
