//! Words of C for the calls of cases.

use super::blas::{DataType, Gemm, Type};
use super::{cublas, cublaslt};
use crate::problem::{Case, Instance, Problem};
use crate::target::Bases;
use std::sync::Arc;

/// The call of a case as a line of C; `None` where the family has no such call.
pub fn call_text(family: &str, problem: &Problem, case: &Case) -> Option<String> {
    if ![cublas::FAMILY, cublaslt::FAMILY].contains(&family) {
        return None;
    }
    let instance = Arc::new(problem.clone()).instance(case.clone()).ok()?;
    let gemm = Gemm::new(&instance, &Nowhere).ok()?;
    match family {
        cublas::FAMILY => cublas::call_text(&instance, &gemm),
        _ => Some(cublaslt::call_text(&instance, &gemm)),
    }
}

/// Bases of a case that is only told.
struct Nowhere;

impl Bases for Nowhere {
    fn base(&self, _operand: usize, _copy: u32) -> *mut u8 {
        std::ptr::null_mut()
    }
}

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
