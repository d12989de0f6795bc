//! `check`: which shapes of a list lie past a finding's line. Nothing is run.

use super::args::CheckArgs;
use super::exit::{ExitStatus, Failure};
use crate::exec::interrupt::Interrupt;
use crate::finding::law::{Standing, standing};
use crate::finding::shapes::{self, Shape};
use crate::finding::{CaseInput, Catalog, Finding, store};
use crate::problem::Value;
use crate::report::event::{Event, Reporter};
use crate::report::json::JsonLines;
use crate::report::terminal::{Detail, Plain};
use std::io::Read;
use std::path::Path;

/// Most bytes that are read from stdin.
const LIMIT: u64 = 1 << 26;

/// Says for every shape on which side of the line it lies.
///
/// # Errors
/// One sentence and its exit status.
pub fn run(args: &CheckArgs) -> Result<ExitStatus, Failure> {
    let finding = law(args)?;
    let facts = finding.facts();
    let also = args.set.iter().map(|(name, value)| (name.clone(), Value::from_word(value))).collect();
    let shapes = match args.shapes.as_str() {
        "-" => shapes::from_text(&stdin()?, Path::new("-"), &facts.problem, &also).map_err(|e| format!("stdin: {e}")),
        path => shapes::from_path(Path::new(path), &facts.problem, &also),
    };
    let shapes = shapes.map_err(Failure::usage)?;
    if shapes.is_empty() {
        return Err(Failure::usage(format!("there is no shape in {}; write lines such as m=608,n=5376", args.shapes)));
    }
    let mut reporter = reporter(args)?;
    let (mut past, mut before, mut cannot_say) = (0, 0, 0);
    for shape in &shapes {
        let side = standing(facts, &shape.params, shape.knobs.as_ref(), shape.placement);
        match side {
            Standing::Past => past += 1,
            Standing::Before => before += 1,
            Standing::CannotSay(_) => cannot_say += 1,
        }
        reporter.event(&event(&finding, shape, side));
    }
    let (name, status) = (finding.name(), finding.status().word());
    reporter.event(&Event::Checked { finding: name, status, past, before, cannot_say });
    Ok(if past > 0 { ExitStatus::Found } else { ExitStatus::Fine })
}

fn event(finding: &Finding, shape: &Shape, side: Standing) -> Event {
    let problem = &finding.facts().problem;
    Event::Shape {
        place: shape.place.clone(),
        short: problem.short(&shape.params),
        params: problem.show(&shape.params).into_iter().collect(),
        standing: side.word(),
        why: match side {
            Standing::CannotSay(why) => Some(why),
            Standing::Past | Standing::Before => None,
        },
    }
}

fn law(args: &CheckArgs) -> Result<Finding, Failure> {
    let folders = [store::findings(&args.out), args.regressions.clone()];
    let input = CaseInput::read(&args.law, None, &folders, &Catalog::default()).map_err(Failure::usage)?;
    let none = || Failure::usage(format!("--law {}: this is a case, and a line takes a finding", args.law));
    input.finding.map(|f| *f).ok_or_else(none)
}

fn stdin() -> Result<String, Failure> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(LIMIT).read_to_string(&mut text);
    read.map_err(|e| Failure::usage(format!("failed to read stdin ({e}): give the shapes as UTF-8 text")))?;
    Ok(text)
}

fn reporter(args: &CheckArgs) -> Result<Box<dyn Reporter>, Failure> {
    if args.json {
        let interrupt = Interrupt::install().map_err(Failure::setup)?;
        return Ok(Box::new(JsonLines::new(std::io::stdout(), interrupt, None)));
    }
    Ok(Box::new(Plain::new(Detail { quiet: args.quiet, ..Detail::default() })))
}
