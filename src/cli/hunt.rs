//! `gemm`, `allgather`, `fuzz`: a hunt from the command line to its exit status.

use super::args::{Hunt, Profile};
use super::exit::{ExitStatus, Failure};
use super::output;
use super::resume::{self, Named};
use super::session::{Request, Session, Subject};
use crate::campaign::{Campaign, CampaignError, NotResumed, Options, State};
use crate::device::Device;
use crate::exec::ProbeError;
use crate::exec::ranks::ONLY_RANK;
use crate::finding::known::Warning;
use crate::finding::store::{Line, Past, Start};
use crate::finding::{Catalog, Environment, Known, Seed, Store, store};
use crate::problem::{Case, Narrow, Placement, Problem, Value};
use crate::report::event::{Event, Reporter, Summary, Tally};
use crate::report::status::{self, Doing, STATUS_FORMAT, Standing, StatusFile};
use crate::report::stdout::aside;
use crate::search::corpus;
use crate::search::{self, Generator, Shard, SpanLimits};
use crate::target::load;
use crate::worker::layout::least_moat;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

/// Cases of a hunt for which neither --time nor --cases is given.
const DEFAULT_CASES: u64 = 10_000;

/// Runs a hunt. `also` restricts the problem beside what the user pins.
///
/// # Errors
/// One sentence and its exit status.
pub fn run(subject: Subject, hunt: &Hunt, also: Vec<Narrow>) -> Result<ExitStatus, Failure> {
    let cases = budget(hunt)?;
    let (store, mut warnings) = Store::open(&hunt.out).map_err(Failure::setup)?;
    let past = resume::past(&store, hunt)?;
    warnings.extend(past.as_ref().map_or_else(|| left_behind(hunt), torn));
    let mut session = Session::open(Request {
        subject: subject.clone(),
        target: &hunt.target,
        library: &hunt.library,
        pins: &hunt.pins,
        also,
        // The generator packs strides itself, so that it can tell packed parameters from pinned ones.
        profile: Profile::Strided,
        exec: &hunt.exec,
        time: hunt.time,
        work: subject.hunt_work(),
    })?;
    if hunt.placement.is_some() && session.described.placed_by_program {
        return Err(Failure::usage("the program places its operands itself; leave out --placement"));
    }
    let regressions = hunt.regressions.clone().unwrap_or_else(|| store::REGRESSIONS.into());
    if hunt.regressions.is_some() && !regressions.is_dir() {
        aside!("warning: --regressions {} is no folder: no finding is known from it", regressions.display());
    }
    let (mut known, more) = known(&subject, &[regressions, store::findings(&hunt.out)]);
    known.keep_brand(&session.pool.hello().description.identity);
    warnings.extend(more);
    let named = Named::of(past.as_ref());
    let standing = standing(&session, hunt, &named, cases);
    let mut reporter =
        StatusFile::new(store::status(&hunt.out), standing, output::reporter(&hunt.exec, &session.interrupt));
    for warning in &warnings {
        aside!("warning: {}", warning.0);
    }
    reporter.event(&started(&session, hunt));
    reporter.event(&session.self_test()?);
    for warning in session.learn()? {
        reporter.event(&warning);
    }
    let knobs = knobs(&session)?;
    let terms = resume::terms(&session, hunt, &knobs);
    let generator = generator(&session, hunt, knobs)?;
    let start = named.start(terms, &generator);
    if let Some(past) = &past {
        resume::same(past, &start, hunt)?;
    }
    let options = options(&session, hunt, cases, &start);
    let mut campaign = campaign(&session, store, known, generator, options, &mut reporter);
    begin(&mut campaign, &start, past.as_ref())?;
    let (summary, error) = campaign.run();
    drop(campaign);
    drop(reporter);
    finish(&session, hunt, &summary, error)
}

/// How many of its cases this hunt has, where it is limited by them.
fn budget(hunt: &Hunt) -> Result<Option<u64>, Failure> {
    let all = match (hunt.cases, hunt.time) {
        (None, None) => Some(DEFAULT_CASES),
        (cases, _) => cases,
    };
    let share = all.map(|n| hunt.shard.share(n));
    match (share, all) {
        (Some(0), Some(n)) => Err(Failure::usage(format!("of {n} cases shard {} has none; raise --cases", hunt.shard))),
        _ => Ok(share),
    }
}

