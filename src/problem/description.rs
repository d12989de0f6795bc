//! A problem: parameters, constraints and operands, and what follows from them for an assignment.

use super::case::Assignment;
use super::expr::{Bound, Condition, Env, EvalError, Expr, Side};
use super::instance::Instance;
use super::operand::{ElementType, Operand};
use super::param::{Param, Role, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A condition that every case satisfies.
#[derive(Debug, Clone)]
pub struct Constraint {
    pub condition: Condition,
    /// Parameters that the condition bounds directly, the one that yields first in front: strides and offsets before
    /// sizes, later ones before earlier ones.
    yields: Vec<usize>,
}

impl Constraint {
    pub fn new(condition: Condition, params: &[Param]) -> Constraint {
        let mut yields: Vec<usize> = condition.params().filter(|p| !condition.bounds_on(*p).is_empty()).collect();
        let last = |i: usize| matches!(params[i].role, Role::Stride | Role::Offset);
        yields.sort_by_key(|i| std::cmp::Reverse((last(*i), *i)));
        Constraint { condition, yields }
    }
}

/// What can be called. Search, shrink and diagnosis know nothing else of an operation.
#[derive(Debug, Clone)]
pub struct Problem {
    pub name: String,
    pub params: Vec<Param>,
    pub constraints: Vec<Constraint>,
    pub operands: Vec<Operand>,
    /// Size of the work of one case (multiply-adds, moved elements); elements of all operands where absent.
    pub work: Option<Expr>,
    /// The program under test decides where operands lie: the placement of a case means nothing.
    pub placed_by_program: bool,
}

/// Why an assignment is no case of the problem. Each text is a sentence for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error("{problem} has no parameter '{name}'; it has {known}")]
    Unknown { problem: String, name: String, known: String },
    #[error("{0}")]
    Domain(String),
    #[error("{values} breaks the constraint {constraint}")]
    Constraint { constraint: String, values: String },
    #[error("{what} cannot be computed: {error}")]
    Arithmetic { what: String, error: String },
    #[error("operand {operand} spans more than 2^62 bytes")]
    Span { operand: String },
    #[error("{name} means nothing here ({name} needs {condition}) and must stay {plain}")]
    Inactive { name: String, condition: String, plain: String },
}

impl Problem {
    pub fn param(&self, name: &str) -> Option<usize> {
        self.params.iter().position(|p| p.name == name)
    }

    pub fn operand(&self, name: &str) -> Option<usize> {
        self.operands.iter().position(|o| o.name == name)
    }

    /// Bytes of an element of an operand under an assignment.
    pub fn element_bytes(&self, operand: usize, values: &[i64]) -> i64 {
        match &self.operands[operand].element {
            ElementType::Fixed(d) => d.bytes() as i64,
            ElementType::Param { param, types } => {
                usize::try_from(values[*param]).ok().and_then(|i| types.get(i)).map_or(1, |d| d.bytes() as i64)
            }
            ElementType::Bytes(n) => *n as i64,
        }
    }

    /// Evaluates with the environment that belongs to an assignment.
    pub fn eval(&self, expr: &Expr, values: &[i64], rank: i64) -> Result<i128, EvalError> {
        let bytes = |o: usize| i128::from(self.element_bytes(o, values));
        expr.eval(&Env { values, element_bytes: &bytes, rank })
    }

    /// Evaluates a condition under an assignment.
    pub fn holds(&self, condition: &Condition, values: &[i64]) -> Result<bool, EvalError> {
        let bytes = |o: usize| i128::from(self.element_bytes(o, values));
        condition.eval(&Env { values, element_bytes: &bytes, rank: 0 })
    }

    /// Whether the parameter has a meaning under the assignment.
    pub fn is_active(&self, param: usize, values: &[i64]) -> bool {
        match &self.params[param].active {
            None => true,
            Some(c) => self.holds(c, values).unwrap_or(true),
        }
    }

    /// The values that every parameter's own constraints leave it while all others stay: lower and upper, inclusive.
    pub fn bounds(&self, param: usize, values: &[i64]) -> (i64, i64) {
        let p = &self.params[param];
        let (mut low, mut high) = (i128::from(p.least()), i128::from(p.most()));
        let bytes = |o: usize| i128::from(self.element_bytes(o, values));
        let env = Env { values, element_bytes: &bytes, rank: 0 };
        for constraint in &self.constraints {
            for bound in constraint.condition.bounds_on(param) {
                apply(&bound, &env, &mut low, &mut high);
            }
        }
        let clamp = |v: i128| v.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
        (clamp(low), clamp(high))
    }

    /// Moves parameters for which `free` is true so that every constraint holds; false where that is impossible.
    ///
    /// A constraint moves the parameter that yields first (`lda >= m` moves `lda`), and only where that one is not free
    /// the next. Inactive parameters go to their plainest value whether free or not.
    pub fn repair(&self, values: &mut Assignment, free: impl Fn(usize) -> bool) -> bool {
        self.repaired(values, free).is_some()
    }

