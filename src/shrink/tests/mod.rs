//! Shrinking planted failures of known rules, compared with enumeration.

mod boundaries;
mod limits;
mod oracle;
mod planted;
mod rules;
mod starts;
