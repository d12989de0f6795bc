//! The checked form of an expression: two sorts, names resolved to indices.
//!
//! Runs of `+ -`, of `* / %`, of `and` and of `or` are lists and not nested pairs, so a tree is only as deep as its text
//! nests parentheses, calls and signs, which the parser bounds. Columns are those of the operator.

/// An integer.
#[derive(Debug, Clone)]
pub(super) enum Integer {
    Literal(i128),
    Parameter(usize),
    Rank,
    ElementBytes(usize),
    Negate {
        operand: Box<Integer>,
        column: usize,
    },
    Power {
        base: Box<Integer>,
        /// Never negative.
        exponent: i128,
        column: usize,
    },
    /// `first`, then each step applied to what is there so far.
    Chain {
        first: Box<Integer>,
        steps: Box<[Step]>,
    },
    Min(Box<[Integer; 2]>),
    Max(Box<[Integer; 2]>),
    CeilingDivide {
        operands: Box<[Integer; 2]>,
        column: usize,
    },
    If(Box<(Truth, Integer, Integer)>),
}

/// One operator of a chain, with its right side.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) operator: Arithmetic,
    pub(super) operand: Integer,
    pub(super) column: usize,
}

/// A condition.
#[derive(Debug, Clone)]
pub(super) enum Truth {
    /// Whether choice `parameter` has the value at index `value`, or with `equal` false whether it has another.
    Choice {
        parameter: usize,
        value: i64,
        equal: bool,
    },
    Compare {
        comparison: Comparison,
        sides: Box<[Integer; 2]>,
        column: usize,
    },
    Not(Box<Truth>),
    All(Box<[Truth]>),
    Any(Box<[Truth]>),
}

/// An operator of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// How two integers compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Below,
    AtMost,
    Above,
    AtLeast,
}

impl Comparison {
    /// The comparison that says the same with its sides exchanged.
    pub(super) fn mirrored(self) -> Self {
        match self {
            Self::Equal => Self::Equal,
            Self::NotEqual => Self::NotEqual,
            Self::Below => Self::Above,
            Self::AtMost => Self::AtLeast,
            Self::Above => Self::Below,
            Self::AtLeast => Self::AtMost,
        }
    }
}

impl Integer {
    /// Calls `visit` with every parameter below, in text order, repeats included.
    pub(super) fn each_parameter(&self, visit: &mut dyn FnMut(usize)) {
        match self {
            Self::Literal(_) | Self::Rank | Self::ElementBytes(_) => {}
            Self::Parameter(index) => visit(*index),
            Self::Negate { operand, .. } => operand.each_parameter(visit),
            Self::Power { base, .. } => base.each_parameter(visit),
            Self::Chain { first, steps } => {
                first.each_parameter(visit);
                for step in steps {
                    step.operand.each_parameter(visit);
                }
            }
            Self::Min(operands) | Self::Max(operands) | Self::CeilingDivide { operands, .. } => {
                for operand in operands.iter() {
                    operand.each_parameter(visit);
                }
            }
            Self::If(parts) => {
                parts.0.each_parameter(visit);
                parts.1.each_parameter(visit);
                parts.2.each_parameter(visit);
            }
        }
    }

    /// Whether `parameter` occurs below.
    pub(super) fn mentions(&self, parameter: usize) -> bool {
        let mut found = false;
        self.each_parameter(&mut |index| found |= index == parameter);
        found
    }
}

impl Truth {
    /// Calls `visit` with every parameter below, in text order, repeats included.
    pub(super) fn each_parameter(&self, visit: &mut dyn FnMut(usize)) {
        match self {
            Self::Choice { parameter, .. } => visit(*parameter),
            Self::Compare { sides, .. } => {
                for side in sides.iter() {
                    side.each_parameter(visit);
                }
            }
            Self::Not(operand) => operand.each_parameter(visit),
            Self::All(operands) | Self::Any(operands) => {
                for operand in operands {
                    operand.each_parameter(visit);
                }
            }
        }
    }
}
