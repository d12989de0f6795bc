//! How a replayed finding is read aloud.

use super::event::{BoundaryLine, Replayed};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// One line, and where there is more to say, lines below it.
pub fn line(r: &Replayed, quiet: bool) -> String {
    let filed = if r.status == "fixed" { " (filed as fixed)" } else { "" };
    let said = r.why.as_ref().unwrap_or(&r.title);
    let rate = if r.failed > 0 { format!(" ({} of {} runs failed)", r.failed, r.runs) } else { String::new() };
    let mut out = format!("{:<14}  {}{filed}: {said}{rate}", r.outcome, r.finding);
    let more = r.boundary.as_ref().map(boundary).into_iter();
    let more = more.chain(r.updated.as_ref().map(|path| format!("written: {}", path.display())));
    let more = more.chain(r.not_updated.as_ref().map(|why| format!("not written: {why}")));
    let notes = r.notes.iter().filter(|_| !quiet).cloned();
    for text in more.chain(notes) {
        let _ = write!(out, "\n{:<14}  {text}", "");
    }
    out
}

/// `ldb: last good 7, first bad 8; now last good 15, first bad 16`.
pub fn boundary(b: &BoundaryLine) -> String {
    let now = match (&b.new_good, &b.new_bad, &b.why) {
        (Some(good), Some(bad), _) => format!("last good {good}, first bad {bad}"),
        (_, _, Some(why)) => why.clone(),
        _ => "unknown".to_owned(),
    };
    format!("{}: last good {}, first bad {} in the file; now {now}", b.param, b.old_good, b.old_bad)
}

/// The last line.
pub fn end(outcomes: &BTreeMap<&'static str, u64>, unreadable: u64, seconds: f64) -> String {
    let all: u64 = outcomes.values().sum();
    let mut said: Vec<String> = outcomes.iter().map(|(word, n)| format!("{n} {word}")).collect();
    if unreadable > 0 {
        said.push(format!("{unreadable} unreadable"));
    }
    let said = if said.is_empty() { "none was replayed".to_owned() } else { said.join(", ") };
    let s = if all == 1 { "" } else { "s" };
    format!("{all} finding{s} in {seconds:.1} s: {said}")
}