    /// [`repair`](Self::repair), with the views of the case that came of it.
    pub fn repaired(&self, values: &mut Assignment, free: impl Fn(usize) -> bool) -> Option<Vec<Option<super::View>>> {
        for i in 0..self.params.len() {
            let p = &self.params[i];
            if !p.allows(values[i]) {
                match p.round_down(values[i]).or_else(|| p.round_up(values[i])) {
                    Some(v) if free(i) => values[i] = v,
                    _ => return None,
                }
            }
        }
        for _ in 0..4 {
            let mut changed = self.plain_where_inactive(values);
            for constraint in &self.constraints {
                match self.holds(&constraint.condition, &values.0) {
                    Ok(true) => {}
                    _ => {
                        changed = true;
                        if !self.restore(constraint, values, &free) {
                            return None;
                        }
                    }
                }
            }
            if !changed {
                // Every value is allowed, and every condition has just been found to hold.
                return self.views(values).ok();
            }
        }
        self.checked(values).ok()
    }

    /// The case with some parameters moved and what has to follow: strides go where the constraints force them, sizes
    /// only where that is not enough and no stride was moved (it must not drag the sizes along). `None` where there is no
    /// such case.
    pub fn follow(&self, values: &Assignment, moved: impl Fn(usize) -> bool) -> Option<Assignment> {
        let free = |i: usize| {
            let p = &self.params[i];
            !moved(i) && !p.is_choice() && p.least() < p.most()
        };
        let stride = |i: usize| !self.params[i].is_choice() && self.params[i].role == Role::Stride;
        let mut first = values.clone();
        if self.repair(&mut first, |i| free(i) && stride(i)) {
            return Some(first);
        }
        if (0..self.params.len()).any(|i| moved(i) && stride(i)) {
            return None;
        }
        let mut second = values.clone();
        self.repair(&mut second, free).then_some(second)
    }

    /// Whether something changed, or could not be computed.
    fn plain_where_inactive(&self, values: &mut Assignment) -> bool {
        let mut changed = false;
        for (i, p) in self.params.iter().enumerate() {
            let Some(c) = p.active.as_ref().filter(|_| values[i] != p.least()) else { continue };
            match self.holds(c, &values.0) {
                Ok(true) => continue,
                Ok(false) => values[i] = p.least(),
                Err(_) => {}
            }
            changed = true;
        }
        changed
    }

    /// Makes one broken constraint hold: through a parameter that it bounds directly, else by halving free integers; a
    /// condition on choices alone through one of them.
    fn restore(&self, constraint: &Constraint, values: &mut Assignment, free: &impl Fn(usize) -> bool) -> bool {
        for &i in constraint.yields.iter().filter(|i| free(**i)) {
            let p = &self.params[i];
            let (mut low, mut high) = (i128::from(p.least()), i128::from(p.most()));
            let bytes = |o: usize| i128::from(self.element_bytes(o, &values.0));
            let env = Env { values: &values.0, element_bytes: &bytes, rank: 0 };
            for bound in constraint.condition.bounds_on(i) {
                apply(&bound, &env, &mut low, &mut high);
            }
            let v = i128::from(values[i]);
            let (Ok(low), Ok(high)) = (i64::try_from(low), i64::try_from(high)) else { continue };
            let moved = if v < i128::from(low) { p.round_up(low) } else { p.round_down(high) };
            if let Some(moved) = moved.filter(|m| *m >= low && *m <= high) {
                let old = std::mem::replace(&mut values[i], moved);
                if self.holds(&constraint.condition, &values.0) == Ok(true) {
                    return true;
                }
                values[i] = old;
            }
        }
        // A condition on sizes must not change a choice: it would be another operation.
        let choices = constraint.condition.params().all(|i| self.params[i].is_choice());
        for i in constraint.condition.params().filter(|i| choices && free(*i)) {
            let old = values[i];
            for choice in self.params[i].choices() {
                values[i] = choice;
                if self.holds(&constraint.condition, &values.0) == Ok(true) {
                    return true;
                }
            }
            values[i] = old;
        }
        for _ in 0..64 {
            let mut moved = false;
            for i in constraint.condition.params().filter(|i| free(*i) && !self.params[*i].is_choice()) {
                let p = &self.params[i];
                if let Some(half) = p.round_down(p.least() + (values[i] - p.least()) / 2).filter(|h| *h < values[i]) {
                    values[i] = half;
                    moved = true;
                    if self.holds(&constraint.condition, &values.0) == Ok(true) {
                        return true;
                    }
                }
            }
            if !moved {
                break;
            }
        }
        false
    }

    /// Whether the assignment is a case: domains, inactive parameters, constraints, and spans that fit 2^62 bytes.
    pub fn check(&self, values: &Assignment) -> Result<(), Invalid> {
        self.checked(values).map(drop)
    }

