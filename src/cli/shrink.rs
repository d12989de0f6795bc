//! `shrink`: one case to its boundary.

use super::args::{ShrinkArgs, Strategy};
use super::exit::{ExitStatus, Failure};
use super::one::{self, One};
use super::output;
use crate::campaign::history::{self, Looked, Suspect};
use crate::campaign::{facts, shown, slips, slow, too_rare};
use crate::exec::prober::PoolProber;
use crate::exec::sanitizer;
use crate::exec::{ProbeError, ranks};
use crate::finding::store::Filed;
use crate::finding::{Environment, Facts, Finding, Store};
use crate::problem::{Case, Narrow};
use crate::report::event::{Event, FindingSummary, Phase, Reporter, Tally};
use crate::report::stdout::aside;
use crate::shrink::{self, NotShrunk, ShrinkEvent, Shrunk};

/// Shrinks the case and files what came of it.
///
/// # Errors
/// One sentence and its exit status.
pub fn run(args: &ShrinkArgs) -> Result<ExitStatus, Failure> {
    let exec = &args.run.exec;
    let (store, warnings) = Store::open(&args.run.out).map_err(Failure::setup)?;
    for warning in &warnings {
        aside!("warning: {}", warning.0);
    }
    let mut one = one::open(&args.run, args.profile, args.time)?;
    let mut reporter = output::reporter(exec, &one.session.interrupt);
    reporter.event(&started(&one, args));
    reporter.event(&one.session.self_test()?);
    for warning in one.session.learn()? {
        reporter.event(&warning);
    }
    let problem = one.session.problem();
    reporter.event(&Event::Shrinking { id: 0, case: shown(problem, &one.case) });
    let before = one.input.finding.as_ref().map(|f| f.facts().before(&one.case)).unwrap_or_default();
    if !before.is_empty() {
        return after_others(&one, args, &store, &before, 0, &mut *reporter);
    }
    let mut shrunk = match descend(&one, args, &mut *reporter) {
        Ok(s) => s,
        Err(NotShrunk::DoesNotFail(runs)) => {
            if let Some(earlier) = runs_before_a_failure(&one, args)? {
                let before = vec![one.case.clone(); earlier];
                return after_others(&one, args, &store, &before, runs, &mut *reporter);
            }
            let text = format!("does not fail in {runs} runs in fresh processes; there is nothing to shrink");
            reporter.event(&Event::Note { id: 0, text });
            return Ok(ExitStatus::Fine);
        }
        Err(e @ NotShrunk::NotRun(_)) => {
            reporter.event(&Event::Note { id: 0, text: e.to_string() });
            return Ok(ExitStatus::NothingRan);
        }
        Err(NotShrunk::Probe(ProbeError::Interrupted)) => {
            return Ok(ExitStatus::of_signal(one.session.interrupt.signal()));
        }
        Err(NotShrunk::Probe(e)) => return Err(e.into()),
        Err(e) => return Err(Failure::usage(e)),
    };
    if shrunk.stopped.is_none() {
        one.session.pool.check_health()?;
    }
    file(&one, args, &store, &mut shrunk, &mut *reporter)?;
    Ok(ended(&one, shrunk.stopped.as_ref()))
}

/// How often the case passes in one process before it fails, where --repeat asks for several runs and one fails.
fn runs_before_a_failure(one: &One, args: &ShrinkArgs) -> Result<Option<usize>, Failure> {
    if args.run.repeat == 1 {
        return Ok(None);
    }
    let results = one.session.pool.run_repeated(&[], &one.case, args.run.seed, args.run.repeat)?;
    let first = results.unwrap_or_default().iter().position(|r| r.verdict.is_bad());
    Ok(first.filter(|earlier| *earlier > 0))
}

/// Makes a case that fails after others, and their list, smaller, and files what came of it.
fn after_others(
    one: &One,
    args: &ShrinkArgs,
    store: &Store,
    before: &[Case],
    alone: u32,
    reporter: &mut (dyn Reporter + Send),
) -> Result<ExitStatus, Failure> {
    let (pool, seed, exec) = (&one.session.pool, args.run.seed, &args.run.exec);
    if let Some(why) = crate::exec::history::declined(pool, before, seed)? {
        aside!("{why}; there is nothing to shrink");
        return Ok(ExitStatus::NothingRan);
    }
    let suspect = Suspect {
        pool,
        problem: one.session.problem(),
        case: &one.case,
        before,
        alone,
        seed,
        confirm: exec.confirm,
        rule: output::gap_rule(exec),
        keep_placement: args.run.placement.is_some(),
    };
    let looked = history::look(suspect, &mut telling(one, reporter));
    let note = |text| Event::Note { id: 0, text };
    match looked {
        Err(ProbeError::Interrupted) => Ok(ExitStatus::of_signal(one.session.interrupt.signal())),
        Err(e) => Err(e.into()),
        Ok(Looked::Alone(verdict)) => {
            let word = verdict.word();
            reporter.event(&note(format!("{word} alone in a fresh process, too: give the case itself to shrink")));
            Ok(ExitStatus::Found)
        }
        Ok(Looked::CannotTell { after, .. }) if after.failed == 0 => {
            let text = format!("does not fail in {} runs after what the finding lists", after.runs);
            reporter.event(&note(format!("{text}; there is nothing to shrink")));
            Ok(ExitStatus::Fine)
        }
        Ok(Looked::CannotTell { after, alone }) => {
            reporter.event(&note(too_rare(after, alone)));
            Ok(ExitStatus::Fine)
        }
        Ok(Looked::Needs(needs)) => {
            let stated = needs.facts(&context(one, args), &one.case);
            let summary = Box::new(history::summary(pool.problem(), &stated, &needs));
            write(store, stated, summary, reporter)?;
            Ok(ended(one, needs.stopped.as_ref()))
        }
    }
}

