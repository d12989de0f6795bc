//! The progress line on a terminal. The only file that knows indicatif.

use super::event::{Event, Phase, Reporter, Tally};
use super::terminal::{Detail, Plain};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// One live line under the plain report: phase, cases a second, counts, and the best case so far while shrinking.
#[derive(Debug)]
pub struct Live {
    bar: ProgressBar,
    plain: Plain,
}

impl Live {
    pub fn new(detail: Detail) -> Live {
        let bar = ProgressBar::new_spinner();
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(8));
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(125));
        Live { bar, plain: Plain::new(detail) }
    }
}

impl Reporter for Live {
    fn event(&mut self, event: &Event) {
        match event {
            Event::Progress { phase, tally, seconds } => self.bar.set_message(line(phase, tally, *seconds)),
            Event::Finished { .. } => {
                self.bar.finish_and_clear();
                self.plain.event(event);
            }
            other => {
                let plain = &mut self.plain;
                self.bar.suspend(|| plain.event(other));
            }
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn line(phase: &Phase, tally: &Tally, seconds: f64) -> String {
    let rate = if seconds > 0.0 { tally.all() as f64 / seconds } else { 0.0 };
    match phase {
        Phase::Searching => {
            format!("searching  {} cases  {rate:.0}/s  {}", tally.all(), super::terminal::counts(tally))
        }
        Phase::Confirming => "confirming".to_owned(),
        Phase::Shrinking(best) => format!("shrinking  best so far: {best}"),
    }
}
