use super::super::engine::{Engine, Seen};
use super::super::integer;
use super::super::line::{Follow, Line};
use super::super::order::Key;
use super::Move;
use crate::exec::ProbeError;
use crate::problem::Role;

/// Exchanges two sizes and lowers both from there: the exchanged case may be larger, and only what is smaller in the end
/// is accepted. A failure that counts tiles needs fewer rows than columns, or the other way round.
///
/// Before: `m=1 n=8388481` (tiles of 32 rows, 128 columns). After: `m=2097121 n=1`.
pub struct Exchange;

impl Move for Exchange {
    fn name(&self) -> &'static str {
        "exchange sizes"
    }

    fn run(&self, e: &mut Engine) -> Result<bool, ProbeError> {
        let before = e.ladder.len();
        let sizes: Vec<usize> =
            e.integers(&e.current).into_iter().filter(|i| e.problem.params[*i].role == Role::Size).collect();
        for (i, a) in sizes.iter().enumerate() {
            for b in &sizes[i + 1..] {
                pair(e, *a, *b, self.name())?;
            }
        }
        Ok(e.ladder.len() > before)
    }
}

fn pair(e: &mut Engine, a: usize, b: usize, by: &'static str) -> Result<(), ProbeError> {
    if e.current[a] == e.current[b] {
        return Ok(());
    }
    let mut base = e.current.clone();
    base.0.swap(a, b);
    // Through a line, so that strides follow; the exchanged values themselves are kept.
    let line = Line::new(e.problem, &base, &[a, b], Follow::Packed);
    let Some(exchanged) = line.settled(&base) else { return Ok(()) };
    let gain = Key::of(e.problem, &exchanged);
    if gain.features > e.key().features || e.step(&exchanged, by)? != Seen::Bad {
        return Ok(());
    }
    for param in [a, b] {
        integer::lower(e, &Line::new(e.problem, &exchanged, &[param], Follow::Packed), by)?;
    }
    Ok(())
}
