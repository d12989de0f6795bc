//! `run`: one case once, or several times in one process, with all detail.

use super::args::{Profile, RunArgs};
use super::compare;
use super::exit::{ExitStatus, Failure};
use super::one::{self, One};
use super::output;
use super::session::small_moats;
use crate::campaign::{facts, shown};
use crate::exec::blame::settle_gap_after;
use crate::exec::history::{self, LOST};
use crate::exec::job::Job;
use crate::exec::{Verdict, ranks};
use crate::problem::{Case, Problem};
use crate::report::stdout::{aside, say};
use crate::report::terminal::model_note;
use crate::target::load::call_text;
use crate::worker::Layout;
use serde_json::json;
use std::collections::BTreeMap;

/// Runs the case in a fresh process, after what a finding says has to run before it, and says all that is known.
///
/// # Errors
/// One sentence and its exit status.
pub fn run(args: &RunArgs) -> Result<ExitStatus, Failure> {
    if args.library.lib.len() > 1 {
        return compare::run(args);
    }
    let one = one::open(args, Profile::Strided, None)?;
    if args.each_rank {
        return each_rank(args, &one);
    }
    let before = one.input.finding.as_ref().map(|f| f.facts().before(&one.case)).unwrap_or_default();
    let ran = match history::declined(&one.session.pool, &before, args.seed)? {
        Some(detail) => Ran { verdict: Verdict::Skipped { detail, state: false }, kernel: None, repeats: None },
        None if args.repeat > 1 => repeated(args, &one, &before)?,
        None => once(args, &one, &before)?,
    };
    if args.exec.json {
        say!("{}", ran.event(&one, &before));
    } else {
        ran.print(&one, &before);
    }
    Ok(status(&ran.verdict))
}

/// What one run came to, or the run that decides where there were several.
struct Ran {
    verdict: Verdict,
    kernel: Option<String>,
    repeats: Option<Repeats>,
}

/// How the runs of a case in one process went.
struct Repeats {
    asked: u32,
    ran: u32,
    verdicts: BTreeMap<&'static str, u32>,
    /// The first run that failed, counted from 1.
    first_bad: Option<u32>,
}

fn once(args: &RunArgs, one: &One, before: &[Case]) -> Result<Ran, Failure> {
    let pool = &one.session.pool;
    let job = Job::single(0, &one.case, args.seed);
    let result = pool.run_after(before, &job)?.ok_or_else(|| Failure::setup(LOST))?;
    let settled = settle_gap_after(pool, before, &one.case, args.seed, &result, output::gap_rule(&args.exec))?;
    if settled.gap_pages > 0 && settled.verdict.is_pass() {
        aside!("note: read {} pages between rows without harm", settled.gap_pages);
    }
    Ok(Ran { verdict: settled.verdict, kernel: result.kernel, repeats: None })
}

fn repeated(args: &RunArgs, one: &One, before: &[Case]) -> Result<Ran, Failure> {
    let (pool, rule) = (&one.session.pool, output::gap_rule(&args.exec));
    let results = pool.run_repeated(before, &one.case, args.seed, args.repeat)?;
    let mut results = results.ok_or_else(|| Failure::setup(LOST))?;
    for (i, result) in results.iter_mut().enumerate().filter(|(_, r)| r.verdict.is_bad()) {
        let list: Vec<Case> = before.iter().chain(std::iter::repeat_n(&one.case, i)).cloned().collect();
        result.verdict = settle_gap_after(pool, &list, &one.case, args.seed, result, rule)?.verdict;
    }
    let mut repeats = Repeats {
        asked: args.repeat,
        ran: results.len() as u32,
        verdicts: BTreeMap::new(),
        first_bad: results.iter().position(|r| r.verdict.is_bad()).map(|i| i as u32 + 1),
    };
    for result in &results {
        *repeats.verdicts.entry(result.verdict.word()).or_default() += 1;
    }
    let no_pass = results.iter().position(|r| !r.verdict.is_pass());
    let decides = repeats.first_bad.map(|n| n as usize - 1).or(no_pass).unwrap_or(0);
    let none = || Failure::setup("the worker gave no verdict");
    let result = results.into_iter().nth(decides).ok_or_else(none)?;
    Ok(Ran { verdict: result.verdict, kernel: result.kernel, repeats: Some(repeats) })
}

impl Repeats {
    /// `2 pass, 1 fault in 3 of 10 runs in one process; run 3 is the first that failed, and ended the process`.
    fn text(&self, verdict: &Verdict) -> String {
        let counts: Vec<String> = self.verdicts.iter().map(|(word, n)| format!("{n} {word}")).collect();
        let mut text = format!("{} in {} of {} runs in one process", counts.join(", "), self.ran, self.asked);
        if let Some(first) = self.first_bad {
            text.push_str(&format!("; run {first} is the first that failed"));
            if verdict.ends_worker() {
                text.push_str(", and ended the process");
            }
        }
        text
    }
}

