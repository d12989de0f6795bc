//! `corpus`: lists, minimises and merges folders of seed cases.

use super::args::{CorpusCommand, MinimiseArgs, Pins, Profile};
use super::exit::{ExitStatus, Failure};
use super::session::{self, MODEL_WORK, Request, Session, Subject};
use crate::campaign::shown;
use crate::finding::store::{StoreError, atomic};
use crate::finding::{CaseInput, Catalog, filed};
use crate::manifest::Manifest;
use crate::problem::{Case, Placement};
use crate::report::stdout::{aside, say};
use crate::search::corpus;
use crate::search::corpus::minimise::{Member, repeats};
use crate::search::novelty::Outcome;
use crate::target::Caps;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Page size that edges are judged by, bytes.
const PAGE_BYTES: i64 = 4096;

/// A seed case of a folder.
struct Seed {
    /// Path below the folder.
    name: PathBuf,
    path: PathBuf,
    input: CaseInput,
    case: Case,
}

/// Runs one of the commands.
///
/// # Errors
/// One sentence and its exit status.
pub fn run(command: &CorpusCommand) -> Result<ExitStatus, Failure> {
    match command {
        CorpusCommand::List { folder, manifest, json } => list(folder, manifest.as_deref(), *json),
        CorpusCommand::Minimise(args) => minimise(args),
        CorpusCommand::Merge { folders, into, manifest, json } => merge(folders, into, manifest.as_deref(), *json),
    }
}

/// The seed cases of a folder in the order of their names, and a sentence for every file that holds none.
fn read(folder: &Path, manifest: Option<&Path>) -> Result<(Vec<Seed>, Vec<String>), Failure> {
    let given = manifest.map(Manifest::read).transpose().map_err(Failure::usage)?.map(Arc::new);
    let catalog = Catalog::with(given);
    let (mut seeds, mut unreadable) = (vec![], vec![]);
    for path in corpus::files(folder).map_err(Failure::usage)? {
        let name = path.strip_prefix(folder).unwrap_or(&path).to_owned();
        match CaseInput::from_file(&path, &catalog) {
            Ok(input) if input.finding.is_some() => {
                unreadable.push(format!("{}: this is a finding, not a seed case", path.display()));
            }
            Ok(input) => match input.case(&input.problem, Placement::END) {
                Ok(case) => seeds.push(Seed { name, case: filed(&input.problem, &case), path, input }),
                Err(e) => unreadable.push(format!("{}: {e}", path.display())),
            },
            Err(e) => unreadable.push(e.to_string()),
        }
    }
    Ok((seeds, unreadable))
}

/// As [`read`], where every file has to be a seed case.
fn read_all(folder: &Path, manifest: Option<&Path>) -> Result<Vec<Seed>, Failure> {
    let (seeds, unreadable) = read(folder, manifest)?;
    match unreadable.first() {
        Some(why) => Err(Failure::usage(why)),
        None if seeds.is_empty() => Err(Failure::usage(format!("there is no seed case in {}", folder.display()))),
        None => Ok(seeds),
    }
}

fn event(seed: &Seed) -> Json {
    json!({"event": "seed", "file": seed.name, "problem": seed.input.problem.name,
        "case": shown(&seed.input.problem, &seed.case)})
}

fn line(seed: &Seed) -> String {
    format!("{}: {} {}", seed.name.display(), seed.input.problem.name, shown(&seed.input.problem, &seed.case).short)
}

fn list(folder: &Path, manifest: Option<&Path>, as_json: bool) -> Result<ExitStatus, Failure> {
    let (seeds, unreadable) = read(folder, manifest)?;
    for seed in &seeds {
        if as_json { say!("{}", event(seed)) } else { say!("{}", line(seed)) }
    }
    let mut problems: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in &seeds {
        *problems.entry(&seed.input.problem.name).or_default() += 1;
    }
    for why in &unreadable {
        aside!("error: {why}");
    }
    if as_json {
        say!("{}", json!({"event": "corpus", "cases": seeds.len(), "problems": problems, "unreadable": unreadable}));
    } else {
        let counts: Vec<String> = problems.iter().map(|(name, n)| format!("{n} of {name}")).collect();
        let counts = if counts.is_empty() { String::new() } else { format!(": {}", counts.join(", ")) };
        say!("{} seed cases{counts}", seeds.len());
    }
    Ok(if unreadable.is_empty() { ExitStatus::Fine } else { ExitStatus::Usage })
}

