//! What happens in a run, as reporters hear of it. Reporters only consume events.

use crate::exec::{Signature, Verdict};
use crate::problem::Value;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A case in outside form.
#[derive(Debug, Clone, Serialize)]
pub struct ShownCase {
    pub params: BTreeMap<String, Value>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub knobs: BTreeMap<String, Value>,
    pub placement: String,
    /// For people: the parameters that say something.
    #[serde(skip)]
    pub short: String,
}

/// Counts by verdict.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    pub pass: u64,
    /// Passes of which only a part of the work-groups ran.
    pub sampled: u64,
    pub fault: u64,
    pub wrong: u64,
    pub hang: u64,
    pub crash: u64,
    pub refused: u64,
    pub skipped: u64,
}

impl Tally {
    pub fn add(&mut self, verdict: &Verdict) {
        self.count(verdict.word(), matches!(verdict, Verdict::Pass { sample: Some(_) }));
    }

    /// Counts a case by the word of its verdict; `sampled`: only a part of its work-groups ran.
    pub fn count(&mut self, verdict: &str, sampled: bool) {
        let count = match verdict {
            "pass" => &mut self.pass,
            "fault" => &mut self.fault,
            "wrong" => &mut self.wrong,
            "hang" => &mut self.hang,
            "crash" => &mut self.crash,
            "refused" => &mut self.refused,
            _ => &mut self.skipped,
        };
        *count += 1;
        self.sampled += u64::from(sampled);
    }

    /// Cases that ran to a verdict about the target.
    pub fn ran(&self) -> u64 {
        self.pass + self.bad()
    }

    pub fn bad(&self) -> u64 {
        self.fault + self.wrong + self.hang + self.crash
    }

    pub fn all(&self) -> u64 {
        self.ran() + self.refused + self.skipped
    }
}

/// The end of a run in numbers.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    pub tally: Tally,
    pub seconds: f64,
    /// Worker processes started.
    pub processes: u64,
    /// Page ranges mapped or unmapped, over all cases.
    pub remapped: u64,
    pub coverage: crate::search::Coverage,
    /// Cases with harmless reads between rows.
    pub gap_notes: u64,
    /// Cases that answered past the time limit, and do not hang.
    pub slow: u64,
    /// Bad cases counted for findings that were known.
    pub known: BTreeMap<String, u64>,
    /// Bad cases that were not looked into: the cap of shrinks for their signature was reached, or the run ended.
    pub not_shrunk: u64,
    /// Bad verdicts that could not be made to happen again.
    pub unreproduced: u64,
    /// Names of new findings.
    pub findings: Vec<String>,
    /// SHA-256 over all cases, and over all verdicts, in case order: equal for equal runs.
    pub case_digest: String,
    pub verdict_digest: String,
    /// Why the run ended.
    pub ended: String,
    /// It ended by itself: nothing is left of it to go on with.
    pub complete: bool,
}

impl Summary {
    /// Cases failed, and the run ended before one of them was looked into: neither clean nor a finding.
    pub fn is_undecided(&self) -> bool {
        self.not_shrunk > 0 && self.findings.is_empty() && self.known.is_empty()
    }
}