    /// [`check`](Self::check), with the views of the case.
    pub fn checked(&self, values: &Assignment) -> Result<Vec<Option<super::View>>, Invalid> {
        for (i, p) in self.params.iter().enumerate() {
            if !p.allows(values[i]) {
                let shown = p.show(values[i]);
                return Err(Invalid::Domain(p.store(&shown).err().unwrap_or_else(|| format!("{} = {shown}", p.name))));
            }
            if let Some(c) = &p.active
                && values[i] != p.least()
                && !self.holds(c, &values.0).map_err(|e| arithmetic(c.text(), &e))?
            {
                return Err(Invalid::Inactive {
                    name: p.name.clone(),
                    condition: c.text().to_owned(),
                    plain: p.show(p.least()).to_string(),
                });
            }
        }
        for constraint in &self.constraints {
            let c = &constraint.condition;
            if !self.holds(c, &values.0).map_err(|e| arithmetic(c.text(), &e))? {
                let values: Vec<String> =
                    c.params().map(|i| format!("{}={}", self.params[i].name, self.params[i].show(values[i]))).collect();
                return Err(Invalid::Constraint { constraint: c.text().to_owned(), values: values.join(" ") });
            }
        }
        self.views(values)
    }

    /// The views of the operands under an assignment; `None` where an operand does not exist.
    pub fn views(&self, values: &Assignment) -> Result<Vec<Option<super::View>>, Invalid> {
        super::instance::views(self, values)
    }

    /// A case of the problem with everything that follows from it.
    pub fn instance(self: &Arc<Self>, case: super::Case) -> Result<Instance, Invalid> {
        let views = self.checked(&case.params)?;
        Ok(Instance { problem: Arc::clone(self), case, views })
    }

    /// Size of the work of a case; saturates at `i128::MAX` where the expression overflows.
    pub fn work(&self, values: &Assignment) -> i128 {
        match &self.work {
            Some(e) => self.eval(e, &values.0, 0).unwrap_or(i128::MAX),
            None => match self.views(values) {
                Ok(views) => views.iter().flatten().map(|v| v.elements() * i128::from(v.copies())).sum(),
                Err(_) => i128::MAX,
            },
        }
    }

    /// Plainest values: minima and first choices, raised to what the constraints demand.
    pub fn plainest(&self) -> Option<Assignment> {
        let mut values = Assignment(self.params.iter().map(Param::least).collect());
        self.repair(&mut values, |_| true).then_some(values)
    }

    /// Completes a partial assignment: named values are kept, the others take their default and are raised or lowered
    /// into their bounds (a leading dimension nobody names is packed).
    pub fn complete(&self, named: &BTreeMap<String, Value>) -> Result<Assignment, Invalid> {
        let mut values = Assignment(self.params.iter().map(|p| p.default.unwrap_or(p.least())).collect());
        let mut pinned = vec![false; self.params.len()];
        for (name, value) in named {
            let i = self.param(name).ok_or_else(|| Invalid::Unknown {
                problem: self.name.clone(),
                name: name.clone(),
                known: self.names(),
            })?;
            values[i] = self.params[i].store(value).map_err(Invalid::Domain)?;
            pinned[i] = true;
        }
        // A choice that nobody names stays the default: another one would be another case than the one asked for.
        if !self.repair(&mut values, |i| !pinned[i] && !self.params[i].is_choice()) {
            // Say which constraint: repair leaves the values where it gave up.
            self.check(&values)?;
        }
        for (i, p) in self.params.iter().enumerate() {
            if let Some(value) = named.get(&p.name)
                && p.store(value).ok() != Some(values[i])
            {
                let condition = p.active.as_ref().map_or_else(String::new, |c| c.text().to_owned());
                let plain = p.show(p.least()).to_string();
                return Err(Invalid::Inactive { name: p.name.clone(), condition, plain });
            }
        }
        Ok(values)
    }

    fn names(&self) -> String {
        self.params.iter().map(|p| p.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Outside form of an assignment, in declaration order.
    pub fn show(&self, values: &Assignment) -> Vec<(String, Value)> {
        self.params.iter().zip(&values.0).map(|(p, v)| (p.name.clone(), p.show(*v))).collect()
    }

    /// `m=608 n=5376 ...`: active parameters that differ from their plainest value, and all sizes.
    pub fn short(&self, values: &Assignment) -> String {
        let mut out = String::new();
        for (i, p) in self.params.iter().enumerate() {
            let always = matches!(p.role, Role::Size | Role::Ranks) && !p.is_choice();
            if self.is_active(i, &values.0) && (always || values[i] != p.plain) {
                if !out.is_empty() {
                    out.push(' ');
                }
                out.push_str(&format!("{}={}", p.name, p.show(values[i])));
            }
        }
        out
    }
}

fn apply(bound: &Bound<'_>, env: &Env<'_>, low: &mut i128, high: &mut i128) {
    if let Ok(v) = bound.eval(env) {
        match bound.side {
            Side::Lower => *low = (*low).max(v),
            Side::Upper => *high = (*high).min(v),
        }
    }
}

pub(super) fn arithmetic(what: &str, error: &EvalError) -> Invalid {
    Invalid::Arithmetic { what: what.to_owned(), error: error.to_string() }
}
