//! A problem made ready for drawing cases: which parameters may move, what depends on them, and what a case may cost.

use super::directed::Line;
use super::limits::{Excess, SpanLimits};
use crate::problem::{Assignment, ElementType, Placement, Problem, Role, Value, View};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Whether strides are searched, or follow the sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// Strides of any size: a huge stride with unmapped gaps turns a wrong offset into a fault whose address names it.
    #[default]
    Strided,
    /// Every stride at its packed value (see [`Problem::packed`]); only sizes move.
    Packed,
}

/// Shares of the kinds of groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weights {
    pub directed: u32,
    pub edge: u32,
    pub random: u32,
    pub mutation: u32,
}

impl Default for Weights {
    fn default() -> Weights {
        Weights { directed: 9, edge: 5, random: 3, mutation: 3 }
    }
}

/// How cases are drawn.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub profile: Profile,
    pub weights: Weights,
    pub limits: SpanLimits,
    /// Every case lies so; drawn where absent.
    pub placement: Option<Placement>,
    /// Values of each knob, the plainest first; one value pins it.
    pub knobs: BTreeMap<String, Vec<Value>>,
}

/// Why nothing can be drawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    #[error("the packed profile leaves no case: {0}")]
    Packed(String),
    #[error("no case of {0} satisfies its constraints and limits; loosen a --set or --range")]
    Empty(String),
    #[error(
        "even the plainest case of {problem} ({case}) is above a cap; raise --max-work or --max-memory, or loosen a --set or --range"
    )]
    TooLarge { problem: String, case: String },
}

/// How the strides of a group relate to its sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comb {
    /// Strides, offsets and element type stay as they are.
    Fixed,
    /// Everything may move: a strided group before its strides are fixed.
    Free,
    /// Strides are packed anew for every case.
    Follow,
}

/// The views of a case, by operand.
pub(super) type Views = Vec<Option<View>>;

/// A problem and everything precomputed for drawing.
#[derive(Debug)]
pub struct Space {
    pub(super) problem: Arc<Problem>,
    pub(super) options: Options,
    /// The problem with packed strides; `None` where the user's pins contradict that.
    packed: Option<Arc<Problem>>,
    /// Integer parameters with more than one value, by what they mean.
    pub(super) strides: Vec<usize>,
    pub(super) offsets: Vec<usize>,
    pub(super) sizes: Vec<usize>,
    /// Choice parameters with more than one value.
    pub(super) choices: Vec<usize>,
    /// Kept equal within a strided group.
    comb: Vec<bool>,
    /// Sizes that strides or offsets are computed from: changed rarely within a strided group.
    pub(super) sticky: Vec<bool>,
    /// Lines with running sums of their weights.
    lines: Vec<(u64, Line)>,
    plainest: Assignment,
}

impl Space {
    /// # Errors
    /// Where no case exists, or none within the caps.
    pub fn new(problem: Arc<Problem>, options: Options) -> Result<Space, SearchError> {
        let narrowed = problem.narrowed(&problem.packed());
        let (problem, packed) = match (options.profile, narrowed) {
            (Profile::Packed, Ok(p)) => {
                let p = Arc::new(p);
                (Arc::clone(&p), Some(p))
            }
            (Profile::Packed, Err(e)) => return Err(SearchError::Packed(e)),
            (Profile::Strided, p) => (problem, p.ok().map(Arc::new)),
        };
        let plainest = problem.plainest().ok_or_else(|| SearchError::Empty(problem.name.clone()))?;
        let mut space = Space {
            strides: vec![],
            offsets: vec![],
            sizes: vec![],
            choices: vec![],
            comb: vec![false; problem.params.len()],
            sticky: vec![false; problem.params.len()],
            lines: vec![],
            packed,
            options,
            plainest,
            problem,
        };
        space.sort_parameters();
        let mut sum = 0;
        let lines = super::directed::lines(&space).into_iter().map(|(w, line)| {
            sum += u64::from(w);
            (sum, line)
        });
        space.lines = lines.collect();
        let views = space.problem.views(&space.plainest).map_err(|_| SearchError::Empty(space.problem.name.clone()))?;
        if !space.options.limits.allow(&space.problem, &space.plainest, &views) {
            let case = space.problem.short(&space.plainest);
            return Err(SearchError::TooLarge { problem: space.problem.name.clone(), case });
        }
        Ok(space)
    }

