//! Plain lines for people: what happened, and at the end what to do next.

use super::event::{Event, FindingSummary, Phase, Reporter, Summary, Tally};
use super::replayed;
use super::stdout::{aside, say};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time between two progress lines where there is no terminal to redraw.
const PROGRESS_EVERY: Duration = Duration::from_secs(60);

/// Cases to run before a minimal one that are shown.
const BEFORE: usize = 8;

/// How much is said.
#[derive(Debug, Clone, Copy, Default)]
pub struct Detail {
    pub quiet: bool,
    /// What the cases covered is said even where something was found.
    pub stats: bool,
}

/// Writes to stdout, one line or block per event.
#[derive(Debug)]
pub struct Plain {
    detail: Detail,
    /// Known findings that were met: each is said once, and counted at the end.
    known: BTreeSet<String>,
    /// A shrink began, and nothing was said of its end.
    shrinking: bool,
    /// The sentence about models, said in the first and the last line.
    model_note: Option<String>,
    found: Vec<String>,
    progress: Option<Pulse>,
}

impl Plain {
    pub fn new(detail: Detail) -> Plain {
        Plain { detail, known: BTreeSet::new(), shrinking: false, model_note: None, found: vec![], progress: None }
    }

    /// With a progress line a minute, for logs.
    pub fn with_progress(detail: Detail) -> Plain {
        Plain { progress: (!detail.quiet).then(Pulse::default), ..Plain::new(detail) }
    }

    fn say(&self, text: &str) {
        // A reader that went away ends nothing: what is found is in files.
        say!("{text}");
    }
}

impl Reporter for Plain {
    fn event(&mut self, event: &Event) {
        let quiet = self.detail.quiet;
        match event {
            Event::Started { version, problem, target, title, model, seed, shard, pins, .. } => {
                let mut line = format!("shrinkfault {version}: {problem} on {target} ({title}), seed {seed}");
                if let Some(shard) = shard {
                    let _ = write!(line, ", shard {shard}");
                }
                if !pins.is_empty() {
                    let _ = write!(line, ", with {}", pins.join(" "));
                }
                if *model {
                    self.model_note = Some(model_note(problem));
                    line.push_str(&format!("\n{}", model_note(problem)));
                }
                self.say(&line);
            }
            Event::SelfTest { proven, not_detectable, not_proven, seconds } if !quiet => {
                let mut line = format!("self-test: {} proven in {seconds:.1} s", proven.join(", "));
                if !not_detectable.is_empty() {
                    let _ = write!(line, "; not detectable here: {}", not_detectable.join(", "));
                }
                if !not_proven.is_empty() {
                    let _ = write!(line, "; not proven: {}", not_proven.join(", "));
                }
                self.say(&line);
            }
            Event::Warning { text } => self.say(&format!("warning: {text}")),
            Event::Resumed { tally, seconds, findings, known } => {
                let known = known.values().sum::<u64>();
                self.say(&format!(
                    "resumed after {} cases in {seconds:.1} s: {}; {} new finding{}, {known} more case{} of known ones",
                    tally.all(),
                    counts(tally),
                    findings.len(),
                    if findings.len() == 1 { "" } else { "s" },
                    if known == 1 { "" } else { "s" },
                ));
            }
            Event::Confirmed { id, verdict, signature, bad, runs } if !quiet => {
                let what = signature.as_ref().map_or_else(String::new, |s| format!(" ({s})"));
                let word = verdict.word();
                self.say(&format!("case {id}: {word}{what}, alone in a fresh process {bad} of {runs} times"));
            }
            Event::Known { id, finding } => {
                let is_first = self.known.insert(finding.clone());
                // Also where a shrink ended in it.
                if !quiet && (std::mem::take(&mut self.shrinking) || is_first) {
                    self.say(&format!("case {id}: known as {finding}"));
                }
            }
            Event::Note { id, text } if !quiet => self.say(&format!("case {id}: {text}")),
            Event::Shrinking { case, .. } if !quiet => {
                self.shrinking = true;
                self.say(&format!("shrinking {}", case.short));
            }
            Event::Finding { name, path, summary } => {
                self.shrinking = false;
                self.found.push(name.clone());
                let word = if self.known.contains(name) { "known" } else { "found" };
                self.say(&finding(word, summary, path));
            }
            Event::Replaying { problem, target, title, findings, .. } if !quiet => {
                let s = if *findings == 1 { "" } else { "s" };
                self.say(&format!("{problem} on {target} ({title}): {findings} finding{s}"));
            }
            Event::Replayed(r) => self.say(&replayed::line(r, quiet)),
            Event::Regressed { outcomes, unreadable, seconds } => {
                self.say(&replayed::end(outcomes, *unreadable, *seconds));
            }
            Event::Shape { place, short, standing, why, .. } if !quiet || *standing == "past" => {
                let why = why.as_ref().map_or_else(String::new, |w| format!(" ({w})"));
                self.say(&format!("{:<10}  {place}: {short}{why}", standing.replace('-', " ")));
            }
            Event::Checked { finding, status, past, before, cannot_say } => self.say(&format!(
                "{past} past the line of {finding} (filed as {status}), {before} before it, {cannot_say} of which it cannot \
                 say; no case was run"
            )),
            Event::Finished { summary } => {
                let mut text = end(summary, self.detail);
                if let Some(note) = &self.model_note {
                    let _ = write!(text, "\n{note}");
                }
                self.say(&text);
            }
            Event::Progress { phase, tally, seconds } => {
                if let Some(pulse) = &mut self.progress {
                    pulse.beat(phase, tally, *seconds);
                }
            }
            _ => {}
        }
    }
}

/// A line a minute on stderr, so that a log shows that a run is alive.
#[derive(Debug)]
pub struct Pulse(Instant);

