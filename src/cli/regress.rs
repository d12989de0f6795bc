//! `regress`: committed findings, run again.

use super::args::{Library, Pins, Profile, RegressArgs};
use super::exit::{ExitStatus, Failure};
use super::one::library_of;
use super::output;
use super::session::{MODEL_WORK, Request, Session, Subject, builtin, is_file};
use crate::device::Device;
use crate::exec::interrupt::Interrupt;
use crate::finding::store::{self, atomic};
use crate::finding::{Catalog, Environment, Facts, Finding, Status};
use crate::problem::Value;
use crate::regress::boundary::Boundary;
use crate::regress::junit::{self, Record};
use crate::regress::replay::{Answer, Options, replay};
use crate::regress::update::{NotRenewed, renewed};
use crate::regress::{Outcome, Word, list};
use crate::report::event::{BoundaryLine, Event, Replayed, Reporter};
use crate::report::stdout::aside;
use crate::target::{Caps, TargetSpec};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Findings of one problem that one pool can replay, by problem and target.
type Groups = BTreeMap<(String, String), Group>;

/// Findings of one target.
struct Group {
    subject: Subject,
    findings: Vec<(PathBuf, Finding)>,
}

/// Replays all findings of a folder.
///
/// # Errors
/// One sentence and its exit status.
pub fn run(args: &RegressArgs) -> Result<ExitStatus, Failure> {
    let interrupt = Interrupt::install().map_err(Failure::setup)?;
    named(args)?;
    let all = list::files(&args.place).map_err(Failure::usage)?;
    if all.is_empty() {
        aside!("there is no finding in {}; `shrinkfault keep FINDING` puts one there", args.place.display());
    }
    let (any, reporter) = (!all.is_empty(), output::reporter(&args.exec, &interrupt));
    let files = args.shard.map_or_else(|| all.clone(), |shard| shard.take(all.clone()));
    let mut run = Run { args, reporter, interrupt, records: vec![] };
    let started = Instant::now();
    let ended = run.all(&files);
    let told = run.end(started.elapsed());
    ended.and(told)?;
    Ok(if any && files.is_empty() { ExitStatus::Fine } else { run.status() })
}

/// What the command line names has to be there: a library that is not would look like findings that are skipped.
fn named(args: &RegressArgs) -> Result<(), Failure> {
    args.library.lib.as_deref().map_or(Ok(()), is_file)?;
    match &args.target {
        Some(word) => word.parse::<TargetSpec>().map(drop).map_err(Failure::usage),
        None => Ok(()),
    }
}

struct Run<'a> {
    args: &'a RegressArgs,
    reporter: Box<dyn Reporter + Send>,
    interrupt: Interrupt,
    records: Vec<Record>,
}

