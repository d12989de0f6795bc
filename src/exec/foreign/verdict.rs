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

/// What a program wrote beside the protocol since its last answer.
#[derive(Debug, Clone, Default)]
pub struct Said {
    pub stderr: String,
    /// Lines of stdout that do not begin with `{`.
    pub log: String,
}

impl Said {
    /// Stderr, or the log where that says nothing.
    pub fn last_words(&self) -> &str {
        if self.stderr.trim().is_empty() { &self.log } else { &self.stderr }
    }
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

/// The verdict on the case in flight when the program ended.
pub fn of_death(death: &Death, told: &Told, wrote: &Said, instance: Option<&Instance>, foreign: &Foreign) -> Verdict {
    let exit = match death {
        Death::Deadline { after } => return Verdict::Hang { after_ms: after.as_millis() as u64 },
        Death::Protocol(what) => return Verdict::Crash { how: what.clone(), code: None },
        Death::Ended { exit, .. } => *exit,
    };
    let crash = |how: String| Verdict::Crash { how: format!("{how}: {}", quoted(wrote.last_words())), code: None };
    let how = describe_exit(exit);
    let said = told.evidence.clone().unwrap_or_default();
    let Some(instance) = instance else { return crash(how) };
    if let Some(text) = device_text::find(&wrote.stderr, &foreign.manifest.fault_texts) {
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
    Verdict::Fault(Fault { address: evidence.address, page: None, access: evidence.access, hit, code: None, channel })
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

/// The last lines that say something.
fn quoted(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    let last: Vec<String> = lines[lines.len().saturating_sub(QUOTED_LINES)..].iter().map(|l| cut(l)).collect();
    if last.is_empty() { "it said nothing".to_owned() } else { last.join(" | ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::symbol::Region;
    use crate::manifest::Manifest;
    use crate::problem::{Case, Placement};
    use std::path::Path;
    use std::sync::Arc;

    const TIB: u64 = 1 << 40;
    /// Two rows of one element, 4096 elements apart: reads between them are allowed.
    const TEXT: &str = "name = 'x'\ncommand = ['x']\n[params.n]\nmin = 2\nmax = 2\n[[operands]]\nname = 'A'\n\
        dtype = 'f32'\naccess = 'rw'\ngaps = 'read'\ndims = [['n', '4096']]\n";

    fn foreign(strict_gaps: bool) -> Foreign {
        Foreign::new(Arc::new(Manifest::parse(Path::new("x.toml"), TEXT).unwrap()), strict_gaps)
    }

    fn instance() -> Instance {
        let problem = Arc::clone(&foreign(false).manifest.problem);
        let params = problem.plainest().unwrap();
        problem.instance(Case { params, knobs: Default::default(), placement: Placement::END }).unwrap()
    }

    fn told(address: u64, access: Access) -> Told {
        let region = |start: u64, end: u64, name: &str| Region { start, end, name: name.into() };
        let regions = vec![region(TIB - 8192, TIB + (1 << 20), "[heap]"), region(9 * TIB, 9 * TIB + 8192, "[stack]")];
        Told {
            announced: true,
            memory: vec![Memory { name: "A".into(), copy: 0, base: TIB, bytes: None }],
            evidence: Some(Evidence { address: Some(address), access: Some(access), rank: None }),
            modules: Modules { modules: vec![], regions },
        }
    }

    fn died(exit: Exit, told: &Told, stderr: &str, strict: bool) -> Verdict {
        let death = Death::Ended { exit, fault: None, stderr_tail: String::new() };
        let wrote = Said { stderr: stderr.to_owned(), log: "an illegal memory access, said the log".to_owned() };
        of_death(&death, told, &wrote, Some(&instance()), &foreign(strict))
    }

    fn segv(address: u64, access: Access, strict: bool) -> Verdict {
        died(Exit::Signal(libc::SIGSEGV), &told(address, access), "", strict)
    }

    #[test]
    fn an_address_of_the_process_itself_is_a_crash_unless_an_operand_lies_near() {
        let how = |address| match segv(address, Access::Write, false) {
            Verdict::Crash { how, .. } => how,
            other => panic!("{other:?}"),
        };
        assert!(how(8).contains("in the first 64 KiB"));
        assert!(how(TIB + (1 << 19)).contains("in [heap]"));
        assert!(how(9 * TIB + 16).contains("in [stack]"));
        assert!(how(9 * TIB - (8 << 20)).contains("below the stack"));
        assert!(
            matches!(segv(TIB - 4, Access::Write, false), Verdict::Fault(f) if f.hit.is_some()),
            "A lies in the heap"
        );
        assert!(matches!(segv(TIB - (8 << 30), Access::Read, false), Verdict::Fault(f) if f.hit.is_some()));
    }

    #[test]
    fn a_read_between_elements_that_the_manifest_allows_is_the_programs_to_map() {
        assert!(matches!(segv(TIB + 64, Access::Read, false), Verdict::Skipped { state: false, .. }));
        assert!(matches!(segv(TIB + 64, Access::Read, true), Verdict::Fault(_)), "--strict-gaps");
        assert!(matches!(segv(TIB + 64, Access::Write, false), Verdict::Fault(_)), "a write");
    }

    #[test]
    fn a_device_text_counts_on_stderr_only_and_whatever_the_exit_was() {
        let silent = Told { evidence: None, ..told(0, Access::Read) };
        let line = "x\nMemory access fault by GPU node-1 on address 0x10000004000. Reason: Unknown.\n";
        for exit in [Exit::Signal(libc::SIGABRT), Exit::Code(1), Exit::Signal(libc::SIGSEGV)] {
            let Verdict::Fault(fault) = died(exit, &silent, line, false) else { panic!("{exit:?}") };
            assert_eq!((fault.address, fault.access), (Some(TIB + 0x4000), None));
            assert_eq!(fault.hit.map(|h| h.place), Some(Place::Element));
        }
        assert!(
            matches!(died(Exit::Code(1), &silent, "", false), Verdict::Crash { how, .. } if how.contains("the log"))
        );
        assert!(
            matches!(died(Exit::Signal(libc::SIGBUS), &silent, "", false), Verdict::Fault(f) if f.address.is_none())
        );
    }
}
