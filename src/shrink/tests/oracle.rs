//! Probers without processes.

use crate::device::Access;
use crate::exec::{Family, Fault, Freshness, Hit, Observation, Place, ProbeError, Prober, Verdict, Wrong, WrongKind};
use crate::problem::Case;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

/// Answers from a rule, and counts.
pub struct Oracle<F> {
    pub rule: F,
    pub ratio: f64,
    pub probes: u64,
    /// Probes that are answered; then the time is up.
    pub budget: u64,
    /// The time limit, in multiples of the first one: for rules of cases that take long.
    pub limit: Rc<Cell<u32>>,
}

impl<F: FnMut(&Case, Freshness) -> Verdict> Oracle<F> {
    pub fn new(rule: F) -> Oracle<F> {
        Oracle { rule, ratio: 40.0, probes: 0, budget: u64::MAX, limit: Rc::new(Cell::new(1)) }
    }
}

impl<F: FnMut(&Case, Freshness) -> Verdict> Prober for Oracle<F> {
    fn probe(&mut self, case: &Case, freshness: Freshness) -> Result<Observation, ProbeError> {
        if self.probes >= self.budget {
            return Err(ProbeError::OutOfTime);
        }
        self.probes += 1;
        Ok(Observation {
            verdict: (self.rule)(case, freshness),
            kernel: None,
            resolved: Default::default(),
            remapped: 0,
            took: Duration::ZERO,
        })
    }

    fn answers_late(&mut self, case: &Case) -> Result<Option<Duration>, ProbeError> {
        let limit = self.limit.get();
        self.limit.set(4 * limit);
        let late = !matches!((self.rule)(case, Freshness::Fresh), Verdict::Hang { .. });
        if !late {
            self.limit.set(limit);
        }
        Ok(late.then_some(Duration::from_secs(20)))
    }

    fn cost_ratio(&self, _family: Family, _pass: Option<Duration>) -> f64 {
        self.ratio
    }
}

pub const PASS: Verdict = Verdict::Pass { sample: None };

pub fn fault(operand: &str, access: Access, place: Place) -> Verdict {
    Verdict::Fault(Fault {
        address: None,
        page: None,
        access: Some(access),
        hit: Some(Hit { operand: operand.into(), copy: 0, place, from_base: 0, from_edge: 0 }),
        code: None,
        channel: "rule".into(),
    })
}

pub fn wrong(kind: WrongKind) -> Verdict {
    Verdict::Wrong(Wrong { kind, operand: "C".into(), copy: 0, first: vec![0], count: 1, compared: 1, hit: None })
}
