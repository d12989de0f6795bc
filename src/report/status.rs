//! How a hunt stands, in a file that another terminal reads: `shrinkfault status`.

use super::event::{Event, Phase, Reporter, Tally};
use crate::finding::store::atomic;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

/// Version of the file.
pub const STATUS_FORMAT: u32 = 1;

/// The file is written at most so often while nothing is found.
const EVERY: Duration = Duration::from_millis(500);

/// What a hunt is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Doing {
    Searching,
    Confirming,
    Shrinking {
        case: u64,
        /// The smallest case so far.
        best: String,
    },
}

/// How a hunt stands. Times are as RFC 3339 writes them, in UTC.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    pub status: u32,
    pub version: String,
    pub hunt: String,
    pub pid: u32,
    /// The command line, without --resume.
    pub command: Vec<String>,
    pub problem: String,
    pub target: String,
    pub seed: u64,
    pub shard: String,
    /// When the hunt began; it may have been cut short and gone on with since.
    pub began: String,
    pub updated: String,
    pub doing: Doing,
    pub tally: Tally,
    /// Of all its runs.
    pub seconds: f64,
    /// After how many cases it ends.
    pub cases: Option<u64>,
    /// When it ends.
    pub until: Option<String>,
    pub keep_going: bool,
    pub findings: Vec<String>,
    pub known: BTreeMap<String, u64>,
    /// Why it ended.
    pub ended: Option<String>,
    /// It ended by itself.
    pub complete: bool,
}

/// Now, as the file writes it.
pub fn now() -> String {
    at(SystemTime::now())
}

/// A time, as the file writes it.
pub fn at(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}

/// Passes events on, and keeps the file.
pub struct StatusFile {
    path: PathBuf,
    standing: Standing,
    written: Option<Instant>,
    inner: Box<dyn Reporter + Send>,
    /// Case that is being shrunk.
    case: u64,
}

impl StatusFile {
    pub fn new(path: PathBuf, standing: Standing, inner: Box<dyn Reporter + Send>) -> StatusFile {
        StatusFile { path, standing, written: None, inner, case: 0 }
    }

    fn hear(&mut self, event: &Event) {
        let s = &mut self.standing;
        match event {
            Event::Progress { phase, tally, seconds } => {
                s.doing = match phase {
                    Phase::Searching => Doing::Searching,
                    Phase::Confirming => Doing::Confirming,
                    Phase::Shrinking(best) => Doing::Shrinking { case: self.case, best: best.clone() },
                };
                (s.tally, s.seconds) = (tally.clone(), *seconds);
                if self.written.is_none_or(|w| w.elapsed() >= EVERY) {
                    self.write();
                }
            }
            Event::Resumed { tally, seconds, findings, known } => {
                (s.tally, s.seconds) = (tally.clone(), *seconds);
                (s.findings, s.known) = (findings.clone(), known.clone());
                self.write();
            }
            Event::Known { finding, .. } => *s.known.entry(finding.clone()).or_default() += 1,
            Event::Shrinking { id, .. } => self.case = *id,
            Event::Finding { name, .. } => {
                s.findings.push(name.clone());
                self.write();
            }
            Event::Finished { summary } => {
                (s.tally, s.seconds) = (summary.tally.clone(), summary.seconds);
                (s.findings, s.known) = (summary.findings.clone(), summary.known.clone());
                (s.ended, s.complete) = (Some(summary.ended.clone()), summary.complete);
                s.doing = Doing::Searching;
                self.write();
            }
            _ => {}
        }
    }

    /// Writes the file. That it cannot be written ends no hunt: it only says how things stand.
    fn write(&mut self) {
        self.standing.updated = now();
        if let Ok(mut text) = serde_json::to_string_pretty(&self.standing) {
            text.push('\n');
            let _ = atomic::show(&self.path, text.as_bytes());
        }
        self.written = Some(Instant::now());
    }
}

impl Reporter for StatusFile {
    fn event(&mut self, event: &Event) {
        self.hear(event);
        self.inner.event(event);
    }

    fn hears_cases(&self) -> bool {
        self.inner.hears_cases()
    }
}
