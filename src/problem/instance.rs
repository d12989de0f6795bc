//! A case with everything that follows from it: views in numbers.

use super::case::{Assignment, Case};
use super::description::{Invalid, Problem, arithmetic};
use super::expr::Expr;
use super::operand::{ElementType, Use};
use super::view::{Step, View};
use std::sync::Arc;

/// Spans stay below this many bytes, so that every later sum fits an `i64`.
const SPAN_LIMIT: i128 = 1 << 62;

/// A checked case and its views.
#[derive(Debug, Clone)]
pub struct Instance {
    pub problem: Arc<Problem>,
    pub case: Case,
    /// By operand; `None` where the operand does not exist in this case.
    pub views: Vec<Option<View>>,
}

impl Instance {
    pub fn view(&self, operand: usize) -> Option<&View> {
        self.views.get(operand).and_then(Option::as_ref)
    }

    /// The stored value of a parameter by name.
    ///
    /// # Panics
    /// Where the problem has no such parameter: callers name parameters of the problem they were written for.
    pub fn get(&self, name: &str) -> i64 {
        match self.problem.param(name) {
            Some(i) => self.case.params[i],
            None => panic!("problem {} has no parameter {name}", self.problem.name),
        }
    }

    /// The outside form of a parameter by name; panics as [`get`](Self::get) does.
    pub fn word(&self, name: &str) -> String {
        match self.problem.param(name) {
            Some(i) => self.problem.params[i].show(self.case.params[i]).to_string(),
            None => panic!("problem {} has no parameter {name}", self.problem.name),
        }
    }

    /// All elements of all copies of all operands.
    pub fn elements(&self) -> i128 {
        self.views.iter().flatten().map(|v| v.elements() * i128::from(v.copies())).sum()
    }

    /// Bytes of all elements of all operands that have memory of their own.
    pub fn element_bytes(&self) -> i128 {
        self.views
            .iter()
            .flatten()
            .filter(|v| v.alias.is_none())
            .map(|v| v.elements() * i128::from(v.element_bytes) * i128::from(v.copies()))
            .sum()
    }
}

pub(super) fn views(problem: &Problem, values: &Assignment) -> Result<Vec<Option<View>>, Invalid> {
    (0..problem.operands.len()).map(|o| view(problem, values, o)).collect()
}

fn view(problem: &Problem, values: &Assignment, index: usize) -> Result<Option<View>, Invalid> {
    let operand = &problem.operands[index];
    let v = &values.0;
    if let Some(when) = &operand.when
        && !problem.holds(when, v).map_err(|e| arithmetic(when.text(), &e))?
    {
        return Ok(None);
    }
    let number = |e: &Expr, rank: i64| problem.eval(e, v, rank).map_err(|x| arithmetic(e.text(), &x));
    let span = || Invalid::Span { operand: operand.name.clone() };
    let small = |n: i128| {
        if n.abs() < SPAN_LIMIT { Ok(n as i64) } else { Err(span()) }
    };

    let bytes = problem.element_bytes(index, v);
    let mut dims = Vec::with_capacity(operand.dims.len());
    let mut reach: i128 = 0;
    for d in &operand.dims {
        let (extent, stride) = (number(&d.extent, 0)?, number(&d.stride, 0)?);
        if extent < 0 {
            return Err(Invalid::Domain(format!("operand {}: extent {} is {extent}", operand.name, d.extent.text())));
        }
        let far = (extent - 1).max(0).checked_mul(stride.abs()).ok_or_else(span)?;
        reach = reach.checked_add(far).ok_or_else(span)?;
        dims.push(Step { extent: small(extent)?, stride: small(stride)? });
    }
    let copies = match &operand.ranks {
        None => 1,
        Some(e) => number(e, 0)?,
    };
    if !(1..=4096).contains(&copies) {
        return Err(Invalid::Domain(format!("operand {}: {copies} copies, 1 to 4096 can be held", operand.name)));
    }
    let mut offsets = Vec::with_capacity(copies as usize);
    for rank in 0..copies {
        let offset = match &operand.offset {
            None => 0,
            Some(e) => number(e, rank as i64)?,
        };
        let total = offset.abs().checked_add(reach).and_then(|r| r.checked_mul(bytes.into())).ok_or_else(span)?;
        small(total)?;
        offsets.push(small(offset)?);
    }
    let holds = |c: &Option<super::expr::Condition>, otherwise: bool| match c {
        None => Ok(otherwise),
        Some(c) => problem.holds(c, v).map_err(|e| arithmetic(c.text(), &e)),
    };
    let access = if holds(&operand.read_only_when, false)? { Use::Read } else { operand.access };
    let defined = holds(&operand.defined_when, operand.access != Use::Write)?;
    let dtype = match &operand.element {
        ElementType::Fixed(d) => Some(*d),
        ElementType::Param { param, types } => types.get(v[*param] as usize).copied(),
        ElementType::Bytes(_) => None,
    };
    Ok(Some(View {
        operand: index,
        dtype,
        element_bytes: bytes,
        dims,
        offsets,
        access,
        defined,
        gaps: operand.gaps,
        alias: operand.alias,
    }))
}
