//! From what a foreign program said, or how it ended, to a verdict.

use super::Foreign;
use super::lines::{Evidence, Memory, Reply, Word, cut};
use super::place::{Belongs, locate};
use crate::device::Access;
use crate::evidence::device_text;
use crate::evidence::symbol::Modules;
use crate::exec::child::Exit;
use crate::exec::verdict::{Fault, Hit, NEAR_BYTES, Place, Verdict, Wrong, WrongKind};
use crate::exec::worker::{Death, describe_exit};
use crate::problem::{Gaps, Instance};

/// Addresses below this are null-pointer territory.
const NULL_BYTES: u64 = 64 << 10;
/// The kernel maps nothing so close below a stack: what faults there is the stack, grown past its limit.
const STACK_BYTES: u64 = 64 << 20;
/// Lines of stderr that a verdict quotes.
const QUOTED_LINES: usize = 3;

/// What a program said of the case in flight, before its answer.
#[derive(Debug, Clone, Default)]
pub struct Told {
    /// It announced the case.
    pub announced: bool,
    pub memory: Vec<Memory>,
    pub evidence: Option<Evidence>,
    /// What was mapped when it gave evidence, or said hello.
    pub modules: Modules,
}

/// The verdict that an answer states.
///
/// # Errors
/// What is wrong with the answer.
pub fn of_reply(reply: &Reply, told: &Told, instance: &Instance, foreign: &Foreign) -> Result<Verdict, String> {
    if let Some(name) = reply.operand.as_ref().filter(|n| instance.problem.operand(n).is_none()) {
        let known: Vec<&str> = instance.problem.operands.iter().map(|o| o.name.as_str()).collect();
        return Err(format!("operand = \"{}\", which is none of {}", cut(name), known.join(", ")));
    }
    let detail = || reply.detail.as_deref().map(cut).unwrap_or_default();
    Ok(match reply.word {
        Word::Pass => Verdict::Pass { sample: None },
        Word::Refused => Verdict::Refused { detail: detail() },
        Word::Skipped => Verdict::Skipped { detail: detail(), state: reply.state },
        Word::Wrong => Verdict::Wrong(wrong(reply, instance)),
        Word::Fault => {
            let evidence = joined(&reply.evidence, told.evidence.as_ref());
            let mut channel = "answer of the program".to_owned();
            if let Some(operand) = &reply.operand {
                channel.push_str(&format!(", about {operand}"));
            }
            if reply.detail.is_some() {
                channel.push_str(&format!(": {}", detail()));
            }
            fault(evidence, told, instance, foreign, channel)
        }
    })
}

/// The verdict on the case in flight when the program ended. `stderr` is what it wrote since the answer before.
pub fn of_death(death: &Death, told: &Told, stderr: &str, instance: Option<&Instance>, foreign: &Foreign) -> Verdict {
    let exit = match death {
        Death::Deadline { after } => return Verdict::Hang { after_ms: after.as_millis() as u64 },
        Death::Protocol(what) => return Verdict::Crash { how: what.clone(), code: None },
        Death::Ended { exit, .. } => *exit,
    };
    let crash = |how: String| Verdict::Crash { how: format!("{how}: {}", quoted(stderr)), code: None };
    let how = describe_exit(exit);
    let said = told.evidence.clone().unwrap_or_default();
    let Some(instance) = instance else { return crash(how) };
    if let Some(text) = device_text::find(stderr, &foreign.manifest.fault_texts) {
        let printed = Evidence { address: text.address, access: text.access, rank: None };
        let channel = format!("stderr: {}", text.line);
        return fault(joined(&said, Some(&printed)), told, instance, foreign, channel);
    }
    let name = match exit {
        Exit::Signal(libc::SIGSEGV) => "SIGSEGV",
        Exit::Signal(libc::SIGBUS) => "SIGBUS",
        _ => return crash(how),
    };
    if let Some(address) = said.address
        && !is_near_an_operand(told, instance, &said, address)
        && let Some(place) = no_operand(&told.modules, address)
    {
        return crash(format!("{name} at {address:#x}, {place}"));
    }
    let channel = if told.evidence.is_some() { format!("{name}, evidence of the program") } else { name.to_owned() };
    fault(said, told, instance, foreign, channel)
}

