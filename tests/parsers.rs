//! Whatever the text is: a value, or one sentence.

use proptest::prelude::*;
use shrinkfault::cli::args::Cli;
use shrinkfault::finding::Seed;
use shrinkfault::problem::Placement;
use shrinkfault::target::TargetSpec;

use clap::Parser;

const SEED: &str = include_str!("../corpus/gemm/gfx1201-logged-call.toml");

fn is_a_sentence(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains("panicked")
}

proptest! {
    #[test]
    fn any_word_is_a_target_that_reads_back_or_a_sentence(text in "\\PC{0,24}|(sim|cblas)?:?[a-z0-9,=x@/._-]{0,24}") {
        match text.parse::<TargetSpec>() {
            Ok(spec) => prop_assert_eq!(spec.to_string().parse::<TargetSpec>(), Ok(spec)),
            Err(e) => prop_assert!(is_a_sentence(&e)),
        }
    }

    #[test]
    fn any_word_is_a_placement_that_reads_back_or_a_sentence(text in "\\PC{0,12}|(end|start)?[+]?[0-9]{0,22}/?[0-9]{0,22}") {
        match text.parse::<Placement>() {
            Ok(place) => prop_assert_eq!(place.to_string().parse::<Placement>(), Ok(place)),
            Err(e) => prop_assert!(is_a_sentence(&e)),
        }
    }

    #[test]
    fn any_option_is_read_or_refused(
        option in prop::sample::select(vec![
            "--time", "--max-memory", "--max-work", "--range", "--set", "--jobs", "--cases", "--placement", "--case-timeout",
            "--seed", "--confirm", "--int-width",
        ]),
        value in "\\PC{0,16}|[0-9._e+-]{1,24}(s|m|h|KiB|EiB)?|[a-zA-Z]{1,4}=[-0-9._]{0,24}([.]{2}[-=0-9_]{0,24})?",
    ) {
        let argument = format!("{option}={value}");
        if let Err(e) = Cli::try_parse_from(["shrinkfault", "gemm", &argument]) {
            prop_assert!(is_a_sentence(&e.to_string()));
        }
    }

    #[test]
    fn a_mutated_seed_case_is_a_case_or_one_sentence(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0usize..12, "\\PC{0,3}|[0-9]{1,20}|[\\[\\]{}=\"',.\n#-]"), 1..6)
    ) {
        let mut bytes = SEED.as_bytes().to_vec();
        for (at, remove, insert) in edits {
            let at = at.index(bytes.len().max(1)).min(bytes.len());
            let end = (at + remove).min(bytes.len());
            bytes.splice(at..end, insert.bytes());
        }
        if let Err(e) = Seed::parse(&String::from_utf8_lossy(&bytes)) {
            prop_assert!(is_a_sentence(&e) && !e.contains('\n'), "{}", e);
        }
    }
}
