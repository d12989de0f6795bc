use super::super::engine::{Engine, Seen};
use super::super::line::{Follow, Line};
use super::Move;
use crate::exec::ProbeError;

/// Values tried from the least up: a little over the largest usual tile.
const VALUES: i64 = 272;

/// Tries every small value of one integer, lowest first: failures of some remainders only have holes that no search by
/// halves can see.
///
/// Before: `m=1 n=1 k=101` (fails where `k % 96 == 5`). After: `m=1 n=1 k=5`.
pub struct Scan;

impl Move for Scan {
    fn name(&self) -> &'static str {
        "scan small values"
    }

    fn run(&self, e: &mut Engine) -> Result<bool, ProbeError> {
        let before = e.ladder.len();
        for param in e.integers(&e.current) {
            let line = Line::new(e.problem, &e.current, &[param], Follow::Packed);
            let Some(low) = line.lowest() else { continue };
            // Far above the scan only the remainders of the usual tiles are left to chance; the searches did those.
            if line.value() > low.saturating_add(16 * VALUES) {
                continue;
            }
            let mut v = low;
            while v < line.value() && v < low.saturating_add(VALUES * line.step()) {
                if let Some(case) = line.at(v)
                    && e.step(&case, self.name())? == Seen::Bad
                {
                    break;
                }
                let Some(next) = line.round_up(v.saturating_add(1)) else { break };
                v = next;
            }
        }
        Ok(e.ladder.len() > before)
    }
}
