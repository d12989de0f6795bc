//! What the documented rule of every sim model says of a case, and the least case of a rule by enumeration.
//!
//! Restated from docs/sim-models.md in 128-bit integers that are narrowed by hand; nothing here is shared with the program.

#![allow(dead_code)]

pub mod case;
pub mod enumerate;
pub mod gather;
pub mod gemm;
pub mod memory;

/// Place class of an access, as the program names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    BeforeStart,
    PastEnd,
    Gap,
    Element,
    Far,
}

impl Place {
    pub fn word(self) -> &'static str {
        match self {
            Place::BeforeStart => "before-start",
            Place::PastEnd => "past-end",
            Place::Gap => "gap",
            Place::Element => "element",
            Place::Far => "far",
        }
    }
}

/// What stays equal while a case shrinks; `None` is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    pub family: String,
    pub operand: Option<String>,
    pub access: Option<String>,
    pub place: Option<String>,
}

impl Signature {
    pub fn bare(family: &str) -> Signature {
        Signature { family: family.into(), operand: None, access: None, place: None }
    }

    pub fn located(operand: &str, access: &str, place: Place) -> Signature {
        Signature {
            family: "memory".into(),
            operand: Some(operand.into()),
            access: Some(access.into()),
            place: Some(place.word().into()),
        }
    }

    /// As a finding file states it.
    pub fn of_file(finding: &toml::Table) -> Signature {
        let table = finding["signature"].as_table().unwrap();
        let text = |name: &str| table.get(name).map(|v| v.as_str().unwrap().to_owned());
        Signature {
            family: text("family").unwrap(),
            operand: text("operand"),
            access: text("access"),
            place: text("place"),
        }
    }

    pub fn matches(&self, other: &Signature) -> bool {
        let agree = |a: &Option<String>, b: &Option<String>| a.is_none() || b.is_none() || a == b;
        self.family == other.family
            && agree(&self.operand, &other.operand)
            && agree(&self.access, &other.access)
            && agree(&self.place, &other.place)
    }
}

/// What the rule says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    Bad(Signature),
    /// A value of the operand itself stands in for the right one: the contents decide.
    ByContents,
}

impl Verdict {
    /// Whether this is the failure looked for. One without a place says too little to be the same as one that has it.
    pub fn is(&self, signature: &Signature) -> bool {
        let located = |s: &Signature| s.place.is_some();
        matches!(self, Verdict::Bad(s) if s.matches(signature) && (located(s) || !located(signature)))
    }
}

/// The low 32 bits, as a signed number.
pub fn i32_of(x: i128) -> i128 {
    (x + (1 << 31)).rem_euclid(1 << 32) - (1 << 31)
}

/// A model with its settings drawn, and the problem it belongs to.
pub trait Rule {
    fn schema(&self) -> &'static [case::Param];
    /// Whether a parameter has a meaning.
    fn is_active(&self, param: usize, v: &case::Values) -> bool;
    /// Least value that the other parameters leave to an integer.
    fn least(&self, param: usize, v: &case::Values) -> i128;
    fn work(&self, v: &case::Values) -> i128;
    fn verdict(&self, v: &case::Values, place: &case::Placement) -> Verdict;
    /// Sizes worth enumerating beside the small ones: those at which the rule's own counts change.
    fn large_sizes(&self) -> Vec<case::Sizes>;
    /// Whether short strides decide where an over-run ends.
    fn is_overrun(&self) -> bool;
}
