//! What the journal holds of a hunt, so that it can be gone on with: docs/journal.md.

use crate::exec::{Signature, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How a hunt began. `terms` is everything that its list of cases and their verdicts depend on, by the name that people know
/// it by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// Version of the lines.
    pub journal: u32,
    /// Names the hunt among those of its folder.
    #[serde(default)]
    pub hunt: String,
    /// As RFC 3339 writes it, in UTC.
    #[serde(default)]
    pub time: String,
    pub pid: u32,
    #[serde(default)]
    pub command: Vec<String>,
    #[serde(default)]
    pub terms: Map<String, Value>,
}

/// What became of a bad case: what changes in the counts of its hunt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// It was filed as this finding.
    New(String),
    /// It was counted for this finding.
    Known(String),
    /// A case of this signature was shrunk.
    Shrunk(String),
    /// A case of this signature was saved without being looked into.
    Raw(String),
    NotShrunk,
    GapNote,
    Slow,
    Unreproduced,
}

/// What the rest of a hunt needs to know of one result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// See [`Verdict::word`].
    pub verdict: String,
    /// A pass of which only some work-groups ran.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sampled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
}

impl Answer {
    pub fn new(verdict: &Verdict, kernel: Option<String>) -> Answer {
        Answer {
            verdict: verdict.word().to_owned(),
            sampled: matches!(verdict, Verdict::Pass { sample: Some(_) }),
            kernel,
            signature: Signature::of(verdict),
        }
    }
}

/// What a hunt has used up to the end of a round, over all runs of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    pub seconds: f64,
    pub processes: u64,
    pub remapped: u64,
    /// The time limit of a case, in multiples of the one set.
    pub stretch: u32,
}

/// A completed round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Round {
    pub round: u64,
    /// The answers that occurred, each once.
    pub answers: Vec<Answer>,
    /// Position in `answers`, and how many cases in a row have it, in case order.
    pub runs: Vec<(usize, u64)>,
    /// The first digits of the sums over all cases and all verdicts of the hunt up to here.
    pub cases: String,
    pub verdicts: String,
    pub spent: Spent,
}

impl Round {
    /// The answers of all cases, packed.
    pub fn pack(all: Vec<Answer>) -> (Vec<Answer>, Vec<(usize, u64)>) {
        let (mut answers, mut runs): (Vec<Answer>, Vec<(usize, u64)>) = (vec![], vec![]);
        for answer in all {
            let at = answers.iter().position(|a| *a == answer).unwrap_or_else(|| {
                answers.push(answer);
                answers.len() - 1
            });
            match runs.last_mut() {
                Some((last, times)) if *last == at => *times += 1,
                _ => runs.push((at, 1)),
            }
        }
        (answers, runs)
    }

    /// How many cases it has; `None` where the line contradicts itself.
    pub fn count(&self) -> Option<u64> {
        let known = self.runs.iter().all(|(at, _)| *at < self.answers.len());
        known.then(|| self.runs.iter().try_fold(0u64, |sum, (_, times)| sum.checked_add(*times)))?
    }

    /// The answers in case order.
    pub fn iter(&self) -> impl Iterator<Item = &Answer> {
        self.runs.iter().flat_map(|(at, times)| (0..*times).filter_map(|_| self.answers.get(*at)))
    }
}

/// A line as it is read again.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Record {
    Start(Start),
    Resume {
        round: u64,
    },
    Bad {
        case: u64,
    },
    Filing {
        case: u64,
        finding: String,
        effects: Vec<Effect>,
    },
    Settled {
        case: u64,
        effects: Vec<Effect>,
    },
    Round(Round),
    /// Nothing that the rest of a hunt depends on.
    #[serde(other)]
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packed_answers_are_read_back_in_case_order(words in proptest::collection::vec(0usize..4, 0..60)) {
            let answer = |i: &usize| Answer {
                verdict: ["pass", "fault", "pass", "skipped"][*i].to_owned(),
                sampled: *i == 2,
                kernel: (*i == 1).then(|| "k".to_owned()),
                signature: None,
            };
            let all: Vec<Answer> = words.iter().map(answer).collect();
            let (answers, runs) = Round::pack(all.clone());
            prop_assert!(answers.len() <= 4);
            let spent = Spent::default();
            let round = Round { round: 0, answers, runs, cases: String::new(), verdicts: String::new(), spent };
            let again: Round = serde_json::from_str(&serde_json::to_string(&round).unwrap()).unwrap();
            prop_assert_eq!(again.count(), Some(all.len() as u64));
            prop_assert_eq!(again.iter().cloned().collect::<Vec<_>>(), all);
        }
    }
}