/// Something that happened.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The run begins.
    Started {
        version: &'static str,
        problem: String,
        target: String,
        title: String,
        /// Runs on a built-in model.
        model: bool,
        seed: u64,
        /// The part of a campaign that this machine takes, such as `2/8`.
        shard: Option<String>,
        jobs: usize,
        pins: Vec<String>,
        out: PathBuf,
        /// Addresses reserved, bytes.
        arena_bytes: u64,
    },
    /// Oracles that the self-test proved, and what it cannot prove here.
    SelfTest { proven: Vec<String>, not_detectable: Vec<String>, not_proven: Vec<String>, seconds: f64 },
    /// Something that limits what the run can see.
    Warning { text: String },
    /// A hunt goes on where it was cut short, and how it stood there.
    Resumed { tally: Tally, seconds: f64, findings: Vec<String>, known: BTreeMap<String, u64> },
    /// One case and its verdict, in case order.
    Case { id: u64, origin: String, case: ShownCase, verdict: Verdict, kernel: Option<String> },
    /// Progress, a few times a second; not in the JSON stream.
    #[serde(skip)]
    Progress { phase: Phase, tally: Tally, seconds: f64 },
    /// A bad case was run alone in fresh processes.
    Confirmed { id: u64, verdict: Verdict, signature: Option<Signature>, bad: u32, runs: u32 },
    /// A bad case belongs to a finding that is known already.
    Known { id: u64, finding: String },
    /// A bad case was harmless, could not be reproduced, or is left as it is: what and why.
    Note { id: u64, text: String },
    /// The shrinker begins on a case.
    Shrinking { id: u64, case: ShownCase },
    /// The shrinker accepted a smaller case.
    Shrunk { step: String, case: ShownCase },
    /// A finding was written.
    Finding { name: String, path: PathBuf, summary: Box<FindingSummary> },
    /// The findings of one target are about to be replayed.
    Replaying { problem: String, target: String, title: String, model: bool, findings: usize },
    /// A finding was replayed.
    Replayed(Box<Replayed>),
    /// A file holds no finding.
    Unreadable { path: PathBuf, text: String },
    /// All findings were replayed: how many by outcome.
    Regressed { outcomes: BTreeMap<&'static str, u64>, unreadable: u64, seconds: f64 },
    /// Which side of a finding's line a shape lies on.
    Shape {
        /// In the list.
        place: String,
        /// For people.
        #[serde(skip)]
        short: String,
        params: BTreeMap<String, Value>,
        /// `past`, `before` or `cannot-say`.
        standing: &'static str,
        why: Option<String>,
    },
    /// All shapes were compared; none was run.
    Checked { finding: String, status: &'static str, past: u64, before: u64, cannot_say: u64 },
    /// The run is over.
    Finished { summary: Box<Summary> },
}

/// What became of a finding that was replayed.
#[derive(Debug, Clone, Serialize)]
pub struct Replayed {
    pub finding: String,
    pub path: PathBuf,
    pub target: String,
    /// `open` or `fixed`, as the file says.
    pub status: &'static str,
    /// `reproduced`, `back`, `moved`, `different`, `fixed`, `not-comparable` or `skipped`.
    pub outcome: &'static str,
    /// Of the finding.
    pub title: String,
    /// How it failed or why it was not run, where the outcome does not say.
    pub why: Option<String>,
    /// Of the minimal case, each in a fresh process.
    pub runs: u32,
    pub failed: u32,
    pub boundary: Option<BoundaryLine>,
    pub notes: Vec<String>,
    /// The file that `--update` wrote.
    pub updated: Option<PathBuf>,
    /// Why `--update` left the file as it is, where it should have changed it.
    pub not_updated: Option<String>,
}

/// The line of one parameter before and now, in outside form.
#[derive(Debug, Clone, Serialize)]
pub struct BoundaryLine {
    pub param: String,
    pub old_good: Value,
    pub old_bad: Value,
    pub new_good: Option<Value>,
    pub new_bad: Option<Value>,
    /// Where there is no new pair.
    pub why: Option<String>,
}

/// What a run is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    Searching,
    Confirming,
    /// Best case so far.
    Shrinking(String),
}

/// What the end of a run says aloud about a finding.
#[derive(Debug, Clone, Serialize)]
pub struct FindingSummary {
    /// What faulted, one sentence.
    pub title: String,
    pub minimal: ShownCase,
    /// The minimal case as a line of the target's own language, where it has one.
    pub call: Option<String>,
    pub witnesses: Vec<WitnessLine>,
    /// Where the access went; what was seen instead of an address for wrong results.
    pub evidence: Vec<String>,
    pub confirmed: String,
    pub irrelevant: Vec<String>,
    pub notes: Vec<String>,
    pub probes: String,
    /// Cases that have to run before the minimal one in the same process.
    pub before: Vec<ShownCase>,
}

/// One pair of witnesses in outside form.
#[derive(Debug, Clone, Serialize)]
pub struct WitnessLine {
    pub param: String,
    pub good: Option<Value>,
    pub bad: Value,
    /// How often each side was run, or why there is no certificate.
    pub note: String,
}

/// Hears of events in order.
pub trait Reporter {
    fn event(&mut self, event: &Event);

    /// Whether it takes [`Event::Case`], of which there are thousands a second.
    fn hears_cases(&self) -> bool {
        false
    }
}
