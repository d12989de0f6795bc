//! The prototypes of GEMM, the rules for its arguments, and the call.

use std::ffi::{c_char, c_int};

use thiserror::Error;

use super::symbols::{Decoration, Exports, Interface};
use super::width::IntWidth;

/// The element type of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Real {
    F32,
    F64,
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

    fn ints<I: TryFrom<i64>>(&self) -> Result<[I; 6], Refusal> {
        let fit = |name, value| I::try_from(value).map_err(|_| Refusal::DoesNotFit { name, value });
        Ok([
            fit("m", self.m)?,
            fit("n", self.n)?,
            fit("k", self.k)?,
            fit("lda", self.lda)?,
            fit("ldb", self.ldb)?,
            fit("ldc", self.ldc)?,
        ])
    }
}

/// `order, transA, transB, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc`; the enums of CBLAS are C ints.
type CblasGemm<I, T> = unsafe extern "C" fn(c_int, c_int, c_int, I, I, I, T, *const T, I, *const T, I, T, *mut T, I);

/// `transA, transB, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc`, then the lengths of the two characters.
type FortranGemm<I, T> = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *const I,
    *const I,
    *const I,
    *const T,
    *const T,
    *const I,
    *const T,
    *const I,
    *const T,
    *mut T,
    *const I,
    usize,
    usize,
);

// The values of the enums in cblas.h.
const COLUMN_MAJOR: c_int = 102;
const NO_TRANS: c_int = 111;
const TRANS: c_int = 112;

/// One GEMM of one element type with ints of type `I`.
#[derive(Clone, Copy)]
pub(super) enum Function<I, T> {
    Cblas(CblasGemm<I, T>),
    Fortran(FortranGemm<I, T>),
}

impl<I: TryFrom<i64> + Copy, T: Copy> Function<I, T> {
    /// # Safety
    /// The library's ints must have the width of `I`, `letter` must name `T`.
    unsafe fn load(exports: &Exports, interface: Interface, decoration: Decoration, letter: char) -> Option<Self> {
        let name = decoration.gemm_name(interface, letter);
        // SAFETY: the names of BLAS have the prototypes above; the caller vouches for the types.
        unsafe {
            match interface {
                Interface::Cblas => exports.function(&name).map(Function::Cblas),
                Interface::Fortran => exports.function(&name).map(Function::Fortran),
            }
        }
    }

    /// # Safety
    /// As for [`super::Library::gemm`].
    pub(super) unsafe fn call(&self, call: &GemmCall, alpha: T, beta: T) -> Result<(), Refusal> {
        call.check()?;
        let [m, n, k, lda, ldb, ldc] = call.ints::<I>()?;
        let (a, b, c) = (call.a.cast::<T>(), call.b.cast::<T>(), call.c.cast::<T>());
        match *self {
            Function::Cblas(gemm) => {
                let transpose = |transposed| if transposed { TRANS } else { NO_TRANS };
                let (ta, tb) = (transpose(call.trans_a), transpose(call.trans_b));
                // SAFETY: the prototype is CBLAS's, the arguments obey its rules, the caller vouches for the memory.
                unsafe { gemm(COLUMN_MAJOR, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) }
            }
            Function::Fortran(gemm) => {
                let transpose = |transposed| {
                    if transposed { c"T".as_ptr() } else { c"N".as_ptr() }
                };
                let (ta, tb) = (transpose(call.trans_a), transpose(call.trans_b));
                // SAFETY: as above; every reference outlives the call.
                unsafe { gemm(ta, tb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc, 1, 1) }
            }
        }
        Ok(())
    }
}

/// `sgemm` and `dgemm` with ints of type `I`.
pub(super) struct Functions<I> {
    pub(super) single: Function<I, f32>,
    double: Function<I, f64>,
}

impl<I: TryFrom<i64> + Copy> Functions<I> {
    /// # Safety
    /// The library's ints must have the width of `I`.
    pub(super) unsafe fn load(exports: &Exports, interface: Interface, decoration: Decoration) -> Option<Self> {
        // SAFETY: the letters name the element types; the caller vouches for `I`.
        unsafe {
            Some(Functions {
                single: Function::load(exports, interface, decoration, 's')?,
                double: Function::load(exports, interface, decoration, 'd')?,
            })
        }
    }

    unsafe fn gemm(&self, real: Real, call: &GemmCall) -> Result<(), Refusal> {
        // SAFETY: the caller's promise is passed on.
        unsafe {
            match real {
                Real::F32 => self.single.call(call, call.alpha as f32, call.beta as f32),
                Real::F64 => self.double.call(call, call.alpha, call.beta),
            }
        }
    }
}

/// The functions of a library, of the width that it really has.
pub(super) enum Gemm {
    I32(Functions<i32>),
    I64(Functions<i64>),
}

impl Gemm {
    /// # Safety
    /// The library's ints must have `width`.
    pub(super) unsafe fn load(
        exports: &Exports,
        interface: Interface,
        decoration: Decoration,
        width: IntWidth,
    ) -> Option<Gemm> {
        // SAFETY: `width` picks the type it names.
        unsafe {
            match width {
                IntWidth::I32 => Functions::load(exports, interface, decoration).map(Gemm::I32),
                IntWidth::I64 => Functions::load(exports, interface, decoration).map(Gemm::I64),
            }
        }
    }

    /// # Safety
    /// As for [`super::Library::gemm`].
    pub(super) unsafe fn call(&self, real: Real, call: &GemmCall) -> Result<(), Refusal> {
        // SAFETY: the caller's promise is passed on.
        unsafe {
            match self {
                Gemm::I32(functions) => functions.gemm(real, call),
                Gemm::I64(functions) => functions.gemm(real, call),
            }
        }
    }
}
