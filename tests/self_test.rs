//! Each oracle switched off in turn: the self-test must notice.

mod common;

use common::{Run, program};

fn with_broken(oracle: &str, args: &[&str]) -> Run {
    Run::of(program().args(args).env("SHRINKFAULT_BREAK_ORACLE", oracle).output().unwrap())
}

#[test]
fn an_oracle_that_is_switched_off_fails_the_self_test_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out").display().to_string();
    for oracle in ["guard", "gap", "canary", "sentinel", "deadline"] {
        for args in [&["gemm", "--cases", "64", "--out", &out][..], &["doctor"]] {
            let r = with_broken(oracle, args).expect(3);
            let error = r.stderr.lines().find(|l| l.starts_with("error: the self-test failed: ")).unwrap();
            assert!(error.contains(&format!("the {oracle} ")), "{error}");
            assert!(r.stderr.contains("this run proves nothing"), "{}", r.stderr);
        }
    }
}

#[test]
fn an_unknown_oracle_is_refused() {
    for args in [&["doctor"][..], &["run", "gemm:m=4"]] {
        let r = with_broken("luck", args).expect(3);
        assert!(r.stderr.contains("should be guard, gap, canary, sentinel or deadline"), "{}", r.stderr);
    }
}
