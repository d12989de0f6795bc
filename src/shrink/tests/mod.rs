//! Shrinking planted failures of known rules, compared with enumeration.

mod boundaries;
mod limits;
pub(super) mod oracle;
mod planted;
mod rules;
mod starts;