/// What has to be said of a hunt that this one begins after.
fn left_behind(hunt: &Hunt) -> Option<Warning> {
    let text = std::fs::read_to_string(store::status(&hunt.out)).ok()?;
    let last: Standing = serde_json::from_str(&text).ok()?;
    (!last.complete).then(|| {
        Warning(format!(
            "the hunt that began in {} at {} did not end; this one is another (--resume would have gone on with it)",
            hunt.out.display(),
            last.began
        ))
    })
}

/// What has to be said of a journal that was not written to its end.
fn torn(past: &Past) -> Option<Warning> {
    past.unreadable.map(|line| {
        Warning(format!("the journal can be read up to line {}: what follows is left out, and run again", line - 1))
    })
}

fn standing(session: &Session, hunt: &Hunt, named: &Named, cases: Option<u64>) -> Standing {
    Standing {
        status: STATUS_FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        hunt: named.hunt.clone(),
        pid: std::process::id(),
        command: resume::command(),
        problem: session.described.name.clone(),
        target: session.target.to_string(),
        seed: hunt.seed,
        shard: hunt.shard.to_string(),
        began: named.time.clone(),
        updated: status::now(),
        doing: Doing::Searching,
        tally: Tally::default(),
        seconds: 0.0,
        cases,
        until: hunt.time.map(|t| status::at(SystemTime::now() + t.saturating_sub(session.started.elapsed()))),
        keep_going: hunt.keep_going,
        findings: vec![],
        known: BTreeMap::new(),
        ended: None,
        complete: false,
    }
}

/// Writes down how the hunt begins, or goes through what was done of it.
fn begin(campaign: &mut Campaign<'_>, start: &Start, past: Option<&Past>) -> Result<(), Failure> {
    let Some(past) = past else {
        return campaign.store.log_durably(&Line::Start(start)).map_err(Failure::setup);
    };
    campaign.resume(past).map_err(|e| match e {
        NotResumed::Text(_) => Failure::usage(e),
        NotResumed::Probe(e) => e.into(),
        NotResumed::Journal(_) | NotResumed::Store(_) => Failure::setup(e),
    })
}

/// The findings there are, and what has to be said of them.
fn known(subject: &Subject, folders: &[PathBuf]) -> (Known, Vec<Warning>) {
    let catalog = Catalog::with(subject.manifest().cloned());
    let (known, mut warnings) = Known::load(folders, &catalog);
    for entry in known.entries() {
        let facts = entry.finding.facts();
        let manifest = subject.manifest().filter(|m| m.name() == facts.problem.name);
        let change = manifest.and_then(|m| m.change_since(&facts.target));
        warnings.extend(change.map(|text| Warning(format!("{}: {text}", entry.name))));
    }
    (known, warnings)
}

fn started(session: &Session, hunt: &Hunt) -> Event {
    let description = &session.pool.hello().description;
    Event::Started {
        version: env!("CARGO_PKG_VERSION"),
        problem: session.described.name.clone(),
        target: session.target.to_string(),
        title: description.title.clone(),
        model: description.model,
        seed: hunt.seed,
        shard: (hunt.shard != Shard::WHOLE).then(|| hunt.shard.to_string()),
        jobs: session.pool.settings().jobs,
        pins: session.pins.iter().map(Narrow::to_string).collect(),
        out: hunt.out.clone(),
        arena_bytes: session.pool.hello().arena.len,
    }
}

fn generator(session: &Session, hunt: &Hunt, knobs: BTreeMap<String, Vec<Value>>) -> Result<Generator, Failure> {
    let arena = session.pool.hello().arena;
    let caps = session.pool.settings().caps;
    let len = i128::from(arena.len);
    let foreign = session.pool.spec().foreign.is_some();
    let common = SpanLimits {
        work: i128::from(caps.work),
        elements: caps.elements(),
        page_bytes: arena.page_bytes as i64,
        sampled: session.pool.hello().description.model,
        ..SpanLimits::default()
    };
    let limits = if foreign {
        // It maps what it likes, in as many pieces as it likes; what it cannot have it skips.
        let any = i128::MAX;
        SpanLimits { span_bytes: any, arena_bytes: any, moat_bytes: 0, memory: any, fragments: any, ..common }
    } else {
        SpanLimits {
            span_bytes: len / 8,
            arena_bytes: len / 4 * 3,
            moat_bytes: i128::from(least_moat(arena.len)),
            memory: i128::from(caps.memory),
            ..common
        }
    };
    let options = search::Options {
        profile: match hunt.profile {
            Profile::Strided => search::Profile::Strided,
            Profile::Packed => search::Profile::Packed,
        },
        limits,
        placement: hunt.placement.or(session.described.placed_by_program.then_some(Placement::END)),
        knobs,
        ..search::Options::default()
    };
    let corpus = seeds(session.problem(), &session.described, foreign, hunt)?;
    let generator = Generator::new(Arc::clone(session.problem()), hunt.seed, options, corpus);
    Ok(generator.map_err(Failure::usage)?.with_shard(hunt.shard))
}

