//! Help for tests that start processes.

use std::env;
use std::thread;
use std::time::{Duration, Instant};

use super::spawn::ChildSpec;

/// Set in the process that runs one test alone.
const ALONE: &str = "SHRINKFAULT_TEST_ALONE";

/// Whether this process runs one test alone.
pub(crate) fn is_alone() -> bool {
    env::var_os(ALONE).is_some()
}

/// This test program, running only the test of this full name.
pub(crate) fn alone(test: &str) -> ChildSpec {
    let mut spec = ChildSpec::new(env::current_exe().unwrap());
    spec.args = vec![test.into(), "--exact".into(), "--nocapture".into()];
    spec.env_set = vec![(ALONE.into(), "1".into())];
    spec
}

/// Whether a process is dead soon; what is not our child is reaped by init, a little later.
pub(crate) fn is_gone(pid: i32) -> bool {
    let deadline = Instant::now() + Duration::from_secs(20);
    while Instant::now() < deadline {
        match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
            Err(_) => return true,
            Ok(stat) if stat.contains(") Z ") => return true,
            Ok(_) => thread::sleep(Duration::from_millis(2)),
        }
    }
    false
}
