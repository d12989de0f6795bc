//! One sentence for people: what went wrong.

use super::encode::whole_elements;
use super::facts::Facts;
use super::name::library_file;
use crate::device::Access;
use crate::exec::history::Earlier;
use crate::exec::{Hit, Place, Verdict, Wrong, WrongKind};

/// What happened in the minimal case, as a sentence without a full stop.
pub fn sentence(facts: &Facts) -> String {
    let mut target = facts.target.clone();
    let library = target.library.take();
    let on = match &library {
        Some(path) => library_file(path).to_owned(),
        None => target.to_string(),
    };
    format!("{} on {on} {}{}", facts.problem.name, what(facts), after(facts))
}

/// What has to run before it in the same process.
fn after(facts: &Facts) -> String {
    match facts.history.as_ref().map(|h| &h.before) {
        None => String::new(),
        Some(before) if before.iter().all(|e| *e == Earlier::Same) => {
            format!(", in run {} of one process", before.len() + 1)
        }
        Some(before) if before.len() == 1 => ", after another case in the same process".to_owned(),
        Some(before) => format!(", after {} cases in the same process", before.len()),
    }
}

fn what(facts: &Facts) -> String {
    match &facts.verdict {
        Verdict::Fault(f) => match &f.hit {
            Some(hit) if f.page.is_some() => {
                let (page, with) = (f.page.unwrap_or(0), if hit.from_edge == 0 { "with " } else { "" });
                format!("{} in the page of {page} bytes that begins {with}{}", verb(f.access), place(facts, hit))
            }
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
    let elements = w.elements();
    match w.kind {
        WrongKind::Value => format!("gives {elements} a wrong value"),
        WrongKind::Unwritten => format!("leaves {elements} unwritten"),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::Fault;
    use crate::finding::testing::atlas;

    fn fault(place: Place, from_base: i64, from_edge: i64, copy: u32) -> Verdict {
        let hit = Some(Hit { operand: "B".into(), copy, place, from_base, from_edge });
        Verdict::Fault(Fault { hit, access: Some(Access::Write), ..Fault::default() })
    }

    #[test]
    fn a_title_says_what_where_and_how_far() {
        let wrong = |kind| {
            Verdict::Wrong(Wrong {
                kind,
                operand: "C".into(),
                copy: 0,
                first: vec![],
                count: 3,
                compared: 8,
                hit: None,
            })
        };
        let titles = [
            (fault(Place::PastEnd, 64, 0, 0), "writes the first byte past the end of B"),
            (fault(Place::PastEnd, 64, 8, 2), "writes 2 elements (8 bytes) past the end of B of rank 2"),
            (fault(Place::BeforeStart, -6, -6, 0), "writes 6 bytes before the start of B"),
            (fault(Place::Gap, 4096, 0, 0), "writes between the rows of B, 1024 elements (4096 bytes) from its base"),
            (
                fault(Place::Far, 1 << 32, 1 << 31, 0),
                "writes 1073741824 elements (4294967296 bytes) above the base of B",
            ),
            (
                Verdict::Fault(Fault { address: Some(16), ..Fault::default() }),
                "touches 0x10, an address near no operand",
            ),
            (Verdict::Fault(Fault::default()), "touches an address that is not known"),
            (wrong(WrongKind::Value), "gives 3 of 8 elements of C a wrong value"),
            (wrong(WrongKind::Unwritten), "leaves 3 of 8 elements of C unwritten"),
            (wrong(WrongKind::Stray), "changes 3 bytes that are no elements of C"),
            (Verdict::Hang { after_ms: 500 }, "does not return within 500 ms"),
            (Verdict::Crash { how: "SIGABRT".into(), code: None }, "dies: SIGABRT"),
        ];
        for (verdict, expected) in titles {
            let facts = Facts { verdict, ..atlas() };
            assert_eq!(sentence(&facts), format!("gemm on libatlas.so.3 {expected}"));
        }
    }
}
