//! A report that CI systems read: one suite per target, one test per finding.

use super::outcome::Word;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use std::time::Duration;

/// One line of the report.
#[derive(Debug, Clone)]
pub struct Record {
    pub target: String,
    /// The finding, or the file that holds none.
    pub name: String,
    /// `Err`: the file could not be read.
    pub word: Result<Word, ()>,
    pub text: String,
    pub took: Duration,
}

/// The XML. What is as filed is a success that says so, what is not comparable or was not run is skipped, and a file
/// that does not read is an error.
///
/// # Errors
/// Where the text cannot be made.
pub fn xml(records: &[Record]) -> Result<String, String> {
    let mut report = Report::new("shrinkfault regress");
    let mut targets: Vec<&str> = records.iter().map(|r| r.target.as_str()).collect();
    targets.sort_unstable();
    targets.dedup();
    for target in targets {
        let mut suite = TestSuite::new(target);
        suite.add_test_cases(records.iter().filter(|r| r.target == target).map(test));
        suite.set_time(records.iter().filter(|r| r.target == target).map(|r| r.took).sum());
        report.add_test_suite(suite);
    }
    report.set_time(records.iter().map(|r| r.took).sum());
    report.to_string().map_err(|e| e.to_string())
}

fn test(record: &Record) -> TestCase {
    let mut status = match record.word {
        Ok(word) if word.is_as_filed() => TestCaseStatus::success(),
        Ok(word) if word.is_failure() => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Ok(_) => TestCaseStatus::skipped(),
        Err(()) => TestCaseStatus::non_success(NonSuccessKind::Error),
    };
    let word = record.word.map_or("unreadable", Word::text);
    let text = format!("{word}: {}", record.text);
    let is_success = record.word.is_ok_and(Word::is_as_filed);
    if !is_success {
        status.set_message(text.clone());
        if record.word.is_err() || record.word.is_ok_and(Word::is_failure) {
            status.set_type(word);
        }
    }
    let mut test = TestCase::new(record.name.clone(), status);
    test.set_classname(record.target.clone()).set_time(record.took);
    if is_success {
        test.set_system_out(text);
    }
    test
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(target: &str, name: &str, word: Result<Word, ()>) -> Record {
        let text = "a < b & \"c\" \u{1}".to_owned();
        Record { target: target.into(), name: name.into(), word, text, took: Duration::from_millis(1500) }
    }

    #[test]
    fn every_finding_is_one_test_and_failures_are_counted() {
        let records = [
            record("cblas@libx.so", "a", Ok(Word::Reproduced)),
            record("sim:clean", "b", Ok(Word::Moved)),
            record("cblas@libx.so", "c", Ok(Word::Back)),
            record("cblas@libx.so", "d", Ok(Word::NotComparable)),
            record("cblas@libx.so", "e", Ok(Word::Skipped)),
            record("files", "f.toml", Err(())),
            record("sim:clean", "g", Ok(Word::Fixed)),
        ];
        let xml = xml(&records).unwrap();
        let report = Report::deserialize_from_str(&xml).unwrap();
        assert_eq!((report.tests, report.failures, report.errors), (7, 2, 1));
        assert_eq!(report.test_suites.len(), 3);
        assert_eq!(xml.matches("<skipped ").count(), 2, "{xml}");
        assert!(xml.contains("a &lt; b &amp;") && !xml.contains('\u{1}'), "{xml}");
    }
}
