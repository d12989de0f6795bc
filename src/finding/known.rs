//! Is a failure known already?
//!
//! A failure is known where a finding has the same problem and target (the version and place of the library or manifest aside), a
//! signature that matches, and
//! - **the case is one of the finding's own**: original, minimal, far, or the bad side of a witness pair; or
//! - **it lies past the finding's lines**: the same knobs, at least one certified pair of an integer, and for every
//!   parameter that has a meaning in either case
//!   - a certified pair: at or past its first bad value, seen from its last good one;
//!   - an integer listed as irrelevant: anything;
//!   - any other integer: the minimal case's value, or more where that value is the least that the minimal case allows;
//!   - a choice: the minimal case's value, or one of which the finding says that it fails in the same way.
//!
//! Where only one of the two signatures says where (a wrong result next to a fault), the second way also asks that the case
//! differ from the minimal one in a single parameter, one with a certified pair.
//!
//! So operand and place alone never make a failure known, and a finding without a certified pair knows its own cases only.
//! A finding marked as fixed matches too; what that means (it is back) is for the caller to say.

use super::Catalog;
use super::check;
use super::facts::{Certified, Effect, Facts, Witness};
use super::file::{Finding, Status};
use super::name::same_target;
use crate::exec::Signature;
use crate::problem::{Assignment, Case, Problem};
use crate::target::TargetSpec;
use std::path::{Path, PathBuf};

/// Folders below the given one that are looked through.
const DEPTH: u32 = 3;

/// A finding and where it lies.
#[derive(Debug, Clone)]
pub struct Entry {
    pub name: String,
    pub path: PathBuf,
    pub finding: Finding,
}

/// The findings there are.
#[derive(Debug, Clone, Default)]
pub struct Known {
    entries: Vec<Entry>,
}

/// A file that gave no finding, in one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning(pub String);

/// By which part of the rule a failure is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The case is one of the finding's own.
    OwnCase,
    /// It lies past the finding's confirmed lines.
    PastLines,
}

/// The finding that a failure belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    pub name: String,
    pub path: PathBuf,
    /// `Fixed`: the failure is back.
    pub status: Status,
    pub by: By,
}

impl Known {
    /// Reads every finding below the folders, in the order of folders and names. A folder that does not exist is empty; a
    /// name that was read before is not read again.
    pub fn load(folders: &[PathBuf], catalog: &Catalog) -> (Known, Vec<Warning>) {
        let (mut known, mut warnings) = (Known::default(), vec![]);
        for folder in folders {
            known.load_folder(folder, catalog, DEPTH, &mut warnings);
        }
        (known, warnings)
    }

    fn load_folder(&mut self, folder: &Path, catalog: &Catalog, depth: u32, warnings: &mut Vec<Warning>) {
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return,
            Err(e) => {
                warnings.push(Warning(format!("failed to read {}: {e}", folder.display())));
                return;
            }
        };
        let mut paths: Vec<(PathBuf, bool)> =
            entries.flatten().map(|e| (e.path(), e.file_type().is_ok_and(|t| t.is_dir()))).collect();
        paths.sort();
        for (path, is_folder) in paths {
            let hidden = path.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.'));
            if is_folder && depth > 0 && !hidden {
                self.load_folder(&path, catalog, depth - 1, warnings);
            } else if !is_folder && !hidden && path.extension().is_some_and(|e| e == "toml") {
                match Finding::read_with(&path, catalog) {
                    Ok(finding) => self.add(path, finding),
                    Err(e) => warnings.push(Warning(format!("{e}; it is passed over"))),
                }
            }
        }
    }

    /// Adds a finding, unless one of the same name is there.
    pub fn add(&mut self, path: PathBuf, finding: Finding) {
        let name = finding.name();
        if !self.entries.iter().any(|e| e.name == name) {
            self.entries.push(Entry { name, path, finding });
        }
    }

    /// Forgets the findings of another brand: `libblas.so.3` is the name of many libraries. A finding, or a library, that does
    /// not say its brand stays.
    pub fn keep_brand(&mut self, identity: &[(String, String)]) {
        let name = |facts: &[(String, String)]| facts.iter().find(|(n, _)| n == "name").map(|(_, v)| v.clone());
        let Some(here) = name(identity) else { return };
        self.entries.retain(|e| name(&e.finding.facts().environment.target).is_none_or(|there| there == here));
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The finding that a failing case belongs to, by the rule above; open findings are asked first, and own cases before
    /// lines.
    pub fn matching(
        &self,
        problem: &Problem,
        target: &TargetSpec,
        case: &Case,
        signature: &Signature,
    ) -> Option<Match> {
        let mut found: Vec<Match> = self
            .alike(problem, target, signature)
            // What needs other cases is no other failure's reason: those are asked by `histories`.
            .filter(|e| e.finding.facts().history.is_none())
            .filter_map(|e| {
                let facts = e.finding.facts();
                let case = check::filed(&facts.problem, case);
                let half_known = facts.signature.is_located() != signature.is_located();
                let by = if is_own(facts, &case) {
                    By::OwnCase
                } else if is_past_lines(facts, &case) && (!half_known || is_on_one_line(facts, &case)) {
                    By::PastLines
                } else {
                    return None;
                };
                Some(e.matched(by))
            })
            .collect();
        found.sort_by_key(|m| (m.status == Status::Fixed, m.by == By::PastLines));
        found.into_iter().next()
    }

    /// The findings of a target that fail only after other cases: whether one of them explains a failure shows when the
    /// case runs after its list.
    pub fn histories<'a>(&'a self, problem: &'a Problem, target: &'a TargetSpec) -> impl Iterator<Item = &'a Entry> {
        self.of(problem, target).filter(|e| e.finding.facts().history.is_some())
    }

    /// The finding that has this minimal case and list of cases before it: what a shrink asks at its end.
    pub fn same_minimal(
        &self,
        problem: &Problem,
        target: &TargetSpec,
        case: &Case,
        signature: &Signature,
        before: &[Case],
    ) -> Option<Match> {
        let found = self.alike(problem, target, signature).filter(|e| {
            let facts = e.finding.facts();
            let case = check::filed(&facts.problem, case);
            // Where the operands lay is no part of what fails.
            (&facts.minimal.params, &facts.minimal.knobs) == (&case.params, &case.knobs)
                && facts.before(&facts.minimal) == before
        });
        found.min_by_key(|e| e.finding.status() == Status::Fixed).map(|e| e.matched(By::OwnCase))
    }

    fn alike<'a>(
        &'a self,
        problem: &'a Problem,
        target: &'a TargetSpec,
        signature: &'a Signature,
    ) -> impl Iterator<Item = &'a Entry> {
        self.of(problem, target).filter(move |e| e.finding.facts().signature.matches(signature))
    }

    fn of<'a>(&'a self, problem: &'a Problem, target: &'a TargetSpec) -> impl Iterator<Item = &'a Entry> {
        self.entries.iter().filter(move |e| {
            let facts = e.finding.facts();
            facts.problem.name == problem.name
                && facts.minimal.params.0.len() == problem.params.len()
                && same_target(&facts.target, target)
        })
    }
}

