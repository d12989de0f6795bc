//! JSON Lines: one event a line on stdout. The schema is docs/events.md.

use super::event::{Event, Reporter};
use super::stdout;
use super::terminal::Pulse;
use crate::exec::interrupt::Interrupt;
use std::io::Write;

/// Writes every event but progress, of which there is a line a minute on stderr.
#[derive(Debug)]
pub struct JsonLines<W: Write> {
    out: W,
    /// Set when the reader goes away: the run ends in order.
    interrupt: Interrupt,
    progress: Option<Pulse>,
}

impl<W: Write> JsonLines<W> {
    pub fn new(out: W, interrupt: Interrupt, progress: Option<Pulse>) -> JsonLines<W> {
        JsonLines { out, interrupt, progress }
    }
}

impl<W: Write> Reporter for JsonLines<W> {
    fn hears_cases(&self) -> bool {
        true
    }

    fn event(&mut self, event: &Event) {
        if let Event::Progress { phase, tally, seconds } = event {
            if let Some(pulse) = &mut self.progress {
                pulse.beat(phase, tally, *seconds);
            }
            return;
        }
        let written = serde_json::to_writer(&mut self.out, event)
            .map_err(std::io::Error::from)
            .and_then(|()| self.out.write_all(b"\n"))
            .and_then(|()| self.out.flush());
        if let Err(e) = written {
            stdout::failed(e);
            self.interrupt.set();
        }
    }
}