/// Groups of cases on a GPU that run before those that failed are looked into.
const GPU_STRETCH: usize = 8;

/// The knobs that cases draw from. Which rank plays is evidence about a case, not another code path.
fn knobs(session: &Session) -> Result<BTreeMap<String, Vec<Value>>, Failure> {
    let plainest = session.problem().plainest().ok_or_else(|| Failure::usage("no case satisfies all restrictions"))?;
    let mut knobs = session.pool.knobs(&plainest)?;
    knobs.remove(ONLY_RANK);
    Ok(knobs)
}

/// Seed cases: those of the folder, else the ones that come with the program, each moved into the restrictions.
fn seeds(narrowed: &Problem, problem: &Problem, foreign: bool, hunt: &Hunt) -> Result<Vec<Case>, Failure> {
    let seeds: Vec<Seed> = match &hunt.corpus {
        Some(folder) => corpus::read_folder(folder, &problem.name)
            .map_err(Failure::usage)?
            .into_iter()
            .map(|(_, seed)| seed)
            .collect(),
        // Those of a built-in problem of the same name are none of this one's.
        None if foreign => vec![],
        None => corpus::built_in(&problem.name).map_err(Failure::usage)?,
    };
    let mut cases = vec![];
    for seed in &seeds {
        let moved = seed.transfer(problem, narrowed).map_err(Failure::usage)?;
        cases.extend(moved.map(|case| Case { placement: hunt.placement.unwrap_or(case.placement), ..case }));
    }
    Ok(cases)
}

fn options(session: &Session, hunt: &Hunt, cases: Option<u64>, start: &Start) -> Options {
    Options {
        hunt: start.hunt.clone(),
        cases,
        shard: hunt.shard,
        keep_going: hunt.keep_going,
        confirm: hunt.exec.confirm,
        shrinks: hunt.shrinks,
        seed: hunt.seed,
        gap_rule: output::gap_rule(&hunt.exec),
        profile: output::profile_word(hunt.profile).to_owned(),
        pins: session.pins.clone(),
        repeat: hunt.repeat,
        stretch: match load::device(&session.target) {
            Device::Cpu => usize::MAX,
            // A fault costs a third of a second.
            Device::Cuda => GPU_STRETCH,
        },
        sanitizer: hunt.sanitizer,
        keep_placement: hunt.placement.is_some(),
    }
}

fn campaign<'a>(
    session: &'a Session,
    store: Store,
    known: Known,
    generator: Generator,
    options: Options,
    reporter: &'a mut (dyn Reporter + Send),
) -> Campaign<'a> {
    Campaign {
        pool: &session.pool,
        problem: Arc::clone(&session.described),
        target: session.target.clone(),
        generator,
        known,
        store,
        environment: Environment::read(session.device(), &session.pool.hello().description),
        options,
        reporter,
        started: session.started,
        state: State::new(&session.pool),
    }
}

fn finish(
    session: &Session,
    hunt: &Hunt,
    summary: &Summary,
    error: Option<CampaignError>,
) -> Result<ExitStatus, Failure> {
    match error {
        None => {}
        Some(CampaignError::Probe(ProbeError::Interrupted)) => {
            return Ok(ExitStatus::of_signal(session.interrupt.signal()));
        }
        Some(CampaignError::Probe(e)) => return Err(e.into()),
        Some(CampaignError::Store(e)) => return Err(Failure::setup(e)),
        Some(CampaignError::NotFiled(e)) => {
            // The finding exists nowhere else.
            aside!("{}", e.toml);
            return Err(Failure::setup(format!("{e}; the finding is printed above")));
        }
    }
    let known: u64 = summary.known.values().sum();
    Ok(if !summary.findings.is_empty() || summary.is_undecided() {
        ExitStatus::Found
    } else if hunt.fail_known && known > 0 {
        aside!("exit 1: known findings count (--fail-known)");
        ExitStatus::Found
    } else if summary.tally.ran() == 0 {
        ExitStatus::NothingRan
    } else {
        ExitStatus::Fine
    })
}
