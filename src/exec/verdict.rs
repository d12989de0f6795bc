//! What one run of a case came to.

use crate::device::Access;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Accesses up to this far past the end or before the start count as near: an over-run rather than a wrap.
pub const NEAR_BYTES: i64 = 64 << 10;

/// Where an address lies relative to the operand it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Within 64 KiB before the lowest element.
    BeforeStart,
    /// Within 64 KiB past the highest element.
    PastEnd,
    /// Inside the span, but no element.
    Gap,
    /// On an element that this run had no business with.
    Element,
    /// Further away than 64 KiB.
    Far,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Place::BeforeStart => "before the start",
            Place::PastEnd => "past the end",
            Place::Gap => "in the gap between rows",
            Place::Element => "on another element",
            Place::Far => "far away",
        })
    }
}

/// An address tied to the operand whose slot it lies in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    pub operand: String,
    /// Rank whose copy it is; 0 where there is one copy.
    pub copy: u32,
    pub place: Place,
    /// Address minus base pointer, bytes.
    pub from_base: i64,
    /// Bytes past the last byte of the operand (0 is the first byte past it), or, negative, before its first byte;
    /// 0 inside the span.
    pub from_edge: i64,
}

/// What is known of a memory fault, and which channel said so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    pub address: Option<u64>,
    /// Where the address is that of a page in which the access lies: bytes of the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<u64>,
    pub access: Option<Access>,
    pub hit: Option<Hit>,
    /// Module, offset and symbol of the faulting instruction.
    pub code: Option<String>,
    /// Who said so, for instance "SIGSEGV handler".
    pub channel: String,
}

/// How a result differs from the right one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WrongKind {
    /// An output element has another value.
    Value,
    /// An output element still holds what was there before the run.
    Unwritten,
    /// Bytes that are no output elements were changed.
    Stray,
}

/// What is known of a wrong result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wrong {
    pub kind: WrongKind,
    /// Operand where the damage was seen, not the one whose offset is to blame; empty where a foreign program did not say.
    pub operand: String,
    pub copy: u32,
    /// Logical index of the first wrong element; empty for stray bytes.
    pub first: Vec<i64>,
    /// Wrong elements, or changed bytes.
    pub count: u64,
    /// Elements or bytes compared; 0 where a foreign program did not say.
    pub compared: u64,
    /// Where the first changed byte lies, for stray writes.
    pub hit: Option<Hit>,
}

impl Wrong {
    /// `3 of 8 elements of C`, without what is not known.
    pub fn elements(&self) -> String {
        let mut text = match (self.compared, self.count) {
            (0, 1) => "at least 1 element".to_owned(),
            (0, n) => format!("{n} elements"),
            (all, n) => format!("{n} of {all} elements"),
        };
        if !self.operand.is_empty() {
            text.push_str(&format!(" of {}", self.operand));
        }
        text
    }
}

/// How much of a passing case was run and compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Sample {
    /// Work-groups that ran.
    pub groups: u64,
    /// Work-groups that the case has.
    pub of: u64,
    /// Whether the elements with the extreme offsets of every operand were among them.
    pub extremes: bool,
}

/// What one run of a case came to. Only `Pass` is a pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Everything compared was right; `sample` says where not everything ran.
    Pass {
        sample: Option<Sample>,
    },
    Fault(Fault),
    Wrong(Wrong),
    /// No answer within the deadline.
    Hang {
        after_ms: u64,
    },
    /// Died in another way than a memory fault on an operand.
    Crash {
        how: String,
        code: Option<String>,
    },
    /// The target declined with a clean status.
    Refused {
        detail: String,
    },
    /// Not run, by rule or for want of memory; `state` means that another moment may answer otherwise.
    Skipped {
        detail: String,
        state: bool,
    },
}

impl Verdict {
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Pass { .. } => "pass",
            Verdict::Fault(_) => "fault",
            Verdict::Wrong(_) => "wrong",
            Verdict::Hang { .. } => "hang",
            Verdict::Crash { .. } => "crash",
            Verdict::Refused { .. } => "refused",
            Verdict::Skipped { .. } => "skipped",
        }
    }

    /// The word of a verdict, read again.
    pub fn known_word(text: &str) -> Option<&'static str> {
        ["pass", "fault", "wrong", "hang", "crash", "refused", "skipped"].into_iter().find(|w| *w == text)
    }

    /// The case ran and went badly.
    pub fn is_bad(&self) -> bool {
        matches!(self, Verdict::Fault(_) | Verdict::Wrong(_) | Verdict::Hang { .. } | Verdict::Crash { .. })
    }

    pub fn is_pass(&self) -> bool {
        matches!(self, Verdict::Pass { .. })
    }

    /// A pass that may stand as last good: everything ran, or the extreme offsets were among what ran.
    pub fn is_witness_pass(&self) -> bool {
        matches!(self, Verdict::Pass { sample } if sample.is_none_or(|s| s.extremes))
    }

    /// The worker that gave this verdict is gone.
    pub fn ends_worker(&self) -> bool {
        matches!(self, Verdict::Fault(_) | Verdict::Hang { .. } | Verdict::Crash { .. })
    }
}
