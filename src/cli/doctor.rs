//! `doctor`: what this machine can do.

use super::args::Exec;
use super::exit::{ExitStatus, Failure};
use super::session::{Session, small_moats};
use crate::finding::Environment;
use crate::report::event::Event;
use crate::report::stdout::say;
use bytesize::ByteSize;
use std::time::Duration;

/// Starts a worker, proves the oracles, lists targets.
///
/// # Errors
/// Setup, where no worker can be started or an oracle cannot be proven.
pub fn run(case_timeout: Duration) -> Result<ExitStatus, Failure> {
    let exec = Exec {
        jobs: Some(1),
        json: false,
        max_work: None,
        max_memory: 1 << 30,
        case_timeout: Some(case_timeout),
        start_timeout: None,
        confirm: 3,
        strict_gaps: false,
        sanitizer: false,
        quiet: false,
        stats: false,
    };
    let session = Session::plain(&exec)?;
    let hello = session.pool.hello();
    let e = Environment::read("cpu", &hello.description);
    say!("shrinkfault {}", e.shrinkfault);
    say!("system      {}, {}", e.os, e.kernel);
    say!("processor   {}", e.cpu);
    say!("memory      {}, pages of {}", e.memory, e.page);
    say!(
        "arena       {} of addresses reserved, sparse: guards and gaps of any size fault",
        ByteSize::b(hello.arena.len)
    );
    if let Some(warning) = small_moats(session.problem(), hello.arena) {
        say!("            warning: {warning}");
    }
    if let Event::SelfTest { proven, not_detectable, seconds, .. } = session.self_test()? {
        say!("self-test   {} proven in {seconds:.1} s", proven.join(", "));
        if !not_detectable.is_empty() {
            say!("            not detectable here: {}", not_detectable.join(", "));
        }
    }
    say!("devices     cpu; {}", super::targets::gpus());
    say!();
    super::targets::libraries();
    Ok(ExitStatus::Fine)
}
