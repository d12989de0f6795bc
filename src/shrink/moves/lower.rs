use super::super::engine::Engine;
use super::super::integer;
use super::super::line::{Follow, Line};
use super::Move;
use crate::exec::ProbeError;
use crate::problem::{Role, contents::mix};

/// Lowers one integer as far as the failure stays: sizes first, the one that carries most work in front, then counts,
/// offsets, strides and ranks; with the strides tied to it derived again, and held.
///
/// Before: `m=1 n=5 k=1 ldb=3000000000`. After: `m=1 n=5 k=1 ldb=536870912`.
pub struct Lower;

impl Move for Lower {
    fn name(&self) -> &'static str {
        "lower"
    }

    fn run(&self, e: &mut Engine) -> Result<bool, ProbeError> {
        let before = e.ladder.len();
        let mut params = e.integers(&e.current);
        params.sort_by_key(|i| {
            let order = match e.problem.params[*i].role {
                Role::Size | Role::Placement => 0,
                Role::Count => 1,
                Role::Offset => 2,
                Role::Stride => 3,
                Role::Ranks => 4,
            };
            // Equal values are taken in a seeded order: no parameter is favoured by its place in the description.
            (order, std::cmp::Reverse(e.current[*i]), mix(e.options.seed, *i as u64))
        });
        for param in params {
            for follow in [Follow::Packed, Follow::Held] {
                let line = Line::new(e.problem, &e.current, &[param], follow);
                integer::lower(e, &line, self.name())?;
            }
        }
        Ok(e.ladder.len() > before)
    }
}
