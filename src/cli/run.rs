//! `run`: one case once, with all detail.

use super::args::{Profile, RunArgs};
use super::compare;
use super::exit::{ExitStatus, Failure};
use super::one::{self, One};
use super::output;
use super::session::small_moats;
use crate::campaign::{facts, shown};
use crate::exec::blame::settle_gap;
use crate::exec::{Verdict, ranks};
use crate::problem::Problem;
use crate::report::stdout::{aside, say};
use crate::report::terminal::model_note;
use crate::target::load::call_text;
use crate::worker::Layout;
use serde_json::json;

/// Runs the case in a fresh process and says all that is known.
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
    let pool = &one.session.pool;
    let before = one.input.finding.as_ref().map(|f| f.facts().before.clone()).unwrap_or_default();
    let (verdict, kernel) = if before.is_empty() {
        let result = pool.probe(&one.case, args.seed, true)?;
        let settled = settle_gap(pool, &one.case, args.seed, &result, output::gap_rule(&args.exec))?;
        if settled.gap_pages > 0 && settled.verdict.is_pass() {
            aside!("note: read {} pages between rows without harm", settled.gap_pages);
        }
        (settled.verdict, result.kernel)
    } else {
        let verdict = pool.run_after(&before, &one.case, args.seed)?;
        let lost = || Failure::setup("one of the cases that run before this one ended the process");
        (verdict.ok_or_else(lost)?, None)
    };
    if args.exec.json {
        let event =
            json!({"event": "run", "case": shown(pool.problem(), &one.case), "verdict": verdict, "kernel": kernel});
        say!("{event}");
    } else {
        print(&one, &verdict, kernel.as_deref());
    }
    Ok(status(&verdict))
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

fn print(one: &One, verdict: &Verdict, kernel: Option<&str>) {
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
