//! Calls of C functions through their real prototypes.
//!
//! A prototype of CBLAS is a row of enums, integers, numbers and pointers. Integers are 32 or 64 bits wide by the build of
//! the library; numbers are passed by value where they are real and by reference where they are complex (`cblas.h`).

use std::ffi::{c_char, c_int, c_void};
use std::mem::transmute;

/// One argument of a call.
#[derive(Debug, Clone, Copy)]
pub enum Arg {
    Enum(c_int),
    Int(i64),
    Number(Number),
    Pointer(*mut u8),
}

/// A real number in every form in which it can be passed.
#[derive(Debug, Clone, Copy)]
pub struct Number {
    single: f32,
    double: f64,
    single_complex: [f32; 2],
    double_complex: [f64; 2],
}

impl Number {
    /// Rounded to the nearest `f32` in calls of that type.
    pub fn new(value: f64) -> Number {
        Number {
            single: value as f32,
            double: value,
            single_complex: [value as f32, 0.0],
            double_complex: [value, 0.0],
        }
    }
}

/// How numbers are passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Passed {
    Single,
    Double,
    SingleComplex,
    DoubleComplex,
}

/// An integer type of a library.
pub trait Int: Copy {
    /// The value, which fits: callers refuse what does not.
    fn of(value: i64) -> Self;
}

impl Int for i32 {
    fn of(value: i64) -> i32 {
        value as i32
    }
}

impl Int for i64 {
    fn of(value: i64) -> i64 {
        value
    }
}

/// What a number becomes in a register.
trait Pass: Copy {
    fn of(number: &Number) -> Self;
}

impl Pass for f32 {
    fn of(number: &Number) -> f32 {
        number.single
    }
}

impl Pass for f64 {
    fn of(number: &Number) -> f64 {
        number.double
    }
}

#[derive(Clone, Copy)]
#[repr(transparent)]
struct SingleReference(*const [f32; 2]);

impl Pass for SingleReference {
    fn of(number: &Number) -> SingleReference {
        SingleReference(&number.single_complex)
    }
}

#[derive(Clone, Copy)]
#[repr(transparent)]
struct DoubleReference(*const [f64; 2]);

impl Pass for DoubleReference {
    fn of(number: &Number) -> DoubleReference {
        DoubleReference(&number.double_complex)
    }
}

/// Hands out arguments in order; a table that does not fit its prototype is a bug of this crate.
struct Given<'a>(std::slice::Iter<'a, Arg>);

impl Given<'_> {
    fn choice(&mut self) -> c_int {
        match self.0.next() {
            Some(Arg::Enum(value)) => *value,
            other => unreachable!("an enum was to come, not {other:?}"),
        }
    }

    fn int<I: Int>(&mut self) -> I {
        match self.0.next() {
            Some(Arg::Int(value)) => I::of(*value),
            other => unreachable!("an integer was to come, not {other:?}"),
        }
    }

    fn number<S: Pass>(&mut self) -> S {
        match self.0.next() {
            Some(Arg::Number(number)) => S::of(number),
            other => unreachable!("a number was to come, not {other:?}"),
        }
    }

    fn pointer(&mut self) -> *mut c_void {
        match self.0.next() {
            Some(Arg::Pointer(pointer)) => pointer.cast(),
            other => unreachable!("a pointer was to come, not {other:?}"),
        }
    }
}

macro_rules! type_of {
    (E) => { c_int };
    (I) => { I };
    (S) => { S };
    (P) => { *mut c_void };
}

macro_rules! take {
    ($given:ident E) => {
        $given.choice()
    };
    ($given:ident I) => {
        $given.int::<I>()
    };
    ($given:ident S) => {
        $given.number::<S>()
    };
    ($given:ident P) => {
        $given.pointer()
    };
}

