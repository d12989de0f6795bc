//! Which reporter a run gets, and small words that several commands share.

use super::args::{Exec, Profile};
use crate::exec::blame::GapRule;
use crate::exec::interrupt::Interrupt;
use crate::report::event::Reporter;
use crate::report::json::JsonLines;
use crate::report::progress::Live;
use crate::report::terminal::{Detail, Plain, Pulse};
use std::io::IsTerminal;

/// JSON Lines where asked for; a live line on a terminal; plain lines otherwise.
pub fn reporter(exec: &Exec, interrupt: &Interrupt) -> Box<dyn Reporter + Send> {
    let detail = Detail { quiet: exec.quiet, stats: exec.stats };
    if exec.json {
        Box::new(JsonLines::new(std::io::stdout(), interrupt.clone(), (!exec.quiet).then(Pulse::default)))
    } else if std::io::stderr().is_terminal() && std::io::stdout().is_terminal() && !exec.quiet {
        Box::new(Live::new(detail))
    } else {
        Box::new(Plain::with_progress(detail))
    }
}

pub fn gap_rule(exec: &Exec) -> GapRule {
    if exec.strict_gaps { GapRule::Strict } else { GapRule::Note }
}

pub fn profile_word(profile: Profile) -> &'static str {
    match profile {
        Profile::Strided => "strided",
        Profile::Packed => "packed",
    }
}