impl Default for Pulse {
    fn default() -> Pulse {
        Pulse(Instant::now())
    }
}

impl Pulse {
    /// Says what a run is doing, if it is time.
    pub fn beat(&mut self, phase: &Phase, tally: &Tally, seconds: f64) {
        if self.0.elapsed() < PROGRESS_EVERY {
            return;
        }
        self.0 = Instant::now();
        let what = match phase {
            Phase::Searching => "searching".to_owned(),
            Phase::Confirming => "confirming".to_owned(),
            Phase::Shrinking(best) => format!("shrinking, best so far {best}"),
        };
        aside!("{seconds:.0} s: {} cases, {}; {what}", tally.all(), counts(tally));
    }
}

/// The sentence that a run on a model begins and ends with.
pub fn model_note(problem: &str) -> String {
    let how = if problem == "gemm" {
        "to test a library: shrinkfault gemm --target cblas --lib /path/to/libopenblas.so"
    } else {
        "`shrinkfault targets` lists what else this version can test"
    };
    format!("note: this is a demonstration on a built-in model and tested no library of this machine; {how}")
}

/// `12 pass, 3 fault`: the verdicts that occurred.
pub fn counts(tally: &Tally) -> String {
    let pairs = [
        (tally.pass, "pass"),
        (tally.fault, "fault"),
        (tally.wrong, "wrong"),
        (tally.hang, "hang"),
        (tally.crash, "crash"),
        (tally.refused, "refused"),
        (tally.skipped, "skipped"),
    ];
    let said: Vec<String> = pairs.iter().filter(|p| p.0 > 0).map(|(n, w)| format!("{n} {w}")).collect();
    if said.is_empty() { "none".to_owned() } else { said.join(", ") }
}

/// A finding, as read aloud; `word` says whether it is new.
fn finding(word: &str, f: &FindingSummary, path: &Path) -> String {
    let mut out = format!("\n{word}: {}\n", f.title);
    let mut row = |label: &str, text: &str| {
        let _ = writeln!(out, "  {label:<15} {text}");
    };
    row("minimal case", &f.minimal.short);
    if let Some(call) = &f.call {
        row("call", call);
    }
    for before in f.before.iter().take(BEFORE) {
        row("only after", &before.short);
    }
    if f.before.len() > BEFORE {
        row("only after", &format!("{} more; the file lists them", f.before.len() - BEFORE));
    }
    for w in &f.witnesses {
        match &w.good {
            Some(good) => {
                row(&w.param, &format!("last good {good}, first bad {}  ({})", w.bad, w.note));
            }
            None => row(&w.param, &format!("{}  ({})", w.bad, w.note)),
        }
    }
    for e in &f.evidence {
        row("evidence", e);
    }
    row("confirmed", &f.confirmed);
    if !f.irrelevant.is_empty() {
        row("no effect seen", &f.irrelevant.join(", "));
    }
    for n in &f.notes {
        row("note", n);
    }
    row("probes", &f.probes);
    row("file", &path.display().to_string());
    let shown = path.display();
    row("reproduce with", &format!("shrinkfault run {shown}"));
    row("shrink further", &format!("shrinkfault shrink {shown}"));
    row("commit with", &format!("shrinkfault keep {shown}"));
    out
}

/// The last lines of a run.
fn end(s: &Summary, detail: Detail) -> String {
    let t = &s.tally;
    let rate = if s.seconds > 0.0 { t.all() as f64 / s.seconds } else { 0.0 };
    let mut out = format!("{} cases in {:.1} s ({rate:.0}/s): {}; {}", t.all(), s.seconds, counts(t), s.ended);
    if t.sampled > 0 {
        let _ = write!(out, "\n{} of the passes ran only a part of their work-groups", t.sampled);
    }
    // What was covered says how much a run without findings is worth.
    let clean = s.findings.is_empty() && s.known.is_empty();
    if !detail.quiet && t.ran() > 0 && (clean || detail.stats) {
        let per_case = s.remapped as f64 / t.all().max(1) as f64;
        let _ = write!(out, "\n{} worker processes, {per_case:.2} page ranges remapped per case", s.processes);
        let _ = write!(out, "\n{}", s.coverage);
    }
    for (name, count) in &s.known {
        let _ = write!(out, "\nknown: {name}, {count} more case{}", if *count == 1 { "" } else { "s" });
    }
    if s.not_shrunk > 0 {
        let _ = write!(out, "\n{} further bad cases were not looked into; they are in the journal", s.not_shrunk);
    }
    if s.unreproduced > 0 {
        let _ =
            write!(out, "\n{} bad verdicts could not be made to happen again; they are in the journal", s.unreproduced);
    }
    if s.gap_notes > 0 {
        let _ = write!(out, "\n{} cases read between rows without harm", s.gap_notes);
    }
    if s.slow > 0 {
        let _ = write!(out, "\n{} of the hangs answered when given longer: slow, no failures", s.slow);
    }
    if !s.complete {
        out.push_str("\nthe same command with --resume goes on where this hunt was cut short");
    }
    match s.findings.len() {
        0 if s.is_undecided() => out.push_str(
            "\nnot a clean run: cases failed and none was looked into before it ended; one of every kind is in the folder raw \
             of --out, for `shrinkfault shrink FILE`; or raise --time",
        ),
        0 if s.not_shrunk > 0 => out.push_str(
            "\nno new finding among the failing cases that were looked into (--keep-going and a larger --shrinks look into more)",
        ),
        0 => out.push_str("\nno new findings"),
        1 => out.push_str("\n1 new finding"),
        n => {
            let _ = write!(out, "\n{n} new findings");
        }
    }
    out
}