/// `Name: E I S P ...`: a prototype that returns nothing. E is an enum, I an integer, S a number, P a pointer.
macro_rules! prototypes {
    ($($(#[$doc:meta])* $name:ident: $($kind:ident)*;)*) => {
        /// The prototypes that return nothing, by the first routine of each.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Prototype { $($(#[$doc])* $name),* }

        unsafe fn call<I: Int, S: Pass>(prototype: Prototype, function: *mut c_void, args: &[Arg]) {
            let mut given = Given(args.iter());
            match prototype {
                $(Prototype::$name => {
                    // SAFETY: the caller vouches that the function has this prototype.
                    let function: unsafe extern "C" fn($(type_of!($kind)),*) = unsafe { transmute(function) };
                    // SAFETY: the caller vouches for the arguments.
                    unsafe { function($(take!(given $kind)),*) }
                })*
            }
        }
    };
}

prototypes! {
    Gemm: E E E I I I S P I P I S P I;
    GemmBatchStrided: E E E I I I S P I I P I I S P I I I;
    Gemmt: E E E E I I S P I P I S P I;
    /// symm, syr2k
    Symm: E E E I I S P I P I S P I;
    Syrk: E E E I I S P I S P I;
    /// trmm, trsm
    Trmm: E E E E E I I S P I P I;
    Gemv: E E I I S P I P I S P I;
    Ger: E I I S P I P I P I;
    Axpy: I S P I P I;
    /// copy, swap
    Copy: I P I P I;
    Scal: I S P I;
    Rot: I P I P I S S;
    /// dotu_sub, dotc_sub: the result is written through the last pointer
    DotSub: I P I P I P;
}

/// Prototypes that return a real number or an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Returning {
    /// `(n, x, incx, y, incy)`
    Dot,
    /// `(n, x, incx)`: asum, nrm2
    Asum,
}

/// Calls a function that returns nothing.
///
/// # Safety
/// The function has the prototype, with integers of type `I` and numbers passed that way; the arguments are in the order of
/// the prototype, and what the function does with them is the caller's business.
pub unsafe fn invoke<I: Int>(prototype: Prototype, passed: Passed, function: *mut c_void, args: &[Arg]) {
    // SAFETY: passed on.
    unsafe {
        match passed {
            Passed::Single => call::<I, f32>(prototype, function, args),
            Passed::Double => call::<I, f64>(prototype, function, args),
            Passed::SingleComplex => call::<I, SingleReference>(prototype, function, args),
            Passed::DoubleComplex => call::<I, DoubleReference>(prototype, function, args),
        }
    }
}

/// Calls a function that returns a real number of type `R`.
///
/// # Safety
/// As for [`invoke`].
pub unsafe fn number<I: Int, R>(prototype: Returning, function: *mut c_void, args: &[Arg]) -> R {
    let mut given = Given(args.iter());
    match prototype {
        Returning::Dot => {
            type Dot<I, R> = unsafe extern "C" fn(I, *mut c_void, I, *mut c_void, I) -> R;
            // SAFETY: passed on.
            let function: Dot<I, R> = unsafe { transmute(function) };
            let (n, x, incx, y, incy) = (given.int(), given.pointer(), given.int(), given.pointer(), given.int());
            // SAFETY: passed on.
            unsafe { function(n, x, incx, y, incy) }
        }
        Returning::Asum => {
            type Asum<I, R> = unsafe extern "C" fn(I, *mut c_void, I) -> R;
            // SAFETY: passed on.
            let function: Asum<I, R> = unsafe { transmute(function) };
            let (n, x, incx) = (given.int(), given.pointer(), given.int());
            // SAFETY: passed on.
            unsafe { function(n, x, incx) }
        }
    }
}

/// Calls `iamax(n, x, incx)`. Builds differ in the type of the index: `int`, `size_t`, or as wide as their integers.
///
/// # Safety
/// As for [`invoke`].
pub unsafe fn index<I: Int>(function: *mut c_void, args: &[Arg]) -> usize {
    // SAFETY: passed on; an index is returned in one register whatever its width.
    unsafe { number::<I, usize>(Returning::Asum, function, args) }
}

/// A gemm of Fortran: `transA, transB, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc` by reference, then the lengths of the two
/// characters.
type FortranGemm = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *const c_void,
    *const c_void,
    *const c_void,
    *const c_void,
    *const c_void,
    *const c_void,
    *const c_void,
    *const c_void,
    *const c_void,
    *const c_void,
    *const c_void,
    usize,
    usize,
);

/// Calls a gemm of Fortran with the arguments of CBLAS's.
///
/// # Safety
/// As for [`invoke`].
pub unsafe fn fortran_gemm<I: Int>(passed: Passed, function: *mut c_void, args: &[Arg]) {
    let mut ints = [I::of(0); 6];
    let mut next = 0;
    let mut given = [std::ptr::null::<c_void>(); 14];
    for (place, arg) in given.iter_mut().zip(args) {
        *place = match arg {
            Arg::Enum(super::routine::NO_TRANS) => c"N".as_ptr().cast(),
            Arg::Enum(super::routine::TRANS) => c"T".as_ptr().cast(),
            Arg::Enum(_) => c"C".as_ptr().cast(),
            Arg::Int(value) => {
                ints[next] = I::of(*value);
                next += 1;
                (&raw const ints[next - 1]).cast()
            }
            Arg::Number(number) => match passed {
                Passed::Single => (&raw const number.single).cast(),
                Passed::Double => (&raw const number.double).cast(),
                Passed::SingleComplex => number.single_complex.as_ptr().cast(),
                Passed::DoubleComplex => number.double_complex.as_ptr().cast(),
            },
            Arg::Pointer(pointer) => pointer.cast_const().cast(),
        };
    }
    // Fortran knows no order: its matrices are by columns, as are those of every call here.
    let [_, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc] = given;
    // SAFETY: the caller vouches that the function is a gemm; all references outlive the call.
    unsafe {
        let function: FortranGemm = transmute(function);
        function(ta.cast(), tb.cast(), m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, 1, 1);
    }
}
