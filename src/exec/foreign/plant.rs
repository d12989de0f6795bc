//! A foreign program with a planted failure for each way in which one can end: what the self-test starts.

use serde_json::{Value as Json, json};
use std::io::{BufRead, Write};
use std::time::Duration;

/// Knob that names the failure.
pub const KNOB: &str = "plant";
/// Bytes of the one operand, which ends where an unmapped page begins.
pub const OPERAND_BYTES: u64 = 16;

const PAGE: usize = 4096;

/// The program: answers cases until its input ends, each in the way that its knob says. Its exit code.
pub fn main() -> i32 {
    let Some(guard) = guard() else {
        say(&json!({"setup_failed": "no memory for the self-test"}));
        return 3;
    };
    say(&json!({"shrinkfault": 1}));
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(case) = serde_json::from_str::<Json>(&line) else { return 1 };
        let id = &case["id"];
        say(&json!({"id": id, "launch": {"A": format!("{:#x}", guard - OPERAND_BYTES)}}));
        match case["knobs"][KNOB].as_str().unwrap_or("none") {
            "wrong" => say(&json!({"id": id, "verdict": "wrong", "operand": "A", "first": 3, "count": 1})),
            "fault" => say(&json!({"id": id, "verdict": "fault", "address": format!("{guard:#x}"), "access": "r"})),
            "signal" => {
                say(&json!({"id": id, "evidence": {"address": format!("{guard:#x}"), "access": "r"}}));
                // SAFETY: the page is this process's own and not accessible: the read ends the process, as it should.
                std::hint::black_box(unsafe { std::ptr::read_volatile(guard as *const u8) });
            }
            "stderr" => {
                eprintln!("Memory access fault by GPU node-1 on address {guard:#x}. Reason: planted by the self-test.");
                return 1;
            }
            "exit" => return 7,
            "hang" => std::thread::sleep(Duration::from_secs(3600)),
            _ => say(&json!({"id": id, "verdict": "pass"})),
        }
    }
    0
}

fn say(line: &Json) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// The address of an inaccessible page with an accessible one before it.
fn guard() -> Option<u64> {
    // SAFETY: a new mapping at an address that the kernel chooses replaces nothing; its second page is made inaccessible.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let base = libc::mmap(std::ptr::null_mut(), 2 * PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        if base == libc::MAP_FAILED {
            return None;
        }
        let guard = base.cast::<u8>().add(PAGE);
        (libc::mprotect(guard.cast(), PAGE, libc::PROT_NONE) == 0).then_some(guard as u64)
    }
}