/// The exit status of a shrink that filed something.
fn ended(one: &One, stopped: Option<&ProbeError>) -> ExitStatus {
    match stopped {
        Some(ProbeError::Interrupted) => ExitStatus::of_signal(one.session.interrupt.signal()),
        Some(ProbeError::Unhealthy(_)) => ExitStatus::Unhealthy,
        _ => ExitStatus::Found,
    }
}

fn started(one: &One, args: &ShrinkArgs) -> Event {
    let hello = one.session.pool.hello();
    Event::Started {
        version: env!("CARGO_PKG_VERSION"),
        problem: one.session.described.name.clone(),
        target: one.session.target.to_string(),
        title: hello.description.title.clone(),
        model: hello.description.model,
        seed: args.run.seed,
        shard: None,
        jobs: one.session.pool.settings().jobs,
        pins: one.session.pins.iter().map(Narrow::to_string).collect(),
        out: args.run.out.clone(),
        arena_bytes: hello.arena.len,
    }
}

fn descend(one: &One, args: &ShrinkArgs, reporter: &mut dyn Reporter) -> Result<Shrunk, NotShrunk> {
    let problem = one.session.problem();
    let mut prober = PoolProber::new(&one.session.pool, args.run.seed, output::gap_rule(&args.run.exec));
    let options = shrink::Options {
        seed: args.run.seed,
        confirm: args.run.exec.confirm,
        keep_placement: args.run.placement.is_some(),
        strategy: match args.strategy {
            Strategy::HintFirst => shrink::Strategy::HintFirst,
            Strategy::PlainBisection => shrink::Strategy::PlainBisection,
        },
        ..shrink::Options::default()
    };
    shrink::shrink(problem, &one.case, None, &mut prober, &options, &mut telling(one, reporter))
}

/// Tells a reporter how a shrink goes.
fn telling<'a>(one: &'a One, reporter: &'a mut dyn Reporter) -> impl FnMut(ShrinkEvent<'_>) + use<'a> {
    let (mut tally, problem) = (Tally::default(), one.session.problem());
    let mut best = problem.short(&one.case.params);
    move |event| match event {
        ShrinkEvent::Accepted(step) => {
            best = problem.short(&step.case.params);
            reporter.event(&Event::Shrunk { step: step.by.to_owned(), case: shown(problem, &step.case) });
        }
        ShrinkEvent::Probed { observation, .. } => {
            tally.add(&observation.verdict);
            let seconds = one.session.started.elapsed().as_secs_f64();
            let (phase, tally) = (Phase::Shrinking(best.clone()), tally.clone());
            reporter.event(&Event::Progress { phase, tally, seconds });
        }
        ShrinkEvent::Slow { took, .. } => {
            let text = slow(took, one.session.pool.limit());
            reporter.event(&Event::Note { id: 0, text: format!("{text}; shrinking starts again") });
        }
        ShrinkEvent::Phase(_) => {}
    }
}

fn file(
    one: &One,
    args: &ShrinkArgs,
    store: &Store,
    shrunk: &mut Shrunk,
    reporter: &mut dyn Reporter,
) -> Result<(), Failure> {
    let (pool, seed) = (&one.session.pool, args.run.seed);
    // Whatever stops these, the shrunk case is filed.
    let asked = match args.sanitizer {
        true => sanitizer::sharpen(pool, &shrunk.minimal, seed, &mut shrunk.verdict),
        false => Ok(None),
    };
    if let Ok(Some(text)) = &asked {
        reporter.event(&Event::Note { id: 0, text: text.clone() });
    }
    let more = asked
        .and_then(|_| facts::other_seeds(pool, &[], seed, output::gap_rule(&args.run.exec), shrunk))
        .and_then(|()| ranks::sweep(pool, &shrunk.minimal, seed, output::gap_rule(&args.run.exec)));
    let table = more.unwrap_or_default();
    let context = context(one, args);
    let stated = facts::facts(&context, &one.case, shrunk, table.as_ref());
    let summary = Box::new(facts::summary(pool.problem(), &stated, shrunk));
    slips::keep(pool, store, &context.problem, &context.target, shrunk, seed).map_err(Failure::setup)?;
    write(store, stated, summary, reporter)
}

fn context(one: &One, args: &ShrinkArgs) -> facts::Context {
    facts::Context {
        problem: std::sync::Arc::clone(&one.session.described),
        target: one.session.target.clone(),
        pins: one.session.pins.clone(),
        profile: output::profile_word(args.profile).to_owned(),
        seed: args.run.seed,
        environment: Environment::read(one.session.device(), &one.session.pool.hello().description),
    }
}

fn write(
    store: &Store,
    stated: Facts,
    summary: Box<FindingSummary>,
    reporter: &mut dyn Reporter,
) -> Result<(), Failure> {
    let finding = Finding::new(stated).map_err(Failure::setup)?;
    match store.file(&finding) {
        Ok(filed) => {
            let name = finding.name();
            if matches!(filed, Filed::Already(_)) {
                reporter.event(&Event::Known { id: 0, finding: name.clone() });
            }
            reporter.event(&Event::Finding { name, path: filed.path().to_owned(), summary });
            Ok(())
        }
        Err(e) => {
            // The finding exists nowhere else.
            aside!("{}", e.toml);
            Err(Failure::setup(format!("{e}; the finding is printed above")))
        }
    }
}
