//! Building descriptions from text, for the built-in problems: a short file per operation.

use super::description::{Constraint, Problem};
use super::dtype::Dtype;
use super::expr::{Condition, Expr, ParseError};
use super::operand::{Dim, ElementType, Gaps, Operand, Use};
use super::param::{Domain, Param, Role, Value};

/// The element type of a word: `tf32` is how `f32` is multiplied.
fn dtype(word: &str) -> Option<Dtype> {
    if word == "tf32" { Some(Dtype::F32) } else { Dtype::from_name(word) }
}

/// The element type of an operand of this use under a value of `dtype`.
fn element(value: &str, access: Use) -> Option<Dtype> {
    let first = value.split('_').next();
    dtype(if access.writes() { value.rsplit('_').next()? } else { first? })
}

/// The element type of the second operand that is only read.
fn second(value: &str) -> Option<Dtype> {
    let words: Vec<&str> = value.split('_').collect();
    dtype(if let [_, second, _] = words[..] { second } else { words[0] })
}

/// Collects parameters first, then constraints and operands that mention them.
#[derive(Debug)]
pub struct Builder {
    problem: Problem,
}

impl Builder {
    pub fn new(name: &str) -> Builder {
        let problem = Problem {
            name: name.to_owned(),
            params: vec![],
            constraints: vec![],
            operands: vec![],
            work: None,
            placed_by_program: false,
        };
        Builder { problem }
    }

    fn push(&mut self, param: Param) -> &mut Self {
        self.problem.params.push(param);
        self
    }

    pub fn integer(&mut self, name: &str, role: Role, min: i64, max: i64, doc: &'static str) -> &mut Self {
        let domain = Domain::Integer { min, max, step: 1 };
        self.push(Param { name: name.to_owned(), doc, domain, plain: min, role, default: None, active: None })
    }

    pub fn choice(&mut self, name: &str, values: &[&str], doc: &'static str) -> &mut Self {
        let domain = Domain::choice(values.iter().map(|v| Value::from(*v)).collect());
        self.push(Param { name: name.to_owned(), doc, domain, plain: 0, role: Role::Size, default: None, active: None })
    }

    pub fn flag(&mut self, name: &str, doc: &'static str) -> &mut Self {
        let domain = Domain::choice(vec![Value::Bool(false), Value::Bool(true)]);
        self.push(Param { name: name.to_owned(), doc, domain, plain: 0, role: Role::Size, default: None, active: None })
    }

    /// The last parameter has a meaning only where the condition holds.
    pub fn only_when(&mut self, condition: &str) -> Result<&mut Self, ParseError> {
        let condition = self.condition(condition)?;
        if let Some(last) = self.problem.params.last_mut() {
            last.active = Some(condition);
        }
        Ok(self)
    }

    pub fn constraint(&mut self, text: &str) -> Result<&mut Self, ParseError> {
        let condition = self.condition(text)?;
        self.problem.constraints.push(Constraint::new(condition, &self.problem.params));
        Ok(self)
    }

    pub fn work(&mut self, text: &str) -> Result<&mut Self, ParseError> {
        self.problem.work = Some(self.expr(text)?);
        Ok(self)
    }

    /// An operand whose element type is the parameter `dtype`: in `bf16_f32` what is only read has the first type, what is
    /// written the last.
    pub fn operand(&mut self, name: &str, access: Use, dims: &[(&str, &str)]) -> Result<&mut Self, ParseError> {
        let dims = dims
            .iter()
            .map(|(extent, stride)| Ok(Dim { extent: self.expr(extent)?, stride: self.expr(stride)? }))
            .collect::<Result<_, ParseError>>()?;
        let element = self.element(|value| element(value, access));
        self.problem.operands.push(Operand {
            name: name.to_owned(),
            element,
            access,
            read_only_when: None,
            dims,
            offset: None,
            gaps: Gaps::None,
            when: None,
            defined_when: None,
            alias: None,
            ranks: None,
        });
        Ok(self)
    }

    /// The element type of the second operand that is only read: in `f8e5m2_f8e4m3_bf16` the type in the middle.
    pub fn second(&self) -> ElementType {
        self.element(second)
    }

    fn element(&self, of: impl Fn(&str) -> Option<Dtype>) -> ElementType {
        match self.problem.param("dtype") {
            None => ElementType::Fixed(Dtype::F32),
            Some(param) => {
                let types = self.problem.params[param].texts().iter().filter_map(|t| of(t)).collect();
                ElementType::Param { param, types }
            }
        }
    }

    /// Changes the last operand with parsed texts.
    pub fn with(
        &mut self,
        change: impl FnOnce(&Self, &mut Operand) -> Result<(), ParseError>,
    ) -> Result<&mut Self, ParseError> {
        if let Some(mut last) = self.problem.operands.pop() {
            let outcome = change(self, &mut last);
            self.problem.operands.push(last);
            outcome?;
        }
        Ok(self)
    }

    pub fn expr(&self, text: &str) -> Result<Expr, ParseError> {
        Expr::parse(text, &self.problem)
    }

    pub fn condition(&self, text: &str) -> Result<Condition, ParseError> {
        Condition::parse(text, &self.problem)
    }

    pub fn finish(self) -> Problem {
        self.problem
    }
}
