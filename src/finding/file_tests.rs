use super::*;
use crate::exec::history::Earlier;
use crate::finding::testing::{atlas, facts};
use crate::finding::{Certified, Facts, History, Tally};
use proptest::prelude::*;

fn text() -> String {
    Finding::new(atlas()).unwrap().to_toml().unwrap()
}

/// The error of the hand-written finding with one piece of text replaced.
fn error(from: &str, to: &str) -> String {
    let text = text();
    assert!(text.contains(from), "{from} is not in\n{text}");
    Finding::parse(&text.replacen(from, to, 1), &Catalog::default()).map(|f| f.name()).unwrap_err()
}

#[test]
fn a_finding_reads_back_as_written() {
    let finding = Finding::new(atlas()).unwrap().with_status(Status::Fixed);
    let again = Finding::parse(&finding.to_toml().unwrap(), &Catalog::default()).unwrap();
    assert_eq!(format!("{again:#?}"), format!("{finding:#?}"));
}

#[test]
fn the_file_starts_with_commands_and_says_the_boundary_on_two_lines() {
    let finding = Finding::new(atlas()).unwrap();
    let text = finding.to_toml().unwrap();
    assert!(text.contains(&format!("shrinkfault run {}\n", finding.name())), "{text}");
    assert!(
        text.contains(
            "title = \"gemm on libatlas.so.3 reads 2147483648 elements (8589934592 bytes) below the base of B\""
        ),
        "{text}"
    );
    assert!(text.contains("\nlast_good = { value = 536870911, runs = 3, failed = 0 }\nfirst_bad = { value = 536870912, runs = 3, failed = 3 }\n"), "{text}");
    assert!(text.contains("target = \"cblas@libatlas.so.3\"\ncall = \"cblas_sgemm(CblasColMajor, "), "{text}");
    assert!(text.contains(", C, 1)\"\nset = [\"m=1\"]\nrange = [\"n=1..5\"]\n"), "{text}");
    assert!(!text.contains("\nldd = ") && !text.contains("strideA"), "inactive parameters are left out:\n{text}");
}

#[test]
fn the_example_in_the_documentation_is_what_the_program_writes() {
    let document = include_str!("../../docs/findings.md");
    let example = document.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert_eq!(example, text());
}

#[test]
fn each_lie_is_one_sentence_that_names_it() {
    let cases = [
        (
            "format = 1",
            "format = 2",
            "format = 2 is newer than 1, the newest this version reads: use a newer shrinkfault",
        ),
        ("format = 1", "format = \"1\"", "format = \"1\" is none: write format = 1"),
        ("format = 1\n", "", "there is no line format = 1: this is neither a finding nor a case file"),
        ("seed = 42", "seed = 42\nlucky = 7", "unknown field `lucky`: remove it, or see docs/findings.md"),
        ("seed = 42", "seed = -42", "invalid value: integer `-42`, expected a number"),
        ("seed = 42", "seed = [", "line 16: unexpected `=` in array, expected value, `]`"),
        ("problem = \"gemm\"", "problem = \"gemx\"", "problem = 'gemx' is not one of gemm, allgather"),
        ("status = \"open\"", "status = \"closed\"", "status = 'closed' is not one of open, fixed"),
        ("profile = \"strided\"", "profile = \"wide\"", "profile = 'wide' is not one of strided, packed"),
        ("diagnosis = \"not run\"", "diagnosis = \"wrap\"", "diagnosis = 'wrap' is not 'not run'"),
        ("target = \"cblas", "target = \":", "is no target"),
        ("set = [\"m=1\"]", "set = [\"m=2\"]", "minimal: m = 1 is not what the pins allow"),
        ("set = [\"m=1\"]", "set = [\"q=2\"]", "gemm has no parameter 'q'"),
        ("ldb = 536870912", "lbd = 536870912", "minimal: gemm has no parameter 'lbd'"),
        ("ldb = 536870912", "ldb = 0", "minimal: ldb = 0 is outside 1..="),
        ("ldb = 536870912", "ldb = \"wide\"", "minimal: ldb = wide is not an integer"),
        ("ldb = 536870912", "ldb = 1.5", "invalid type: floating point"),
        ("ldb = 536870912\n", "", "minimal: the parameter ldb is missing"),
        (
            "ldb = 536870912",
            "ldb = 536870912\nldd = 9",
            "minimal: ldd means nothing here (ldd needs out == 'D') and must stay 1",
        ),
        ("k = 1\n", "k = 999999999\n", "minimal: transB=N n=5 k=999999999 ldb=536870912 breaks the constraint"),
        ("placement = \"end\"", "placement = \"middle\"", "minimal: 'middle' is no placement"),
        ("verdict = \"fault\"", "verdict = \"pass\"", "verdict = 'pass' is not one of fault, wrong, hang, crash"),
        (
            "verdict = \"fault\"",
            "verdict = \"hang\"",
            "verdict = 'hang' needs the table [hang] and none of the other verdicts",
        ),
        ("address = \"0x", "address = \"", "should read 0x and up to 16 hexadecimal digits"),
        (
            "from_base_elements = -2147483648",
            "from_base_elements = 5",
            "fault: from_base_elements is not from_base_bytes in elements of B",
        ),
        ("place = \"far\"", "place = \"near\"", "fault: place = 'near' is not one of"),
        (
            "family = \"memory\"\noperand = \"B\"",
            "family = \"memory\"\noperand = \"A\"",
            "the signature says 'read of A, far away', the verdict 'read of B, far away'",
        ),
        ("bad = { runs = 3, failed = 3 }", "bad = { runs = 3, failed = 4 }", "confirmation: 4 failures in 3 runs"),
        (
            "bad = { runs = 3, failed = 3 }",
            "bad = { runs = 3, failed = 0 }",
            "confirmation: the minimal case failed in none of 3 runs",
        ),
        ("certified = true", "certified = false", "witness of ldb: certified = false goes with why_not"),
        (
            "value = 536870911, runs = 3, failed = 0",
            "value = 536870911, runs = 0, failed = 0",
            "witness of ldb: certified, but",
        ),
        ("param = \"ldb\"", "param = \"ldq\"", "witness: gemm has no parameter 'ldq'"),
        ("changed = { ldb", "changed = { ldq", "far: gemm has no parameter 'ldq'"),
        ("[irrelevant]\nk = 4", "[irrelevant]\nldb = 4", "irrelevant: ldb has a certified witness"),
        (
            "effect = \"same\"",
            "effect = \"maybe\"",
            "choices: effect = 'maybe' is not one of passes, same, differs, not-run",
        ),
    ];
    for (from, to, expected) in cases {
        let error = error(from, to);
        assert!(error.contains(expected) && !error.contains('\n'), "{from} -> {to}\n{error}");
    }
}

