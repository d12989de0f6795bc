//! Statuses of cuBLAS and cublasLt.

/// A status as the libraries return it: `cublasStatus_t` of cublas_api.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Status(pub u32);

pub const SUCCESS: Status = Status(0);
const ALLOC_FAILED: u32 = 3;
const INVALID_VALUE: u32 = 7;
const NOT_SUPPORTED: u32 = 15;

/// Codes, names, and what they say.
const NAMES: [(u32, &str, &str); 10] = [
    (0, "CUBLAS_STATUS_SUCCESS", "the call succeeded"),
    (1, "CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialised"),
    (ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED", "the library was refused memory"),
    (INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE", "the library takes no such value"),
    (8, "CUBLAS_STATUS_ARCH_MISMATCH", "the GPU lacks a feature of the call"),
    (11, "CUBLAS_STATUS_MAPPING_ERROR", "an access to memory of the GPU failed"),
    (13, "CUBLAS_STATUS_EXECUTION_FAILED", "the GPU failed to run the program"),
    (14, "CUBLAS_STATUS_INTERNAL_ERROR", "an operation inside the library failed"),
    (NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED", "the library does not support the case"),
    (16, "CUBLAS_STATUS_LICENSE_ERROR", "the library found no licence"),
];

/// Why a call did not do what it was to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The library, or its documentation, declines the case. What a library declines begins with the name of its status:
    /// `CUBLAS_STATUS_NOT_SUPPORTED (15): ...`.
    Refused(String),
    /// A status that no valid call may give.
    Failed(String),
}

impl Status {
    /// `CUBLAS_STATUS_NOT_SUPPORTED (15): cublasLtMatmul: the library does not support the case`.
    pub fn text(self, call: &str) -> String {
        match NAMES.iter().find(|n| n.0 == self.0) {
            Some((code, name, text)) => format!("{name} ({code}): {call}: {text}"),
            None => format!("a status without a name ({}): {call}", self.0),
        }
    }
}

/// The outcome of a call that runs a product.
///
/// # Errors
/// Refused, where the status says that the library does not take the case or has no memory for it; else failed.
pub fn done(call: &str, status: Status) -> Result<(), Failure> {
    match status.0 {
        0 => Ok(()),
        NOT_SUPPORTED | INVALID_VALUE | ALLOC_FAILED => Err(Failure::Refused(status.text(call))),
        _ => Err(Failure::Failed(status.text(call))),
    }
}

/// The outcome of a call that asks whether a product can run.
///
/// # Errors
/// Refused, whatever the status: the answer is no.
pub fn ask(call: &str, status: Status) -> Result<(), Failure> {
    if status == SUCCESS { Ok(()) } else { Err(Failure::Refused(status.text(call))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_begins_with_the_name_and_the_code_of_its_status() {
        let Err(Failure::Refused(why)) = done("cublasLtMatmul", Status(15)) else { panic!("15 is a refusal") };
        assert_eq!(why.split_once(": ").unwrap().0, "CUBLAS_STATUS_NOT_SUPPORTED (15)");
        let Err(Failure::Refused(why)) = done("cublasGemmEx", Status(7)) else { panic!("7 is a refusal") };
        assert!(why.starts_with("CUBLAS_STATUS_INVALID_VALUE (7): cublasGemmEx: "), "{why}");
        let Err(Failure::Refused(why)) = done("cublasGemmEx", Status(3)) else { panic!("3 is a refusal") };
        assert!(why.contains("memory"), "{why}");
    }

    #[test]
    fn what_no_valid_call_may_give_is_a_failure_and_an_unknown_status_too() {
        for code in [1, 8, 11, 13, 14, 16, 99] {
            assert!(matches!(done("cublasGemmEx", Status(code)), Err(Failure::Failed(_))), "{code}");
            assert!(matches!(ask("cublasLtMatmulAlgoCheck", Status(code)), Err(Failure::Refused(_))), "{code}");
        }
        assert!(Status(99).text("f").contains("(99)"));
        assert_eq!(done("f", SUCCESS), Ok(()));
    }
}
