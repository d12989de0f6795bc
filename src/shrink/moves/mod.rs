//! The moves: each one looks for a smaller case in one way, and accepts what fails in the same way.

mod collapse;
mod drop_feature;
mod element_type;
mod exchange;
mod lower;
mod pack;
mod scan;
mod tie;
mod tiny;
mod trade;

use super::Strategy;
use super::engine::Engine;
use crate::exec::ProbeError;

/// One way to a smaller case.
pub trait Move {
    /// For the ladder.
    fn name(&self) -> &'static str;

    /// Tries everything this move knows from the current case; whether anything was accepted.
    ///
    /// # Errors
    /// Where no verdict can be had any more; what was accepted stays.
    fn run(&self, e: &mut Engine) -> Result<bool, ProbeError>;
}

/// The moves of a strategy, in the order in which they pay: repeated until none of them finds anything.
pub fn all(strategy: Strategy) -> Vec<Box<dyn Move>> {
    match strategy {
        Strategy::HintFirst => vec![
            Box::new(collapse::Collapse),
            Box::new(drop_feature::DropFeature),
            Box::new(pack::Pack),
            Box::new(tie::Tie),
            Box::new(lower::Lower),
            Box::new(trade::Trade),
            Box::new(element_type::ElementType),
        ],
        Strategy::PlainBisection => {
            vec![Box::new(drop_feature::DropFeature), Box::new(pack::Pack), Box::new(lower::Lower)]
        }
    }
}

/// Tried once nothing else helps.
pub fn last(strategy: Strategy) -> Vec<Box<dyn Move>> {
    match strategy {
        Strategy::HintFirst => vec![Box::new(collapse::Polish), Box::new(exchange::Exchange), Box::new(scan::Scan)],
        Strategy::PlainBisection => vec![],
    }
}