/// The hand-written finding, with a history of a case of its own and the minimal one.
fn with_history() -> Facts {
    let facts = atlas();
    let other = facts.original.clone();
    let before = vec![Earlier::Case(other), Earlier::Same];
    Facts { history: Some(History { before, found_after: 40, alone: Tally { runs: 20, failed: 0 } }), ..facts }
}

#[test]
fn what_has_to_run_first_is_in_the_file_and_lies_about_it_are_named() {
    let finding = Finding::new(with_history()).unwrap();
    let text = finding.to_toml().unwrap();
    assert!(finding.title().ends_with(", after 2 cases in the same process"), "{}", finding.title());
    assert!(text.contains("\n[history]\nfound_after = 40\nalone = { runs = 20, failed = 0 }\n"), "{text}");
    assert_eq!(text.matches("[[history.before]]").count(), 2, "{text}");
    assert_ne!(finding.name(), Finding::new(atlas()).unwrap().name());
    let again = Finding::parse(&text, &Catalog::default()).unwrap();
    assert_eq!(format!("{again:?}"), format!("{finding:?}"));

    let alone = "alone = { runs = 20, failed = 0 }";
    let cases = [
        (alone, "alone = { runs = 20, failed = 1 }", "history: the minimal case failed 1 times alone"),
        (alone, "alone = { runs = 2, failed = 0 }", "history: the minimal case ran 2 times alone and 3 times after it"),
        ("found_after = 40", "found_after = 1", "history: it lists 2 cases, and the failure was found after 1"),
        ("is_minimal = false", "is_minimal = true", "history: a case with is_minimal = true is not the minimal case"),
        ("[history.before.params]\ntransA = \"N\"", "[history.before.params]\ntransA = \"X\"", "history: transA"),
    ];
    for (from, to, expected) in cases {
        assert!(text.contains(from), "{from} is not in\n{text}");
        let error = Finding::parse(&text.replacen(from, to, 1), &Catalog::default()).map(|f| f.name()).unwrap_err();
        assert!(error.contains(expected) && !error.contains('\n'), "{from} -> {to}\n{error}");
    }
    let mut none = with_history();
    none.history.as_mut().unwrap().before.clear();
    assert!(Finding::new(none).unwrap_err().contains("history: it lists no case"));
}

