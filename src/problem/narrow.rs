//! Narrowing a problem: what a target supports, and what the user pins.

use super::description::{Constraint, Problem};
use super::expr::{Condition, Scope, Symbol};
use super::param::{Domain, Value};
use serde::{Deserialize, Serialize};

/// One restriction of a problem, in outside form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Narrow {
    /// The parameter has this value.
    Set { param: String, value: Value },
    /// The integer parameter lies between these, both included.
    Range { param: String, min: i64, max: i64 },
    /// The choice parameter has one of these values.
    OneOf { param: String, values: Vec<Value> },
    /// A further constraint, in the expression language.
    Require { condition: String },
}

impl Problem {
    /// The problem under restrictions; one sentence where a restriction does not fit it.
    pub fn narrowed(&self, restrictions: &[Narrow]) -> Result<Problem, String> {
        let mut problem = self.clone();
        for r in restrictions {
            problem.narrow(r)?;
        }
        if problem.plainest().is_none() {
            return Err(format!(
                "no case of {} satisfies all restrictions together; loosen one of {}",
                self.name,
                restrictions.iter().map(Narrow::to_string).collect::<Vec<_>>().join(", ")
            ));
        }
        Ok(problem)
    }

    fn narrow(&mut self, restriction: &Narrow) -> Result<(), String> {
        if let Narrow::Set { param, .. } | Narrow::Range { param, .. } | Narrow::OneOf { param, .. } = restriction {
            let index = self.index_of(param)?;
            let plain = self.params[index].least();
            self.narrow_domain(restriction)?;
            // Whoever rules out its plain value wants it to mean something.
            let p = &self.params[index];
            if let Some(condition) = p.active.clone().filter(|_| !p.allows(plain)) {
                self.constraints.push(Constraint::new(condition, &self.params));
            }
            return Ok(());
        }
        self.narrow_domain(restriction)
    }

    fn narrow_domain(&mut self, restriction: &Narrow) -> Result<(), String> {
        match restriction {
            Narrow::Require { condition } => {
                let condition = Condition::parse(condition, self).map_err(|e| format!("'{condition}': {e}"))?;
                self.constraints.push(Constraint::new(condition, &self.params));
            }
            Narrow::Set { param, value } => {
                let index = self.index_of(param)?;
                let stored = self.params[index].store(value)?;
                match &mut self.params[index].domain {
                    Domain::Integer { min, max, .. } => (*min, *max) = (stored, stored),
                    Domain::Choice { allowed, .. } => {
                        allowed.iter_mut().enumerate().for_each(|(i, a)| *a = i as i64 == stored);
                    }
                }
            }
            Narrow::Range { param, min: low, max: high } => {
                let index = self.index_of(param)?;
                let p = &self.params[index];
                if p.is_choice() {
                    return Err(format!("{param} is a choice, not an integer; pin it with {param}=VALUE"));
                }
                match (p.round_up(*low), p.round_down(*high)) {
                    (Some(first), Some(last)) if first <= last => {
                        if let Domain::Integer { min, max, .. } = &mut self.params[index].domain {
                            (*min, *max) = (first, last);
                        }
                    }
                    _ => {
                        let (least, most) = (p.least(), p.most());
                        return Err(format!("{param}={low}..{high} leaves no value; {param} lies in {least}..={most}"));
                    }
                }
            }
            Narrow::OneOf { param, values } => {
                let index = self.index_of(param)?;
                let stored = values.iter().map(|v| self.params[index].store(v)).collect::<Result<Vec<_>, _>>()?;
                match &mut self.params[index].domain {
                    Domain::Integer { .. } => {
                        return Err(format!("{param} is an integer; limit it with a range"));
                    }
                    Domain::Choice { allowed, .. } => {
                        allowed.iter_mut().enumerate().for_each(|(i, a)| *a = stored.contains(&(i as i64)));
                    }
                }
            }
        }
        Ok(())
    }

    fn index_of(&self, name: &str) -> Result<usize, String> {
        let known = || self.params.iter().map(|p| p.name.as_str()).collect::<Vec<_>>().join(", ");
        self.param(name).ok_or_else(|| format!("{} has no parameter '{name}'; it has {}", self.name, known()))
    }
}

impl std::fmt::Display for Narrow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Narrow::Set { param, value } => write!(f, "{param}={value}"),
            Narrow::Range { param, min, max } => write!(f, "{param}={min}..{max}"),
            Narrow::OneOf { param, values } => {
                let list: Vec<String> = values.iter().map(Value::to_string).collect();
                write!(f, "{param} in {}", list.join("|"))
            }
            Narrow::Require { condition } => f.write_str(condition),
        }
    }
}

impl Scope for Problem {
    fn lookup(&self, name: &str) -> Option<Symbol<'_>> {
        let index = self.param(name)?;
        Some(match &self.params[index].domain {
            Domain::Integer { .. } => Symbol::Integer(index),
            Domain::Choice { values, texts, .. } => match values.iter().position(|v| *v == Value::Bool(true)) {
                Some(t) => Symbol::Condition { index, true_index: t as i64 },
                None => Symbol::Choice { index, values: texts },
            },
        })
    }

    fn operand(&self, name: &str) -> Option<usize> {
        Problem::operand(self, name)
    }

    fn has_rank(&self) -> bool {
        true
    }
}
