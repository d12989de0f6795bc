//! One sentence for people: what went wrong.

use super::encode::whole_elements;
use super::facts::Facts;
use super::name::library_file;
use crate::device::Access;
use crate::exec::{Hit, Place, Verdict, Wrong, WrongKind};

/// What happened in the minimal case, as a sentence without a full stop.
pub fn sentence(facts: &Facts) -> String {
    let mut target = facts.target.clone();
    let library = target.library.take();
    let on = match &library {
        Some(path) => library_file(path).to_owned(),
        None => target.to_string(),
    };
    format!("{} on {on} {}", facts.problem.name, what(facts))
}

fn what(facts: &Facts) -> String {
    match &facts.verdict {
        Verdict::Fault(f) => match &f.hit {
            Some(hit) => format!("{} {}", verb(f.access), place(facts, hit)),
            None => match f.address {
                Some(a) => format!("{} {a:#x}, an address near no operand", verb(f.access)),
                None => format!("{} an address that is not known", verb(f.access)),
            },
        },
        Verdict::Wrong(w) => wrong(facts, w),
        Verdict::Hang { after_ms } => format!("does not return within {after_ms} ms"),
        Verdict::Crash { how, .. } => format!("dies: {how}"),
        Verdict::Pass { .. } | Verdict::Refused { .. } | Verdict::Skipped { .. } => facts.verdict.word().to_owned(),
    }
}

fn verb(access: Option<Access>) -> &'static str {
    match access {
        Some(Access::Read) => "reads",
        Some(Access::Write) => "writes",
        None => "touches",
    }
}

fn wrong(facts: &Facts, w: &Wrong) -> String {
    let of = |things: &str| format!("{} of {} {things}", w.count, w.compared);
    match w.kind {
        WrongKind::Value => format!("gives {} of {} a wrong value", of("elements"), w.operand),
        WrongKind::Unwritten => format!("leaves {} of {} unwritten", of("elements"), w.operand),
        WrongKind::Stray => match &w.hit {
            Some(hit) => format!("writes {}", place(facts, hit)),
            None => format!("changes {} bytes that are no elements of {}", w.count, w.operand),
        },
    }
}

fn place(facts: &Facts, hit: &Hit) -> String {
    let distance = |bytes: i64| {
        let size = bytes.unsigned_abs();
        match whole_elements(&facts.problem, &facts.minimal.params, &hit.operand, bytes) {
            Some(elements) if elements.unsigned_abs() != size => {
                format!("{} elements ({size} bytes)", elements.unsigned_abs())
            }
            _ => format!("{size} bytes"),
        }
    };
    let name = &hit.operand;
    let of = if hit.copy > 0 { format!("{name} of rank {}", hit.copy) } else { name.clone() };
    match (hit.place, hit.from_edge) {
        (Place::PastEnd, 0) => format!("the first byte past the end of {of}"),
        (Place::PastEnd, edge) => format!("{} past the end of {of}", distance(edge)),
        (Place::BeforeStart, edge) => format!("{} before the start of {of}", distance(edge)),
        (Place::Gap, _) => format!("between the rows of {of}, {} from its base", distance(hit.from_base)),
        (Place::Element, _) => format!("another element of {of}, {} from its base", distance(hit.from_base)),
        (Place::Far, _) => {
            let side = if hit.from_base < 0 { "below" } else { "above" };
            format!("{} {side} the base of {of}", distance(hit.from_base))
        }
    }
}
