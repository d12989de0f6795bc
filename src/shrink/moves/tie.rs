use super::super::engine::Engine;
use super::super::integer;
use super::super::line::{Follow, Line};
use super::Move;
use crate::exec::ProbeError;
use crate::problem::Role;
use std::collections::BTreeMap;

/// Lowers equal integers together: a failure that needs `m = n` is lost when either is lowered alone.
///
/// Before: `m=96 n=96 k=1`. After: `m=17 n=17 k=1`.
pub struct Tie;

impl Move for Tie {
    fn name(&self) -> &'static str {
        "lower equal ones together"
    }

    fn run(&self, e: &mut Engine) -> Result<bool, ProbeError> {
        let before = e.ladder.len();
        for sizes_only in [true, false] {
            for group in groups(e, sizes_only) {
                let value = e.current[group[0]];
                if group.iter().any(|p| e.current[*p] != value) {
                    continue;
                }
                for follow in [Follow::Packed, Follow::Held] {
                    let line = Line::new(e.problem, &e.current, &group, follow);
                    integer::lower(e, &line, self.name())?;
                }
            }
        }
        Ok(e.ladder.len() > before)
    }
}

/// Integers above their least value by value, two or more of each.
fn groups(e: &Engine, sizes_only: bool) -> Vec<Vec<usize>> {
    let mut by_value: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for i in e.integers(&e.current) {
        let p = &e.problem.params[i];
        let wanted = !sizes_only || p.role != Role::Stride;
        if wanted && e.current[i] > p.least() {
            by_value.entry(e.current[i]).or_default().push(i);
        }
    }
    by_value.into_values().rev().filter(|g| g.len() > 1).collect()
}
