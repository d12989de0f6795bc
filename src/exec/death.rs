//! From how a worker ended to a verdict on the case that it was running.

use super::child::Exit;
use super::protocol::Hello;
use super::verdict::{Fault, Verdict};
use super::worker::{Death, describe_exit, last_line};
use crate::device::cpu::Fault as RawFault;
use crate::evidence::GpuFault;
use crate::evidence::symbol::locate;
use crate::problem::Instance;
use crate::worker::layout::Layout;

/// Addresses below this are null-pointer territory: a crash, not an offset error.
const NULL_BYTES: u64 = 64 << 10;

/// The verdict on the culprit. `placed` ties addresses to operands: the layout it ran in, and its place there.
pub fn verdict(death: &Death, hello: &Hello, placed: Option<(&Layout, usize, &Instance)>) -> Verdict {
    match death {
        Death::Deadline { after } => Verdict::Hang { after_ms: after.as_millis() as u64 },
        Death::Protocol(what) => Verdict::Crash { how: what.clone(), code: None },
        Death::Ended { exit: Exit::Signal(signal), fault, .. } if [libc::SIGSEGV, libc::SIGBUS].contains(signal) => {
            memory(*signal, fault.as_ref(), hello, placed)
        }
        // Kernels for another processor, asked for by name: nothing that the library does by itself.
        Death::Ended { exit: Exit::Signal(libc::SIGILL), .. } if hello.description.core.is_some() => {
            let core = hello.description.core.as_deref().unwrap_or_default();
            Verdict::Skipped {
                detail: format!("SIGILL: this processor lacks instructions that core={core} uses"),
                state: false,
            }
        }
        Death::Ended { exit, stderr_tail, .. } => {
            let said = last_line(stderr_tail);
            Verdict::Crash { how: format!("{}: {said}", describe_exit(*exit)), code: None }
        }
    }
}

/// The verdict on a case that a GPU ended, as its worker told it.
pub fn on_device(told: &GpuFault, placed: Option<(&Layout, usize, &Instance)>) -> Verdict {
    if !told.is_memory {
        return Verdict::Crash { how: told.status.clone(), code: None };
    }
    let hit = match (told.address, placed) {
        (Some(address), Some((layout, index, instance))) => layout.locate(index, instance, address),
        _ => None,
    };
    let page = (told.grain > 1).then_some(told.grain);
    let channel = told.channel.clone();
    Verdict::Fault(Fault { address: told.address, page, access: told.access, hit, code: None, channel })
}

fn memory(signal: i32, raw: Option<&RawFault>, hello: &Hello, placed: Option<(&Layout, usize, &Instance)>) -> Verdict {
    let name = if signal == libc::SIGBUS { "SIGBUS" } else { "SIGSEGV" };
    let Some(raw) = raw else {
        return Verdict::Crash { how: format!("{name} without a record of the handler"), code: None };
    };
    if raw.si_code <= 0 {
        return Verdict::Crash { how: format!("{name} sent by a process, not by an access"), code: None };
    }
    let code = locate(&hello.modules.modules, raw.pc).map(|c| c.to_string());
    let arena = hello.arena.base..hello.arena.base.saturating_add(hello.arena.len);
    if let Some(address) = raw.address.filter(|a| !arena.contains(a)) {
        let where_ = if address < NULL_BYTES {
            Some("in the first 64 KiB".to_owned())
        } else {
            hello.modules.region_at(address).map(|r| format!("in {}", r.name))
        };
        if let Some(where_) = where_ {
            return Verdict::Crash { how: format!("{name} at {address:#x}, {where_}"), code };
        }
    }
    let hit = match (raw.address, placed) {
        (Some(address), Some((layout, index, instance))) => layout.locate(index, instance, address),
        _ => None,
    };
    Verdict::Fault(Fault {
        address: raw.address,
        page: None,
        access: raw.access,
        hit,
        code,
        channel: format!("{name} handler"),
    })
}