/// What the first source does not know, from the second.
fn joined(first: &Evidence, second: Option<&Evidence>) -> Evidence {
    let Some(second) = second else { return first.clone() };
    Evidence {
        address: first.address.or(second.address),
        access: first.access.or(second.access),
        rank: first.rank.or(second.rank),
    }
}

fn is_near_an_operand(told: &Told, instance: &Instance, said: &Evidence, address: u64) -> bool {
    match locate(&told.memory, instance, address, said.rank) {
        Belongs::Operand(hit) => hit.place != Place::Far || hit.from_edge.abs() <= NEAR_BYTES,
        Belongs::Scratch(_) => true,
        Belongs::Unclear => false,
    }
}

/// The part of a process that an address belongs to and that no kernel has business with.
fn no_operand(modules: &Modules, address: u64) -> Option<String> {
    if address < NULL_BYTES {
        return Some("in the first 64 KiB".to_owned());
    }
    if let Some(region) = modules.region_at(address) {
        return Some(format!("in {}", region.name));
    }
    let stack = modules.regions.iter().find(|r| r.name == "[stack]")?;
    (stack.end.saturating_sub(STACK_BYTES)..stack.start).contains(&address).then(|| "below the stack".to_owned())
}

fn fault(evidence: Evidence, told: &Told, instance: &Instance, foreign: &Foreign, mut channel: String) -> Verdict {
    let belongs = evidence.address.map(|a| locate(&told.memory, instance, a, evidence.rank));
    let hit = match belongs {
        Some(Belongs::Operand(hit)) => Some(hit),
        Some(Belongs::Scratch(name)) => {
            channel.push_str(&format!("; the address lies at {}, which is no operand", cut(&name)));
            None
        }
        Some(Belongs::Unclear) | None => None,
    };
    if let Some(hit) = hit.as_ref().filter(|h| !foreign.strict_gaps && is_allowed(h, &evidence, instance)) {
        let detail = format!(
            "read between the elements of {}, which the manifest allows; the program has to map what lies there",
            hit.operand
        );
        return Verdict::Skipped { detail, state: false };
    }
    Verdict::Fault(Fault { address: evidence.address, access: evidence.access, hit, code: None, channel })
}

/// Whether a correct run may read there.
fn is_allowed(hit: &Hit, evidence: &Evidence, instance: &Instance) -> bool {
    let gaps = instance.problem.operand(&hit.operand).map(|o| instance.problem.operands[o].gaps);
    hit.place == Place::Gap && evidence.access == Some(Access::Read) && gaps == Some(Gaps::Read)
}

/// What the program did not say is empty or 0; texts leave it out.
fn wrong(reply: &Reply, instance: &Instance) -> Wrong {
    let mut written = instance.views.iter().flatten().filter(|v| v.access.writes());
    let only = match (written.next(), written.next()) {
        (Some(v), None) => instance.problem.operands[v.operand].name.clone(),
        _ => String::new(),
    };
    Wrong {
        kind: WrongKind::Value,
        operand: reply.operand.clone().unwrap_or(only),
        copy: reply.evidence.rank.unwrap_or(0),
        first: reply.first.clone(),
        count: reply.count.unwrap_or(1),
        compared: reply.compared.unwrap_or(0),
        hit: None,
    }
}

/// The last lines of stderr that say something.
fn quoted(stderr: &str) -> String {
    let lines: Vec<&str> = stderr.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    let last: Vec<String> = lines[lines.len().saturating_sub(QUOTED_LINES)..].iter().map(|l| cut(l)).collect();
    if last.is_empty() { "it said nothing on stderr".to_owned() } else { last.join(" | ") }
}
