//! `doctor`: what this machine can do.

use super::args::Exec;
use super::exit::{ExitStatus, Failure};
use super::session::{Session, small_moats};
use crate::device::{Device, cuda};
use crate::evidence::kernel_log::KernelLog;
use crate::exec::sanitizer;
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
        quiet: false,
        stats: false,
    };
    let session = Session::plain(&exec, Device::Cpu)?;
    let hello = session.pool.hello();
    let e = Environment::read("cpu", &hello.description);
    say!("shrinkfault {}", e.shrinkfault);
    say!("system      {}, {}", e.os, e.kernel);
    say!("processor   {}", e.cpu);
    say!("memory      {}, pages of {}", e.memory, e.page);
    arena(&session)?;
    say!("devices     cpu; {}", super::targets::gpus());
    let healthy = match cuda::count() {
        Ok(count) if count > 0 => gpu(&exec),
        _ => true,
    };
    say!();
    super::targets::libraries();
    Ok(if healthy { ExitStatus::Fine } else { ExitStatus::Setup })
}

/// What the memory of a session's device can show, and the proof of it.
fn arena(session: &Session) -> Result<(), Failure> {
    let hello = session.pool.hello();
    say!(
        "arena       {} of addresses reserved, in pages of {}, sparse: guards and gaps of any size fault",
        ByteSize::b(hello.arena.len),
        ByteSize::b(hello.arena.page_bytes)
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
    Ok(())
}

/// The first GPU: what it is, which channels tell of its faults, which libraries are found. Whether it proved its oracles.
fn gpu(exec: &Exec) -> bool {
    let session = match Session::plain(exec, Device::Cuda) {
        Ok(session) => session,
        Err(e) => {
            say!("gpu         {e}");
            return false;
        }
    };
    for (name, value) in &session.pool.hello().description.identity {
        say!("{name:<12}{value}");
    }
    let proven = arena(&session);
    if let Err(e) = &proven {
        say!("self-test   {e}");
    }
    match KernelLog::open() {
        Ok(_) => say!("faults      page, read or write from the kernel's log"),
        Err(why) => say!("faults      no address: {why}"),
    }
    match sanitizer::find() {
        Some(tool) => say!("            the byte from {} with --sanitizer", tool.display()),
        None => say!("            no compute-sanitizer in PATH: --sanitizer says nothing"),
    }
    for stem in ["nvrtc", "cublas", "cublasLt"] {
        match cuda::libraries::open(stem, None) {
            Ok(opened) => say!("library     {}", opened.path.display()),
            Err(why) => say!("library     {why}"),
        }
    }
    proven.is_ok()
}
