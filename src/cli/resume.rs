//! Whether a hunt that was cut short is the one that the command line describes.

use super::args::Hunt;
use super::exit::Failure;
use super::output;
use super::session::Session;
use crate::finding::Store;
use crate::finding::store::{JOURNAL_FORMAT, Past, Start};
use crate::problem::{Narrow, Value as Knob};
use crate::report::status;
use crate::search::Generator;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The hunt that --resume goes on with.
///
/// # Errors
/// Where the folder holds none, or one that an older version wrote.
pub fn past(store: &Store, hunt: &Hunt) -> Result<Option<Past>, Failure> {
    if !hunt.resume {
        return Ok(None);
    }
    let out = hunt.out.display();
    let past = store.past().map_err(Failure::setup)?;
    let past =
        past.ok_or_else(|| Failure::usage(format!("there is no hunt in {out} to go on with; leave out --resume")))?;
    if past.start.journal != JOURNAL_FORMAT {
        return Err(Failure::usage(format!(
            "the hunt in {out} was begun by another version of shrinkfault, whose journal this one cannot go on with; \
             leave out --resume"
        )));
    }
    Ok(Some(past))
}

/// The name of a hunt among those of its folder, and when it began.
#[derive(Debug)]
pub struct Named {
    pub hunt: String,
    pub time: String,
}

impl Named {
    /// Of the hunt that is gone on with, or of a new one.
    pub fn of(past: Option<&Past>) -> Named {
        match past {
            Some(past) => Named { hunt: past.start.hunt.clone(), time: past.start.time.clone() },
            None => {
                let time = status::now();
                Named { hunt: format!("{time}-{}", std::process::id()), time }
            }
        }
    }

    /// How the hunt begins.
    pub fn start(self, terms: Map<String, Value>, generator: &Generator) -> Start {
        let mut terms = terms;
        let corpus: String = generator.corpus_digest().iter().map(|b| format!("{b:02x}")).collect();
        terms.insert("corpus".to_owned(), corpus.into());
        let pid = std::process::id();
        Start { journal: JOURNAL_FORMAT, hunt: self.hunt, time: self.time, pid, command: command(), terms }
    }
}

/// The command line without --resume.
pub fn command() -> Vec<String> {
    std::env::args_os().map(|a| a.to_string_lossy().into_owned()).filter(|a| a != "--resume").collect()
}

/// What the cases of a hunt and their verdicts depend on. How long it is, and how many workers run, is no part of it.
pub fn terms(session: &Session, hunt: &Hunt, knobs: &BTreeMap<String, Vec<Knob>>) -> Map<String, Value> {
    let pool = &session.pool;
    let (caps, arena) = (pool.settings().caps, pool.hello().arena);
    let description = &pool.hello().description;
    let identity = description.identity.iter().map(|(name, value)| format!("; {name} {value}"));
    let library: String = std::iter::once(description.title.clone()).chain(identity).collect();
    let pins: Vec<String> = session.pins.iter().map(Narrow::to_string).collect();
    let text = |t: &str| Value::from(t);
    let terms = [
        ("version", text(env!("CARGO_PKG_VERSION"))),
        ("problem", text(&session.described.name)),
        ("target", text(&session.target.to_string())),
        ("library", text(&library)),
        ("seed", hunt.seed.into()),
        ("shard", text(&hunt.shard.to_string())),
        ("pins", text(&pins.join(" "))),
        ("profile", text(output::profile_word(hunt.profile))),
        ("placement", text(&hunt.placement.map_or_else(|| "mixed".to_owned(), |p| p.to_string()))),
        ("regressions", text(&hunt.regressions.as_ref().map_or_else(String::new, |r| r.display().to_string()))),
        ("knobs", serde_json::json!(knobs)),
        ("keep-going", hunt.keep_going.into()),
        ("repeat", hunt.repeat.into()),
        ("confirm", hunt.exec.confirm.into()),
        ("shrinks", hunt.shrinks.into()),
        ("strict-gaps", hunt.exec.strict_gaps.into()),
        ("max-work", caps.work.into()),
        ("max-memory", caps.memory.into()),
        ("case-timeout", text(&humantime::format_duration(pool.settings().case_timeout).to_string())),
        ("addresses", arena.len.into()),
        ("page", arena.page_bytes.into()),
    ];
    terms.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Whether the journal's hunt has the same terms.
///
/// # Errors
/// A sentence that names the first that differs.
pub fn same(past: &Past, now: &Start, hunt: &Hunt) -> Result<(), Failure> {
    let differs = |name: &&String| past.start.terms.get(*name) != now.terms.get(*name);
    let Some(name) = now.terms.keys().chain(past.start.terms.keys()).find(differs) else { return Ok(()) };
    let show = |terms: &Map<String, Value>| match terms.get(name) {
        Some(Value::String(text)) if text.is_empty() => "none".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => "none".to_owned(),
    };
    Err(Failure::usage(format!(
        "the hunt in {} was begun with {name} {}, and now it is {}: go on with what it was begun with, or leave out --resume \
         to begin another",
        hunt.out.display(),
        show(&past.start.terms),
        show(&now.terms)
    )))
}
