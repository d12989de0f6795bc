//! An offset that wraps onto mapped pages does not fault: the contents, or another stride, give it away.

mod common;

use common::{hunt, run};
use serde_json::Value;

/// Every column 2^32 elements after the one before it: in 32 bits all of them are the first column, which is mapped. And
/// columns 2^31 apart, of which every second one is.
const SILENT: [&str; 2] = ["gemm:m=40,n=3,k=40,ldb=4294967296", "gemm:m=40,n=5,k=40,ldb=2147483648"];

fn verdict(case: &str, target: &str, code: i32) -> Value {
    let dir = tempfile::tempdir().unwrap();
    let r = run(dir.path(), &format!("run {case} --target {target} --json --out {{out}}/out")).expect(code);
    r.events_of("run")[0]["verdict"].clone()
}

#[test]
fn a_wrap_by_a_multiple_of_the_width_is_seen_in_the_contents() {
    let said = verdict(SILENT[0], "sim:i32-sum,operand=B", 1);
    assert!(said["wrong"].is_object(), "{said}");
    // The clean twin passes, so the contents are not to blame.
    let said = verdict(SILENT[0], "sim:clean", 0);
    assert!(said["pass"].is_object(), "{said}");
}

#[test]
fn a_wrap_of_writes_by_a_multiple_of_the_width_is_seen_in_the_contents() {
    let said = verdict("gemm:m=40,n=3,k=8,ldc=4294967296", "sim:i32-sum,operand=C", 1);
    assert!(said["wrong"].is_object(), "{said}");
}

#[test]
fn a_stride_of_exactly_two_to_the_31_faults_in_some_columns_and_is_wrong_in_others() {
    // Column 1 wraps to -2^31, which no page backs; columns 2 and 4 to columns 0 and 0.
    let said = verdict(SILENT[1], "sim:i32-sum,operand=B", 1);
    assert!(said["fault"].is_object(), "{said}");
}

/// All strides pinned to multiples of 2^32: every wrap lands on a mapped column, and only the contents tell.
#[test]
fn a_hunt_without_any_faulting_stride_finds_the_wrap_by_contents() {
    let dir = tempfile::tempdir().unwrap();
    let words = "gemm --target sim:i32-sum,operand=B --seed 3 --set ldb=4294967296 --set transB=N --set batch=1";
    let r = hunt(dir.path(), words).expect(1);
    let found = r.events_of("finding");
    let minimal = &found[0]["summary"]["minimal"]["params"];
    // Elements of two columns are equal by chance in 1 of 4, so the least case may need one more of something.
    let work: i64 = ["m", "n", "k"].map(|name| minimal[name].as_i64().unwrap()).into_iter().product();
    assert!(minimal["n"].as_i64() >= Some(2) && work <= 4, "{minimal}");
    let cases = r.events_of("case");
    assert!(cases.iter().all(|c| c["verdict"].get("fault").is_none()), "nothing faults under these pins");
    assert!(cases.iter().any(|c| c["verdict"].get("wrong").is_some()));
}

/// With the stride free, the same hunt meets the wrap where it faults.
#[test]
fn a_hunt_with_free_strides_finds_the_same_wrap_as_a_fault() {
    let dir = tempfile::tempdir().unwrap();
    let r = hunt(dir.path(), "gemm --target sim:i32-sum,operand=B --seed 3 --set transB=N --set batch=1").expect(1);
    assert!(r.events_of("case").iter().any(|c| c["verdict"].get("fault").is_some()));
}
