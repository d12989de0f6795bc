//! What the runs of a finding's own cases come to: a pure function of counts.

use crate::finding::Status;

/// How the runs of one case went, each in a fresh process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    pub runs: u32,
    /// Failed with the finding's signature.
    pub same: u32,
    /// Failed in another way.
    pub other: u32,
    /// Ran to a right result, the extreme offsets included.
    pub passes: u32,
    /// The first failure of another kind, in words.
    pub otherwise: Option<String>,
    /// Why a run said nothing: refused, skipped, or a pass that proves nothing.
    pub nothing: Option<String>,
}

/// What a case says once it was run often enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Says {
    /// It fails in the finding's way, at least sometimes.
    Fails,
    /// It fails, but never in that way.
    Otherwise(String),
    Passes,
    Nothing(String),
}

impl Seen {
    /// `needed` passes in a row make a pass.
    pub fn says(&self, needed: u32) -> Says {
        if self.same > 0 {
            return Says::Fails;
        }
        match (&self.otherwise, &self.nothing) {
            (Some(how), _) => Says::Otherwise(how.clone()),
            (None, Some(why)) => Says::Nothing(why.clone()),
            (None, None) if self.passes >= needed.max(1) => Says::Passes,
            (None, None) => Says::Nothing(format!("passed {} times, and it takes {needed}", self.passes)),
        }
    }

    /// `2 of 3 runs failed`.
    pub fn rate(&self) -> String {
        format!("{} of {} runs failed", self.same + self.other, self.runs)
    }
}

/// The two sides of a certified pair of one parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairSeen {
    /// Index of the parameter, and its name.
    pub param: usize,
    pub name: String,
    pub good: Seen,
    /// `None` where the bad side is the minimal case itself.
    pub bad: Option<Seen>,
}

/// Everything observed of one finding. Far and original are run only where the minimal case passes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    /// Passes in a row that count as a pass.
    pub needed: u32,
    pub minimal: Seen,
    /// The minimal case without the cases that have to run before it, where the finding lists any and it fails after them.
    pub alone: Option<Seen>,
    pub pairs: Vec<PairSeen>,
    pub far: Option<Seen>,
    pub original: Option<Seen>,
}

/// The case that shows that the line moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lead {
    /// The last good value of this parameter fails.
    Good(usize),
    /// The first bad value of this parameter, which is not that of the minimal case, does not do what that case does.
    Bad(usize),
    /// The minimal case passes, the far witness fails.
    Far,
    /// The minimal case passes, the case as it was found fails.
    Original,
}

/// The answer for one finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Reproduced,
    Moved(Lead),
    /// Fails with another signature; how.
    Different(String),
    Fixed,
    /// It passes where it should fail, but something else answered; what.
    NotComparable(String),
    /// Why it was not run, or says nothing.
    Skipped(String),
}

/// Concludes. `differences` say what answered instead of what the file names; where there are any, a pass proves nothing
/// about the finding.
pub fn conclude(seen: &Observed, differences: &[String]) -> Outcome {
    let outcome = match seen.minimal.says(seen.needed) {
        Says::Nothing(why) => Outcome::Skipped(why),
        Says::Otherwise(how) => Outcome::Different(how),
        Says::Fails => while_failing(seen),
        Says::Passes => while_passing(seen),
    };
    match outcome {
        Outcome::Fixed | Outcome::Moved(_) if !differences.is_empty() => Outcome::NotComparable(differences.join("; ")),
        other => other,
    }
}

/// The minimal case fails as filed: the line is where it was if every pair still stands on both sides of it.
fn while_failing(seen: &Observed) -> Outcome {
    let says = |s: &Seen| s.says(seen.needed);
    if let Some(Says::Fails | Says::Otherwise(_)) = seen.alone.as_ref().map(says) {
        return Outcome::Different("it fails without the cases that the finding runs before it, too".to_owned());
    }
    for pair in &seen.pairs {
        if says(&pair.good) == Says::Fails {
            return Outcome::Moved(Lead::Good(pair.param));
        }
        if pair.bad.as_ref().is_some_and(|bad| says(bad) == Says::Passes) {
            return Outcome::Moved(Lead::Bad(pair.param));
        }
    }
    for pair in &seen.pairs {
        for (side, of) in [(Some(&pair.good), "last good"), (pair.bad.as_ref(), "first bad")] {
            if let Some(Says::Otherwise(how)) = side.map(says) {
                return Outcome::Different(format!("the {of} value of {}: {how}", pair.name));
            }
        }
    }
    Outcome::Reproduced
}

/// The minimal case passes: it is fixed only if everything else passes, too.
fn while_passing(seen: &Observed) -> Outcome {
    let pairs = seen.pairs.iter();
    let sides = pairs.flat_map(|p| {
        let bad = p.bad.as_ref().map(|s| (Lead::Bad(p.param), format!("the first bad value of {}", p.name), s));
        [Some((Lead::Good(p.param), format!("the last good value of {}", p.name), &p.good)), bad]
    });
    let far = seen.far.as_ref().map(|s| (Lead::Far, "the far witness".to_owned(), s));
    let original = seen.original.as_ref().map(|s| (Lead::Original, "the original case".to_owned(), s));
    let (mut different, mut silent) = (None, None);
    for (lead, name, case) in [far].into_iter().chain(sides).chain([original]).flatten() {
        match case.says(seen.needed) {
            Says::Fails => return Outcome::Moved(lead),
            Says::Otherwise(how) => drop(different.get_or_insert(Outcome::Different(format!("{name}: {how}")))),
            Says::Nothing(why) => drop(silent.get_or_insert(Outcome::Skipped(format!(
                "the minimal case passes, but {name} says nothing ({why}), so it cannot be called fixed"
            )))),
            Says::Passes => {}
        }
    }
    different.or(silent).unwrap_or(Outcome::Fixed)
}

/// The word that an outcome is reported by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Word {
    Reproduced,
    /// Filed as fixed, and fails again.
    Back,
    Moved,
    Different,
    Fixed,
    NotComparable,
    Skipped,
}

impl Word {
    pub fn of(outcome: &Outcome, filed: Status) -> Word {
        match (outcome, filed) {
            (Outcome::Reproduced | Outcome::Moved(_), Status::Fixed) => Word::Back,
            (Outcome::Reproduced, Status::Open) => Word::Reproduced,
            (Outcome::Moved(_), Status::Open) => Word::Moved,
            (Outcome::Different(_), _) => Word::Different,
            (Outcome::Fixed, _) => Word::Fixed,
            (Outcome::NotComparable(_), _) => Word::NotComparable,
            (Outcome::Skipped(_), _) => Word::Skipped,
        }
    }

    pub fn text(self) -> &'static str {
        match self {
            Word::Reproduced => "reproduced",
            Word::Back => "back",
            Word::Moved => "moved",
            Word::Different => "different",
            Word::Fixed => "fixed",
            Word::NotComparable => "not-comparable",
            Word::Skipped => "skipped",
        }
    }

    /// Somebody has to look: not what the file says.
    pub fn is_failure(self) -> bool {
        matches!(self, Word::Back | Word::Moved | Word::Different)
    }

    /// The finding ran and is as filed; one that is newly fixed is, too.
    pub fn is_as_filed(self) -> bool {
        matches!(self, Word::Reproduced | Word::Fixed)
    }
}

#[cfg(test)]
#[path = "outcome_tests.rs"]
mod tests;
