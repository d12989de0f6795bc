//! Words of C for the calls of cases.

use super::blas::{DataType, Type};
use crate::problem::Instance;

/// Pointer to the first element of an operand: `A`, or `A + 4`.
pub fn pointer(instance: &Instance, operand: &str) -> String {
    let offset = instance.problem.operand(operand).and_then(|o| instance.view(o)).map_or(0, |v| v.lowest(0));
    if offset == 0 { operand.to_owned() } else { format!("{operand} + {offset}") }
}

/// A factor, by reference: `&(float){-2}`.
pub fn factor(instance: &Instance, name: &str) -> String {
    let of = Type::find(&instance.word("dtype")).map(|t| t.scale);
    let word = match of {
        Some(DataType::R64F) => "double",
        Some(DataType::R32I) => "int32_t",
        Some(DataType::C32F) => "cuComplex",
        Some(DataType::C64F) => "cuDoubleComplex",
        _ => "float",
    };
    format!("&({word}){{{}}}", instance.word(name))
}