impl Run<'_> {
    fn all(&mut self, files: &[PathBuf]) -> Result<(), Failure> {
        let mut groups = Groups::new();
        for path in files {
            match self.read(path) {
                Ok((subject, finding)) => {
                    let key = (finding.facts().problem.name.clone(), self.target(finding.facts()));
                    let group = groups.entry(key).or_insert_with(|| Group { subject, findings: vec![] });
                    group.findings.push((path.clone(), finding));
                }
                Err(why) => self.unreadable(path, &why),
            }
        }
        for ((problem, target), group) in &groups {
            self.group(problem, target, group)?;
        }
        Ok(())
    }

    /// A finding, and where its target comes from.
    fn read(&self, path: &Path) -> Result<(Subject, Finding), String> {
        let finding = Finding::read(path).map_err(|e| e.to_string())?;
        let (name, target) = (&finding.facts().problem.name, &finding.facts().target);
        let described = Catalog::default().near(path).describe(name, Some(target))?;
        let subject = match described.manifest {
            Some(manifest) => {
                if let Some(change) = manifest.change_since(target) {
                    aside!("warning: {}: {change}", path.display());
                }
                Subject::Manifest(manifest)
            }
            None => Subject::Builtin(builtin(name).map_err(|e| e.message)?),
        };
        Ok((subject, finding))
    }

    /// The target that a finding is replayed on, with the path of its library where that is on this machine.
    fn target(&self, facts: &Facts) -> String {
        match (&self.args.target, loads_library(&facts.target).then_some(&self.args.library.lib)) {
            (Some(word), _) => word.clone(),
            (None, Some(Some(lib))) => facts.target.clone().with_library(Some(lib.clone())).to_string(),
            (None, _) => library_of(&facts.target, Some(facts)),
        }
    }

    fn unreadable(&mut self, path: &Path, why: &str) {
        aside!("error: {why}");
        self.reporter.event(&Event::Unreadable { path: path.to_owned(), text: why.to_owned() });
        self.records.push(Record {
            target: "files without a finding".to_owned(),
            name: path.display().to_string(),
            word: Err(()),
            text: why.to_owned(),
            took: Duration::ZERO,
        });
    }

    /// Opens a pool and replays the findings of its target.
    fn group(&mut self, problem: &str, target: &str, group: &Group) -> Result<(), Failure> {
        let findings = &group.findings;
        let mut session = match self.open(&group.subject, target)? {
            Ok(session) => session,
            Err(why) => {
                for (path, finding) in findings {
                    let outcome = Outcome::Skipped(why.clone());
                    self.tell(path, finding, target, &Told::of(outcome), Duration::ZERO);
                }
                return Ok(());
            }
        };
        let description = session.pool.hello().description.clone();
        self.reporter.event(&Event::Replaying {
            problem: problem.to_owned(),
            target: session.target.to_string(),
            title: description.title.clone(),
            model: description.model,
            findings: findings.len(),
        });
        self.reporter.event(&session.self_test()?);
        for warning in session.learn()? {
            self.reporter.event(&warning);
        }
        let environment = Environment::read("cpu", &description);
        for (path, finding) in findings {
            let started = Instant::now();
            let told = self.one(&session, path, finding, &environment)?;
            self.tell(path, finding, target, &told, started.elapsed());
        }
        Ok(())
    }

    /// A session on the target, or why there is none here although this machine can run cases.
    fn open(&self, subject: &Subject, target: &str) -> Result<Result<Session, String>, Failure> {
        let exec = &self.args.exec;
        let own = subject.manifest().is_some();
        if let Some(file) = target.parse::<TargetSpec>().ok().and_then(|t| t.library).filter(|_| !own)
            && !Path::new(&file).is_file()
        {
            return Ok(Err(format!("{file} was not found on this machine; name another file with --lib")));
        }
        let spec = target.parse::<TargetSpec>().map_err(Failure::usage)?;
        // On a target that loads none they mean nothing.
        let library = match (loads_library(&spec), &self.args.target) {
            (true, Some(_)) => self.args.library.clone(),
            (true, None) => Library { lib: None, int_width: self.args.library.int_width },
            (false, _) => Library { lib: None, int_width: None },
        };
        let opened = Session::open(Request {
            subject: subject.clone(),
            target: if own && self.args.target.is_none() { "auto" } else { target },
            library: &library,
            pins: &Pins { set: vec![], range: vec![], dtype: None },
            also: vec![],
            profile: Profile::Strided,
            exec,
            time: None,
            work: (Caps::default().work, MODEL_WORK),
        });
        match opened {
            Ok(session) => Ok(Ok(session)),
            Err(e) if matches!(e.status(), ExitStatus::Setup | ExitStatus::Usage) => {
                Session::plain(exec, Device::Cpu)?;
                Ok(Err(e.message))
            }
            Err(e) => Err(e),
        }
    }

    fn one(
        &mut self,
        session: &Session,
        path: &Path,
        finding: &Finding,
        environment: &Environment,
    ) -> Result<Told, Failure> {
        let exec = &self.args.exec;
        let options = Options { confirm: exec.confirm, gap_rule: output::gap_rule(exec) };
        let answer = replay(&session.pool, finding.facts(), environment, options)?;
        let mut told = Told { answer, updated: None, not_updated: None };
        if self.args.update {
            match update(session, path, finding, &told.answer, environment, options) {
                Ok(path) => told.updated = path,
                Err(NotRenewed::Probe(e)) => return Err(e.into()),
                Err(NotRenewed::Store(e)) => return Err(Failure::setup(e)),
                Err(NotRenewed::Text(why)) => told.not_updated = Some(why),
            }
        }
        Ok(told)
    }

    fn tell(&mut self, path: &Path, finding: &Finding, target: &str, told: &Told, took: Duration) {
        let answer = &told.answer;
        let word = Word::of(&answer.outcome, finding.status());
        let minimal = &answer.observed.minimal;
        let replayed = Replayed {
            finding: finding.name(),
            path: path.to_owned(),
            target: target.to_owned(),
            status: finding.status().word(),
            outcome: word.text(),
            title: finding.title().to_owned(),
            why: why(&answer.outcome),
            runs: minimal.runs,
            failed: minimal.same + minimal.other,
            boundary: answer.boundary.as_ref().map(|b| line(finding.facts(), b)),
            notes: answer.notes.clone(),
            updated: told.updated.clone(),
            not_updated: told.not_updated.clone(),
        };
        let mut text = replayed.why.clone().unwrap_or_else(|| replayed.title.clone());
        if let Some(b) = &replayed.boundary {
            text.push_str(&format!("; {}", crate::report::boundary(b)));
        }
        self.reporter.event(&Event::Replayed(Box::new(replayed)));
        self.records.push(Record { target: target.to_owned(), name: finding.name(), word: Ok(word), text, took });
    }

    /// Says how it went, whatever ended it, and writes the report.
    fn end(&mut self, took: Duration) -> Result<(), Failure> {
        let mut outcomes = BTreeMap::new();
        for word in self.words() {
            *outcomes.entry(word.text()).or_default() += 1;
        }
        let unreadable = self.records.iter().filter(|r| r.word.is_err()).count() as u64;
        self.reporter.event(&Event::Regressed { outcomes, unreadable, seconds: took.as_secs_f64() });
        let Some(file) = &self.args.junit else { return Ok(()) };
        let xml = junit::xml(&self.records).map_err(Failure::setup)?;
        atomic::replace(file, xml.as_bytes())
            .map_err(|e| Failure::setup(format!("failed to write {} ({e}): name another file", file.display())))
    }

    fn words(&self) -> impl Iterator<Item = Word> + '_ {
        self.records.iter().filter_map(|r| r.word.ok())
    }

    fn status(&self) -> ExitStatus {
        let any = |is: fn(Word) -> bool| self.words().any(is);
        if self.interrupt.is_set() {
            ExitStatus::of_signal(self.interrupt.signal())
        } else if self.records.iter().any(|r| r.word.is_err()) {
            ExitStatus::Usage
        } else if any(Word::is_failure) {
            ExitStatus::Found
        } else if any(Word::is_as_filed) {
            ExitStatus::Fine
        } else if any(|w| w == Word::NotComparable) {
            ExitStatus::NotComparable
        } else {
            ExitStatus::NothingRan
        }
    }
}

