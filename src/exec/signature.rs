//! What must stay equal while a case shrinks.

use super::verdict::{Place, Verdict, WrongKind};
use crate::device::Access;
use serde::{Deserialize, Serialize};

/// The kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// Fault, wrong or unwritten.
    Memory,
    Hang,
    Crash,
}

/// Operand, access, place and family of a failure; `None` is unknown and matches anything.
///
/// The target is the same for all probes of a run and is kept beside it in the finding.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Signature {
    pub operand: Option<String>,
    pub access: Option<Access>,
    pub place: Option<Place>,
    pub family: Family,
}

impl Signature {
    /// The signature of a bad verdict; `None` for any other.
    pub fn of(verdict: &Verdict) -> Option<Signature> {
        let memory = |hit: Option<&super::verdict::Hit>, access| Signature {
            operand: hit.map(|h| h.operand.clone()),
            access,
            // On an element that a sampled run had not mapped: a whole run would have been silent there, so the place
            // says nothing that a smaller case could keep.
            place: hit.map(|h| h.place).filter(|p| *p != Place::Element),
            family: Family::Memory,
        };
        let bare = |family| Signature { operand: None, access: None, place: None, family };
        match verdict {
            Verdict::Fault(f) => Some(memory(f.hit.as_ref(), f.access)),
            Verdict::Wrong(w) if w.kind == WrongKind::Stray => Some(memory(w.hit.as_ref(), Some(Access::Write))),
            Verdict::Wrong(_) => Some(bare(Family::Memory)),
            Verdict::Hang { .. } => Some(bare(Family::Hang)),
            Verdict::Crash { .. } => Some(bare(Family::Crash)),
            Verdict::Pass { .. } | Verdict::Refused { .. } | Verdict::Skipped { .. } => None,
        }
    }

    /// Whether the two can be the same failure: every part that both know is equal.
    pub fn matches(&self, other: &Signature) -> bool {
        fn agree<T: PartialEq>(a: &Option<T>, b: &Option<T>) -> bool {
            match (a, b) {
                (Some(a), Some(b)) => a == b,
                _ => true,
            }
        }
        self.family == other.family
            && agree(&self.operand, &other.operand)
            && agree(&self.access, &other.access)
            && agree(&self.place, &other.place)
    }

    /// Whether operand and place are both known: a signature that says where.
    pub fn is_located(&self) -> bool {
        self.operand.is_some() && self.place.is_some()
    }
}

impl std::fmt::Display for Signature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.family {
            Family::Hang => return f.write_str("hang"),
            Family::Crash => return f.write_str("crash"),
            Family::Memory => {}
        }
        if (&self.operand, self.access, self.place) == (&None, None, None) {
            return f.write_str("place unknown");
        }
        let access = match self.access {
            Some(Access::Read) => "read",
            Some(Access::Write) => "write",
            None => "access",
        };
        write!(f, "{access} of {}", self.operand.as_deref().unwrap_or("an unknown operand"))?;
        match self.place {
            Some(p) => write!(f, ", {p}"),
            None => f.write_str(", place unknown"),
        }
    }
}