fn minimise(args: &MinimiseArgs) -> Result<ExitStatus, Failure> {
    let seeds = read_all(&args.folder, args.manifest.as_deref())?;
    if let Some(into) = &args.into {
        check_empty(into)?;
    }
    let runs = args.target.is_some() || args.library.lib.is_some();
    let outcomes = if runs { outcomes(args, &seeds)? } else { seeds.iter().map(|_| None).collect() };
    let ran = outcomes.iter().flatten().filter(|o| !matches!(o.verdict, "refused" | "skipped")).count();
    let declined = outcomes.iter().flatten().count() - ran;
    let members: Vec<Member<'_>> = seeds
        .iter()
        .zip(outcomes)
        .map(|(seed, outcome)| Member { input: &seed.input, case: &seed.case, outcome })
        .collect();
    let like = repeats(&members, PAGE_BYTES);
    for (seed, like) in seeds.iter().zip(&like) {
        let like = like.map(|i| &seeds[i].name);
        if args.exec.json {
            let mut event = event(seed);
            event["kept"] = like.is_none().into();
            event["like"] = json!(like);
            say!("{event}");
        } else {
            match like {
                None => say!("keep  {}", line(seed)),
                Some(like) => say!("drop  {} (adds nothing to {})", line(seed), like.display()),
            }
        }
    }
    let (kept, dropped): (Vec<_>, Vec<_>) = seeds.iter().zip(&like).partition(|(_, like)| like.is_none());
    let written = write(args, kept.iter().map(|(s, _)| *s), dropped.iter().map(|(s, _)| *s))?;
    let by = if runs { "kernel, verdict and place as run, " } else { "" };
    let by = format!("{by}magnitude of every operand's offsets, choices, knobs, placement, page edges");
    if args.exec.json {
        say!(
            "{}",
            json!({"event": "corpus", "cases": seeds.len(), "kept": kept.len(), "ran": ran, "declined": declined, "by": by,
            "written": written.is_some()})
        );
    } else {
        let done =
            written.unwrap_or_else(|| "nothing was written: --into DIR copies them, --write removes the others".into());
        let ran = if runs {
            format!("{ran} ran, {declined} were refused or skipped; ")
        } else {
            "nothing was run; ".to_owned()
        };
        say!("{} of {} seed cases differ in {by}; {ran}{done}", kept.len(), seeds.len());
    }
    Ok(ExitStatus::Fine)
}

/// Does what --into or --write ask for; what was done, in words.
fn write<'a>(
    args: &MinimiseArgs,
    kept: impl Iterator<Item = &'a Seed>,
    dropped: impl Iterator<Item = &'a Seed>,
) -> Result<Option<String>, Failure> {
    if let Some(into) = &args.into {
        for seed in kept {
            copy(&seed.path, &into.join(&seed.name))?;
        }
        return Ok(Some(format!("copied to {}", into.display())));
    }
    if !args.write {
        return Ok(None);
    }
    let mut removed = 0;
    for seed in dropped {
        std::fs::remove_file(&seed.path).map_err(|e| Failure::usage(StoreError::writing(&seed.path, e)))?;
        removed += 1;
    }
    Ok(Some(format!("{removed} removed")))
}

/// What every case comes to on the target; `None` for those of problems that it does not have, which are told apart as
/// without running.
fn outcomes(args: &MinimiseArgs, seeds: &[Seed]) -> Result<Vec<Option<Outcome>>, Failure> {
    let mut out: Vec<Option<Outcome>> = seeds.iter().map(|_| None).collect();
    let mut problems: Vec<&str> = seeds.iter().map(|s| s.input.problem.name.as_str()).collect();
    problems.sort_unstable();
    problems.dedup();
    let (mut refused, mut opened) = (None, false);
    for name in problems {
        let of: Vec<usize> = (0..seeds.len()).filter(|i| seeds[*i].input.problem.name == name).collect();
        let session = match open(args, &seeds[of[0]]) {
            Ok(session) => session,
            Err(e) if e.status() == ExitStatus::Usage => {
                aside!("note: the cases of {name} are not run: {e}");
                refused = Some(e);
                continue;
            }
            Err(e) => return Err(e),
        };
        opened = true;
        for i in of {
            let result = session.pool.probe(&seeds[i].case, 0, false)?;
            out[i] = Some(Outcome::new(i as u64, seeds[i].case.clone(), &result.verdict, result.kernel));
        }
    }
    refused.filter(|_| !opened).map_or(Ok(out), Err)
}

