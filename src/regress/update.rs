//! What `--update` writes: the status, or the finding shrunk again from where the line lies now.

use super::replay::{Options, narrowed};
use crate::campaign::facts::{self, Context};
use crate::campaign::history::{self, Looked, Suspect};
use crate::campaign::too_rare;
use crate::exec::pool::Pool;
use crate::exec::prober::PoolProber;
use crate::exec::{ProbeError, ranks};
use crate::finding::store::StoreError;
use crate::finding::{Environment, Facts, Finding, Step};
use crate::problem::{Case, Problem};
use crate::shrink::{self, NotShrunk};
use crate::target::TargetSpec;

/// Why a finding could not be stated anew; its file stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum NotRenewed {
    #[error(transparent)]
    Probe(#[from] ProbeError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    Text(String),
}

/// Shrinks a case that fails in the finding's way, and states the result as the finding was stated: under its pins and its
/// profile, with the case as it was once found. So every line of the file was observed.
///
/// # Errors
/// Where it does not fail any more, the result contradicts itself, or no verdict can be had any more.
pub fn renewed(
    pool: &Pool,
    target: &TargetSpec,
    filed: &Facts,
    failing: &Case,
    environment: Environment,
    options: Options,
) -> Result<Finding, NotRenewed> {
    let problem = narrowed(pool, filed).map_err(NotRenewed::Text)?;
    let context = Context {
        problem: filed.problem.clone(),
        target: target.clone(),
        pins: filed.pins.clone(),
        profile: filed.profile.clone(),
        seed: filed.seed,
        environment,
    };
    if filed.history.is_some() {
        let mut stated = after_others(pool, &problem, filed, failing, &context, options)?;
        follow(&mut stated, filed, failing);
        return Finding::new(stated).map_err(NotRenewed::Text);
    }
    let mut prober = PoolProber::new(pool, filed.seed, options.gap_rule);
    let how = shrink::Options {
        seed: filed.seed,
        confirm: options.confirm,
        keep_placement: true,
        ..shrink::Options::default()
    };
    let shrunk = shrink::shrink(&problem, failing, Some(&filed.signature), &mut prober, &how, &mut |_| {});
    let mut shrunk = shrunk.map_err(|e| match e {
        NotShrunk::Probe(e) => NotRenewed::Probe(e),
        other => NotRenewed::Text(other.to_string()),
    })?;
    if let Some(stopped) = shrunk.stopped.take() {
        return Err(stopped.into());
    }
    pool.check_health()?;
    facts::other_seeds(pool, &[], filed.seed, options.gap_rule, &mut shrunk)?;
    let table = ranks::sweep(pool, &shrunk.minimal, filed.seed, options.gap_rule)?;
    let mut stated = facts::facts(&context, &filed.original, &shrunk, table.as_ref());
    follow(&mut stated, filed, failing);
    Finding::new(stated).map_err(NotRenewed::Text)
}

/// The ladder goes on where it was left.
fn follow(stated: &mut Facts, filed: &Facts, failing: &Case) {
    if *failing != filed.original {
        let moved = Step { by: "follow the line".to_owned(), case: filed.problem.short(&failing.params) };
        let new = std::mem::take(&mut stated.ladder);
        stated.ladder = filed.ladder.iter().cloned().chain([moved]).chain(new).collect();
    }
}

/// As [`renewed`], for a case that fails only after others.
fn after_others(
    pool: &Pool,
    problem: &Problem,
    filed: &Facts,
    failing: &Case,
    context: &Context,
    options: Options,
) -> Result<Facts, NotRenewed> {
    let suspect = Suspect {
        pool,
        problem,
        case: failing,
        before: &filed.before(failing),
        alone: 0,
        seed: filed.seed,
        confirm: options.confirm,
        rule: options.gap_rule,
        keep_placement: true,
    };
    match history::look(suspect, &mut |_| {})? {
        Looked::Alone(_) => Err(NotRenewed::Text("it fails alone now, too: a finding of its own".to_owned())),
        Looked::CannotTell { after, alone } => Err(NotRenewed::Text(too_rare(after, alone))),
        Looked::Needs(mut needs) => match needs.stopped.take() {
            Some(stopped) => Err(stopped.into()),
            None => Ok(needs.facts(context, &filed.original)),
        },
    }
}