    fn sort_parameters(&mut self) {
        let problem = Arc::clone(&self.problem);
        for (i, p) in problem.params.iter().enumerate() {
            let element =
                |o: &crate::problem::Operand| matches!(&o.element, ElementType::Param { param, .. } if *param == i);
            self.comb[i] = matches!(p.role, Role::Stride | Role::Offset) || problem.operands.iter().any(element);
            if p.least() == p.most() {
                continue;
            }
            match p.role {
                _ if p.is_choice() => self.choices.push(i),
                Role::Stride => self.strides.push(i),
                Role::Offset => self.offsets.push(i),
                Role::Size | Role::Count | Role::Ranks | Role::Placement => self.sizes.push(i),
            }
        }
        if self.options.profile == Profile::Packed {
            // Held by equalities: nothing to draw.
            self.strides.retain(|s| !problem.is_held(*s));
        }
        for operand in &problem.operands {
            let strides = operand.dims.iter().flat_map(|d| d.stride.params());
            for p in strides.chain(operand.offset.iter().flat_map(|o| o.params())) {
                self.sticky[p] |= !problem.params[p].is_choice() && !self.comb[p];
            }
        }
    }

    /// The plainest case: within all caps.
    pub(super) fn plainest(&self) -> &Assignment {
        &self.plainest
    }

    /// Sum of the weights of all lines; 0 where nothing can be moved to one.
    pub(super) fn line_weight(&self) -> u64 {
        self.lines.last().map_or(0, |(sum, _)| *sum)
    }

    /// The line whose share of the weights holds `at`.
    pub(super) fn line_at(&self, at: u64) -> Option<Line> {
        let index = self.lines.partition_point(|(sum, _)| *sum <= at);
        self.lines.get(index).map(|(_, line)| *line)
    }

    /// Whether strides always follow the sizes.
    pub(super) fn follows(&self) -> bool {
        self.options.profile == Profile::Packed
    }

    /// Whether a parameter stays equal within a group.
    pub(super) fn is_comb(&self, param: usize, comb: Comb) -> bool {
        comb == Comb::Fixed && self.comb[param]
    }

    /// Makes the values a case: packs the strides where they follow, then repairs what moves. The views of the case;
    /// `None` where there is none near.
    pub(super) fn settle(&self, values: &mut Assignment, comb: Comb) -> Option<Views> {
        match (comb, &self.packed) {
            (Comb::Fixed, _) => self.problem.repaired(values, |i| !self.comb[i]),
            (Comb::Free, _) => self.problem.repaired(values, |_| true),
            (Comb::Follow, Some(packed)) => packed.repaired(values, |_| true),
            (Comb::Follow, None) => {
                self.strides.iter().for_each(|s| values[*s] = self.problem.params[*s].least());
                self.problem.repaired(values, |_| true)
            }
        }
    }

    /// Raises strides to what the constraints demand of them after `moved` has changed; packs them where they follow.
    pub(super) fn raise(&self, values: &mut Assignment, moved: usize) {
        for (i, p) in self.problem.params.iter().enumerate() {
            if i != moved && p.role == Role::Stride && !p.is_choice() {
                let (low, high) = self.problem.bounds(i, &values.0);
                if values[i] < low || values[i] > high {
                    values[i] = p.round_up(low).or_else(|| p.round_down(high)).unwrap_or(values[i]);
                }
            }
        }
    }

    /// Makes the values a case within the caps: sizes shrink, or strides where they are free and the span is what is too
    /// large. The views of the result; `None` where that fails.
    pub(super) fn fit(&self, values: &mut Assignment, comb: Comb) -> Option<Views> {
        for _ in 0..24 {
            let views = self.settle(values, comb)?;
            let sizes = |values: &mut Assignment, f| self.divide(values, self.sizes.iter(), f);
            let moved = match self.options.limits.excess(&self.problem, values, &views) {
                None => return Some(views),
                Some(Excess::Span(f)) if comb == Comb::Free => {
                    self.divide(values, self.strides.iter().chain(&self.offsets), f) || sizes(values, f)
                }
                Some(Excess::Span(f) | Excess::Size(f)) => sizes(values, f),
            };
            if !moved {
                return None;
            }
        }
        None
    }

    /// Divides the largest of some parameters; false where none can fall.
    fn divide<'a>(&self, values: &mut Assignment, of: impl Iterator<Item = &'a usize>, factor: i128) -> bool {
        let Some(&i) = of.max_by_key(|i| values[**i] - self.problem.params[**i].least()) else { return false };
        let p = &self.problem.params[i];
        let target = (i128::from(values[i]) / factor.max(2)).max(i128::from(p.least())) as i64;
        match p.round_down(target) {
            Some(v) if v < values[i] => {
                values[i] = v;
                true
            }
            _ => false,
        }
    }
}
