//! How a replayed finding is read aloud.

use super::event::{BoundaryLine, Replayed};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// One line, and where there is more to say, lines below it.
pub fn line(r: &Replayed, quiet: bool) -> String {
    let mut out = format!("{:<14}  {}", r.outcome, r.finding);
    if r.status == "fixed" {
        out.push_str(" (filed as fixed)");
    }
    match &r.why {
        Some(why) => drop(write!(out, ": {why}")),
        None => drop(write!(out, ": {}", r.title)),
    }
    if r.failed > 0 {
        let _ = write!(out, " ({} of {} runs failed)", r.failed, r.runs);
    }
    let mut below = |text: &str| drop(write!(out, "\n{:<14}  {text}", ""));
    if let Some(b) = &r.boundary {
        below(&boundary(b));
    }
    if let Some(path) = &r.updated {
        below(&format!("written: {}", path.display()));
    }
    if let Some(why) = &r.not_updated {
        below(&format!("not written: {why}"));
    }
    if !quiet {
        r.notes.iter().for_each(|n| below(n));
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
    let said = if said.is_empty() { "nothing to replay".to_owned() } else { said.join(", ") };
    format!("{all} findings in {seconds:.1} s: {said}")
}