impl Ran {
    fn event(&self, one: &One, before: &[Case]) -> serde_json::Value {
        let problem = one.session.pool.problem();
        let mut event = json!({"event": "run", "case": shown(problem, &one.case), "verdict": self.verdict,
            "kernel": self.kernel});
        if !before.is_empty() {
            event["before"] = before.iter().map(|c| json!(shown(problem, c))).collect();
        }
        if let Some(r) = &self.repeats {
            event["repeat"] = json!({"asked": r.asked, "ran": r.ran, "verdicts": r.verdicts, "first_bad": r.first_bad});
        }
        event
    }

    fn print(&self, one: &One, before: &[Case]) {
        let problem = one.session.pool.problem();
        for case in before {
            say!("before   {} (in the same process)", shown(problem, case).short);
        }
        print(one, &self.verdict, self.kernel.as_deref(), self.repeats.as_ref());
    }
}

fn status(verdict: &Verdict) -> ExitStatus {
    if verdict.is_bad() {
        ExitStatus::Found
    } else if verdict.is_pass() {
        ExitStatus::Fine
    } else {
        ExitStatus::NothingRan
    }
}

fn each_rank(args: &RunArgs, one: &One) -> Result<ExitStatus, Failure> {
    let pool = &one.session.pool;
    let table = ranks::sweep(pool, &one.case, args.seed, output::gap_rule(&args.exec))?;
    let none = || Failure::usage(format!("{} cannot play one rank alone; leave out --each-rank", one.session.target));
    let table = table.ok_or_else(none)?;
    if args.exec.json {
        let event = json!({"event": "ranks", "case": shown(pool.problem(), &one.case), "failing": table.failing,
            "passing": table.passing, "not_run": table.not_run, "verdicts": table.verdicts});
        say!("{event}");
    } else {
        say!("case     {}", shown(pool.problem(), &one.case).short);
        say!("target   {} ({})", one.session.target, pool.hello().description.title);
        for (rank, verdict) in &table.verdicts {
            let said = facts::evidence(verdict, facts::element_bytes(pool.problem(), &one.case, verdict)).join("; ");
            say!("rank {rank:<3} {} {said}", verdict.word());
        }
    }
    Ok(match (table.failing.is_empty(), table.passing.is_empty()) {
        (false, _) => ExitStatus::Found,
        (true, false) => ExitStatus::Fine,
        (true, true) => ExitStatus::NothingRan,
    })
}

fn print(one: &One, verdict: &Verdict, kernel: Option<&str>, repeats: Option<&Repeats>) {
    let pool = &one.session.pool;
    let problem = pool.problem();
    say!("case     {}", shown(problem, &one.case).short);
    say!("target   {} ({})", one.session.target, pool.hello().description.title);
    if let Some(kernel) = kernel {
        say!("kernel   {kernel}");
    }
    if let Some(call) = call_text(&one.session.target, problem, &one.case) {
        say!("call     {call}");
    }
    operands(problem, one);
    say!("verdict  {}", verdict.word());
    let element = facts::element_bytes(problem, &one.case, verdict);
    for line in facts::evidence(verdict, element) {
        say!("         {line}");
    }
    if let Some(repeats) = repeats {
        say!("repeats  {}", repeats.text(verdict));
    }
    if pool.hello().description.model {
        say!("{}", model_note(&problem.name));
    }
}

/// Extreme offsets and addresses of every operand.
fn operands(problem: &std::sync::Arc<Problem>, one: &One) {
    let Ok(instance) = problem.instance(one.case.clone()) else { return };
    let layout = Layout::plan(&one.session.pool.hello().arena, &[&instance]).ok();
    for view in instance.views.iter().flatten() {
        let name = &problem.operands[view.operand].name;
        let (low, high) = (view.lowest(0), view.highest(view.copies() - 1));
        let at = layout.as_ref().map_or_else(String::new, |l| format!(", base {:#x}", l.base(0, view.operand, 0)));
        let copies = if view.copies() > 1 { format!(", {} copies", view.copies()) } else { String::new() };
        say!("operand  {name}: element offsets {low} to {high} of {} bytes each{copies}{at}", view.element_bytes);
    }
    if let Some(layout) = layout {
        let moat = bytesize::ByteSize::b(layout.moat_bytes());
        say!("moats    {moat} unmapped on both sides of every operand");
        if let Some(warning) = small_moats(problem, one.session.pool.hello().arena) {
            say!("warning  {warning}");
        }
    }
}