impl Entry {
    fn matched(&self, by: By) -> Match {
        Match { name: self.name.clone(), path: self.path.clone(), status: self.finding.status(), by }
    }
}

fn is_own(facts: &Facts, case: &Case) -> bool {
    if *case == facts.original {
        return true;
    }
    let minimal = &facts.minimal;
    if case.knobs != minimal.knobs || case.placement != minimal.placement {
        return false;
    }
    if case.params == minimal.params || facts.far.as_ref().is_some_and(|f| f.params == case.params) {
        return true;
    }
    let Ok(narrowed) = facts.narrowed() else { return false };
    let bad = |w: &Witness| check::at(&narrowed, &minimal.params, w.param, w.bad.0);
    facts.witnesses.iter().any(|w| bad(w).is_some_and(|params| params == case.params))
}

/// Last good and first bad value of a certified pair.
pub(super) fn certified_pair(facts: &Facts, param: usize) -> Option<(i64, i64)> {
    let witness = facts.witnesses.iter().find(|w| w.param == param && matches!(w.certified, Certified::Yes { .. }));
    witness.and_then(|w| Some((w.good?.0, w.bad.0)))
}

/// Whether the case differs from the minimal one in a single parameter, one with a certified pair.
fn is_on_one_line(facts: &Facts, case: &Case) -> bool {
    let minimal = &facts.minimal.params;
    let mut differ = (0..minimal.0.len()).filter(|i| minimal[*i] != case.params[*i]);
    matches!((differ.next(), differ.next()), (Some(i), None) if certified_pair(facts, i).is_some())
}

fn is_past_lines(facts: &Facts, case: &Case) -> bool {
    let problem = &facts.problem;
    let certified = |i| certified_pair(facts, i);
    let has_line = (0..problem.params.len()).any(|i| !problem.params[i].is_choice() && certified(i).is_some());
    has_line
        && case.knobs == facts.minimal.knobs
        && (0..problem.params.len()).all(|i| {
            let (value, minimal) = (case.params[i], facts.minimal.params[i]);
            if problem.params[i].is_choice() {
                return value == minimal || fails_alike(facts, i, value);
            }
            if !problem.is_active(i, &case.params.0) && !problem.is_active(i, &facts.minimal.params.0) {
                return true;
            }
            match certified(i) {
                Some((good, bad)) => {
                    if bad > good {
                        value >= bad
                    } else {
                        value <= bad
                    }
                }
                None if facts.irrelevant.iter().any(|(param, _)| *param == i) => true,
                None => value == minimal || (value > minimal && is_least(problem, &facts.minimal.params, i)),
            }
        })
}

/// Whether the finding says that another value of a choice fails in its way.
pub(super) fn fails_alike(facts: &Facts, param: usize, value: i64) -> bool {
    facts.choices.iter().any(|c| c.param == param && c.value == value && c.effect == Effect::Same)
}

/// Whether the case has the least value that its other parameters leave to this one.
pub(super) fn is_least(problem: &Problem, values: &Assignment, param: usize) -> bool {
    let (low, _) = problem.bounds(param, &values.0);
    problem.params[param].round_up(low).is_some_and(|least| values[param] <= least)
}

#[cfg(test)]
#[path = "known_tests.rs"]
mod tests;