/// An answer and what `--update` made of it.
struct Told {
    answer: Answer,
    updated: Option<PathBuf>,
    not_updated: Option<String>,
}

impl Told {
    fn of(outcome: Outcome) -> Told {
        Told { answer: Answer::of(outcome), updated: None, not_updated: None }
    }
}

/// Whether `--lib` means anything to a target.
fn loads_library(target: &TargetSpec) -> bool {
    target.family == "cblas"
}

/// Writes what the answer changes about the finding; the file that was written, if any.
fn update(
    session: &Session,
    path: &Path,
    finding: &Finding,
    answer: &Answer,
    environment: &Environment,
    options: Options,
) -> Result<Option<PathBuf>, NotRenewed> {
    let new = match (&answer.outcome, finding.status()) {
        (Outcome::Fixed, Status::Open) => finding.clone().with_status(Status::Fixed),
        (Outcome::Reproduced, Status::Fixed) => finding.clone().with_status(Status::Open),
        (Outcome::Moved(_), _) => {
            let Some(failing) = &answer.failing else { return Ok(None) };
            renewed(&session.pool, &session.target, finding.facts(), failing, environment.clone(), options)?
        }
        _ => return Ok(None),
    };
    Ok(Some(store::update(path, finding, &new)?))
}

fn why(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Different(text) | Outcome::NotComparable(text) | Outcome::Skipped(text) => Some(text.clone()),
        Outcome::Reproduced | Outcome::Moved(_) | Outcome::Fixed => None,
    }
}

fn line(facts: &Facts, boundary: &Boundary) -> BoundaryLine {
    let p = &facts.problem.params[boundary.param];
    let new: Option<(Value, Value)> = boundary.new.as_ref().ok().map(|(g, b)| (p.show(*g), p.show(*b)));
    BoundaryLine {
        param: p.name.clone(),
        old_good: p.show(boundary.old.0),
        old_bad: p.show(boundary.old.1),
        new_good: new.as_ref().map(|n| n.0.clone()),
        new_bad: new.map(|n| n.1),
        why: boundary.new.as_ref().err().cloned(),
    }
}