#[test]
fn a_key_given_twice_and_deep_nesting_are_errors() {
    let twice = text().replacen("seed = 42", "seed = 42\nseed = 43", 1);
    assert!(Finding::parse(&twice, &Catalog::default()).unwrap_err().contains("duplicate key"));
    for open in ["[", "{b = "] {
        let deep = format!("format = 1\na = {}", open.repeat(200_000));
        assert!(Finding::parse(&deep, &Catalog::default()).is_err());
    }
    let heading = format!("[{}a]\nformat = 1\n", "a.".repeat(200_000));
    assert!(Finding::parse(&heading, &Catalog::default()).is_err());
}

#[test]
fn files_that_are_no_findings_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.toml");
    let message = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        Finding::read(&path).unwrap_err().to_string()
    };
    assert!(message(&[0xff, 0xfe]).ends_with("x.toml is not UTF-8: save it as UTF-8 text"));
    assert!(message(&vec![b'\n'; (1 << 20) + 1]).contains("larger than 1 MiB"));
    assert!(message(b"hello").contains("x.toml: line 1: "));
    assert!(message(b"").contains("there is no line format = 1"));
    assert!(Finding::read(dir.path()).unwrap_err().to_string().contains("is not a file"));
    assert!(Finding::read(&dir.path().join("none")).unwrap_err().to_string().starts_with("failed to read"));
}

#[test]
fn facts_that_contradict_each_other_make_no_finding() {
    let mut facts = atlas();
    facts.verdict = crate::exec::Verdict::Pass { sample: None };
    assert_eq!(Finding::new(facts).unwrap_err(), "the verdict 'pass' is no failure");
    let mut facts = atlas();
    facts.witnesses[0].good = None;
    assert!(Finding::new(facts).unwrap_err().contains("certified without a last good value"));
    let mut facts = atlas();
    facts.witnesses[0].bad.1 = Tally { runs: 1, failed: 2 };
    facts.witnesses[0].certified = Certified::No("stopped".into());
    assert!(Finding::new(facts).unwrap_err().contains("2 failures in 1 runs"));
    let mut facts = atlas();
    facts.minimal.params.0.pop();
    assert!(Finding::new(facts).unwrap_err().contains("values for the"));
}

#[test]
fn an_absent_choice_count_or_offset_is_plain() {
    let text = text();
    let shorter =
        ["alpha = \"1\"\n", "batch = 1\n", "offA = 0\n"].iter().fold(text.clone(), |t, line| t.replace(line, ""));
    assert_ne!(shorter, text);
    let (a, b) =
        (Finding::parse(&shorter, &Catalog::default()).unwrap(), Finding::parse(&text, &Catalog::default()).unwrap());
    assert_eq!(a.facts().minimal, b.facts().minimal);
    assert_eq!(a.name(), b.name());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_finding_reads_back_as_written(facts in facts()) {
        let finding = Finding::new(facts).unwrap();
        let text = finding.to_toml().unwrap();
        let again = Finding::parse(&text, &Catalog::default()).unwrap_or_else(|e| panic!("{e}\n{text}"));
        prop_assert_eq!(format!("{:?}", again), format!("{:?}", finding));
        prop_assert_eq!(again.to_toml().unwrap(), text);
    }

    #[test]
    fn a_mutated_file_is_a_finding_or_one_sentence(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0usize..12, "\\PC{0,3}|[0-9]{1,20}|[\\[\\]{}=\"',.\n#-]"), 1..6)
    ) {
        let mut bytes = text().into_bytes();
        for (at, remove, insert) in edits {
            let at = at.index(bytes.len());
            let end = (at + remove).min(bytes.len());
            bytes.splice(at..end, insert.bytes());
            if bytes.is_empty() {
                break;
            }
        }
        let mutated = String::from_utf8_lossy(&bytes);
        if let Err(e) = Finding::parse(&mutated, &Catalog::default()) {
            prop_assert!(!e.is_empty() && !e.contains('\n'), "{}", e);
        }
    }

    #[test]
    fn swapped_lines_and_values_are_a_finding_or_one_sentence(
        from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>(),
        value in prop::sample::select(vec!["0", "-1", "9223372036854775807", "\"\"", "true", "[]", "{}", "1e400", "nan", "1979-05-27"])
    ) {
        let text = text();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let (from, to) = (from.index(lines.len()), to.index(lines.len()));
        lines.swap(from, to);
        let line = lines[to].clone();
        if let Some((key, _)) = line.split_once(" = ") {
            lines[to] = format!("{key} = {value}");
        }
        if let Err(e) = Finding::parse(&lines.join("\n"), &Catalog::default()) {
            prop_assert!(!e.is_empty() && !e.contains('\n'), "{}", e);
        }
    }
}
