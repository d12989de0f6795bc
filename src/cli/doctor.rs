//! `doctor`: what this machine can do.

use super::args::{Exec, Library, Pins, Profile};
use super::exit::{ExitStatus, Failure};
use super::session::{Request, Session};
use crate::finding::Environment;
use crate::report::event::Event;
use crate::target::Caps;
use bytesize::ByteSize;
use std::path::PathBuf;
use std::time::Duration;

/// Starts a worker, proves the oracles, lists targets.
///
/// # Errors
/// Setup, where no worker can be started or an oracle cannot be proven.
pub fn run(case_timeout: Duration) -> Result<ExitStatus, Failure> {
    let exec = Exec {
        jobs: Some(1),
        out: PathBuf::new(),
        json: false,
        max_work: None,
        max_memory: 1 << 30,
        case_timeout,
        start_timeout: Duration::from_secs(60),
        confirm: 3,
        strict_gaps: false,
        quiet: false,
    };
    let session = Session::open(Request {
        problem: "gemm",
        target: "sim:clean",
        library: &Library { lib: None, int_width: None },
        pins: &Pins { set: vec![], range: vec![], dtype: None },
        also: vec![],
        profile: Profile::Strided,
        exec: &exec,
        time: None,
        work: (Caps::default().work, Caps::default().work),
    })?;
    let hello = session.pool.hello();
    let e = Environment::read("cpu", &hello.description);
    println!("shrinkfault {}", e.shrinkfault);
    println!("system      {}, {}", e.os, e.kernel);
    println!("processor   {}", e.cpu);
    println!("memory      {}, pages of {}", e.memory, e.page);
    println!(
        "arena       {} of addresses reserved, sparse: guards and gaps of any size fault",
        ByteSize::b(hello.arena.len)
    );
    if let Event::SelfTest { proven, not_detectable, seconds } = session.self_test()? {
        println!("self-test   {} proven in {seconds:.1} s", proven.join(", "));
        if !not_detectable.is_empty() {
            println!("            not detectable here: {}", not_detectable.join(", "));
        }
    }
    println!("devices     cpu; no GPU is used by this version");
    println!();
    super::targets::libraries();
    Ok(ExitStatus::Fine)
}
