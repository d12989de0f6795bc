//! `shrink`: one case to its boundary.

use super::args::{ShrinkArgs, Strategy};
use super::exit::{ExitStatus, Failure};
use super::one::{self, One};
use super::output;
use crate::campaign::{facts, shown, slips, slow};
use crate::exec::prober::PoolProber;
use crate::exec::{ProbeError, ranks};
use crate::finding::store::Filed;
use crate::finding::{Environment, Finding, Store};
use crate::problem::Narrow;
use crate::report::event::{Event, Phase, Reporter, Tally};
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
    let mut shrunk = match descend(&one, args, &mut *reporter) {
        Ok(s) => s,
        Err(NotShrunk::DoesNotFail(runs)) => {
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
    Ok(match shrunk.stopped {
        Some(ProbeError::Interrupted) => ExitStatus::of_signal(one.session.interrupt.signal()),
        Some(ProbeError::Unhealthy(_)) => ExitStatus::Unhealthy,
        _ => ExitStatus::Found,
    })
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
    let (mut tally, started) = (Tally::default(), one.session.started);
    let mut best = problem.short(&one.case.params);
    shrink::shrink(problem, &one.case, None, &mut prober, &options, &mut |event| match event {
        ShrinkEvent::Accepted(step) => {
            best = problem.short(&step.case.params);
            reporter.event(&Event::Shrunk { step: step.by.to_owned(), case: shown(problem, &step.case) });
        }
        ShrinkEvent::Probed { observation, .. } => {
            tally.add(&observation.verdict);
            let seconds = started.elapsed().as_secs_f64();
            let (phase, tally) = (Phase::Shrinking(best.clone()), tally.clone());
            reporter.event(&Event::Progress { phase, tally, seconds });
        }
        ShrinkEvent::Slow { took, .. } => {
            let text = slow(took, one.session.pool.limit());
            reporter.event(&Event::Note { id: 0, text: format!("{text}; shrinking starts again") });
        }
        ShrinkEvent::Phase(_) => {}
    })
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
    let more = facts::other_seeds(pool, seed, shrunk)
        .and_then(|()| ranks::sweep(pool, &shrunk.minimal, seed, output::gap_rule(&args.run.exec)));
    let table = more.unwrap_or_default();
    let context = facts::Context {
        problem: std::sync::Arc::clone(&one.session.described),
        target: one.session.target.clone(),
        pins: one.session.pins.clone(),
        profile: output::profile_word(args.profile).to_owned(),
        seed,
        environment: Environment::read(one.session.device(), &pool.hello().description),
    };
    let stated = facts::facts(&context, &one.case, shrunk, table.as_ref());
    let summary = Box::new(facts::summary(pool.problem(), &stated, shrunk));
    slips::keep(pool, store, &context.problem, &context.target, shrunk, seed).map_err(Failure::setup)?;
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