fn open(args: &MinimiseArgs, seed: &Seed) -> Result<Session, Failure> {
    let subject = match &seed.input.manifest {
        Some(manifest) => Subject::Manifest(Arc::clone(manifest)),
        None => Subject::Builtin(session::builtin(&seed.input.problem.name)?),
    };
    Session::open(Request {
        subject,
        target: args.target.as_deref().unwrap_or("auto"),
        library: &args.library,
        pins: &Pins { set: vec![], range: vec![], dtype: None },
        also: vec![],
        profile: Profile::Strided,
        exec: &args.exec,
        time: None,
        work: (Caps::default().work, MODEL_WORK),
    })
}

fn merge(folders: &[PathBuf], into: &Path, manifest: Option<&Path>, as_json: bool) -> Result<ExitStatus, Failure> {
    let mut all = vec![];
    for folder in folders {
        all.extend(read_all(folder, manifest)?);
    }
    check_empty(into)?;
    let mut merged: Vec<(PathBuf, &Seed)> = vec![];
    let (mut twice, mut renamed) = (0, 0);
    for seed in &all {
        let is_same = |other: &Seed| (&other.input.problem.name, &other.case) == (&seed.input.problem.name, &seed.case);
        let like = merged.iter().find(|(_, other)| is_same(other)).map(|(name, _)| name.clone());
        let name = like.clone().unwrap_or_else(|| free_name(&seed.name, &merged));
        let is_renamed = like.is_none() && name != seed.name;
        if as_json {
            let mut event = event(seed);
            event["from"] = json!(seed.path);
            event["kept"] = like.is_none().into();
            event["as"] = json!(name);
            say!("{event}");
        } else if like.is_some() {
            say!("drop  {} (the same case as {})", seed.path.display(), name.display());
        } else if is_renamed {
            say!("keep  {} as {}: another case has its name", seed.path.display(), name.display());
        }
        renamed += usize::from(is_renamed);
        match like {
            Some(_) => twice += 1,
            None => merged.push((name, seed)),
        }
    }
    for (name, seed) in &merged {
        copy(&seed.path, &into.join(name))?;
    }
    if as_json {
        say!(
            "{}",
            json!({"event": "corpus", "cases": all.len(), "kept": merged.len(), "twice": twice, "renamed": renamed,
            "written": true})
        );
    } else {
        let into = into.display();
        say!(
            "{} of {} seed cases are in {into}: {twice} were there twice, {renamed} have another name",
            merged.len(),
            all.len()
        );
    }
    Ok(ExitStatus::Fine)
}

/// The name itself, or with the first number behind it that is free.
fn free_name(name: &Path, taken: &[(PathBuf, &Seed)]) -> PathBuf {
    let stem = name.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let numbered = (2u32..).map(|n| name.with_file_name(format!("{stem}-{n}.toml")));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|n| taken.iter().all(|(have, _)| have != n)).unwrap_or_else(|| name.to_owned())
}

/// A folder that is written to must have nothing in it: no file is ever written over.
fn check_empty(folder: &Path) -> Result<(), Failure> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Failure::usage(format!("failed to read {}: {e}", folder.display()))),
    };
    match entries.count() {
        0 => Ok(()),
        _ => Err(Failure::usage(format!("{} is not empty: name a new folder with --into", folder.display()))),
    }
}

/// Copies a file byte by byte, so that notes and comments stay.
fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    let failed = |e| Failure::usage(StoreError::writing(to, e));
    let bytes = std::fs::read(from).map_err(|e| Failure::usage(format!("failed to read {}: {e}", from.display())))?;
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    match atomic::create(to, &bytes).map_err(failed)? {
        true => Ok(()),
        false => Err(Failure::usage(StoreError::Differs { path: to.to_owned() })),
    }
}
