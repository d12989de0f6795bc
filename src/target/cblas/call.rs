//! One plain GEMM: the rules for its arguments, and the call.

use std::ffi::c_void;

use thiserror::Error;

use super::invoke::{self, Arg, Int, Number, Passed, Prototype};
use super::routine::{COLUMN_MAJOR, NO_TRANS, TRANS};
use super::symbols::{Decoration, Exports, Interface};

/// The element type of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Real {
    F32,
    F64,
}

impl Real {
    pub(super) fn passed(self) -> Passed {
        match self {
            Real::F32 => Passed::Single,
            Real::F64 => Passed::Double,
        }
    }
}

/// `C = alpha * op(A) * op(B) + beta * C`, column-major. Sizes and leading dimensions count elements.
#[derive(Debug, Clone, Copy)]
pub struct GemmCall {
    pub trans_a: bool,
    pub trans_b: bool,
    pub m: i64,
    pub n: i64,
    pub k: i64,
    /// Rounded to the nearest `f32` in a call of that type.
    pub alpha: f64,
    pub a: *const u8,
    pub lda: i64,
    pub b: *const u8,
    pub ldb: i64,
    /// Rounded like `alpha`.
    pub beta: f64,
    pub c: *mut u8,
    pub ldc: i64,
}

/// Why a call was not made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// An argument breaks the rules of BLAS; some libraries end the process over it.
    #[error("{name} = {value} must be at least {least} ({rule})")]
    Illegal { name: &'static str, value: i64, least: i64, rule: &'static str },
    /// An argument would be truncated.
    #[error("{name} = {value} does not fit the library's 32-bit int")]
    DoesNotFit { name: &'static str, value: i64 },
}

impl GemmCall {
    /// The argument rules of the reference BLAS (`dgemm.f`, in the order it tests them).
    pub fn check(&self) -> Result<(), Refusal> {
        let (rows_a, rule_a) = if self.trans_a { (self.k, "k rows") } else { (self.m, "m rows") };
        let (rows_b, rule_b) = if self.trans_b { (self.n, "n rows") } else { (self.k, "k rows") };
        let rules = [
            ("m", self.m, 0, "a size"),
            ("n", self.n, 0, "a size"),
            ("k", self.k, 0, "a size"),
            ("lda", self.lda, rows_a.max(1), rule_a),
            ("ldb", self.ldb, rows_b.max(1), rule_b),
            ("ldc", self.ldc, self.m.max(1), "m rows"),
        ];
        match rules.into_iter().find(|&(_, value, least, _)| value < least) {
            Some((name, value, least, rule)) => Err(Refusal::Illegal { name, value, least, rule }),
            None => Ok(()),
        }
    }

    /// The arguments of the call in the order of CBLAS.
    pub(super) fn args(&self) -> [Arg; 14] {
        let trans = |transposed| Arg::Enum(if transposed { TRANS } else { NO_TRANS });
        [
            Arg::Enum(COLUMN_MAJOR),
            trans(self.trans_a),
            trans(self.trans_b),
            Arg::Int(self.m),
            Arg::Int(self.n),
            Arg::Int(self.k),
            Arg::Number(Number::new(self.alpha)),
            Arg::Pointer(self.a.cast_mut()),
            Arg::Int(self.lda),
            Arg::Pointer(self.b.cast_mut()),
            Arg::Int(self.ldb),
            Arg::Number(Number::new(self.beta)),
            Arg::Pointer(self.c),
            Arg::Int(self.ldc),
        ]
    }

    /// Whether every integer fits 32 bits.
    pub(super) fn fits(&self) -> Result<(), Refusal> {
        let ints =
            [("m", self.m), ("n", self.n), ("k", self.k), ("lda", self.lda), ("ldb", self.ldb), ("ldc", self.ldc)];
        match ints.into_iter().find(|(_, value)| i32::try_from(*value).is_err()) {
            Some((name, value)) => Err(Refusal::DoesNotFit { name, value }),
            None => Ok(()),
        }
    }
}

/// The function of one gemm.
#[derive(Clone, Copy)]
pub(super) struct Gemm {
    pub(super) interface: Interface,
    pub(super) address: *mut c_void,
}

impl Gemm {
    pub(super) fn load(exports: &Exports, interface: Interface, decoration: Decoration, letter: char) -> Option<Gemm> {
        let address = exports.address(&decoration.gemm_name(interface, letter))?;
        Some(Gemm { interface, address })
    }

    /// # Safety
    /// The library's ints have the width of `I`, and `passed` names the function's type; otherwise as for
    /// [`super::Library::gemm`].
    pub(super) unsafe fn call<I: Int>(self, passed: Passed, args: &[Arg]) {
        // SAFETY: the names of BLAS have these prototypes; the caller vouches for the rest.
        unsafe {
            match self.interface {
                Interface::Cblas => invoke::invoke::<I>(Prototype::Gemm, passed, self.address, args),
                Interface::Fortran => invoke::fortran_gemm::<I>(passed, self.address, args),
            }
        }
    }
}
