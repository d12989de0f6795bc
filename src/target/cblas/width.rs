//! How wide a library's integers are: what it declares, what it does, and what follows.
//!
//! Nothing in a symbol table gives the width away, and a wrong guess passes garbage. So a declaration (decoration,
//! configuration string, user) is always compared with behaviour, and a contradiction is an error.
//!
//! Behaviour is observed with calls that are legal whichever width is true. A leading dimension of 2^32 + 1 in a
//! 64-bit register or word is 1 to a 32-bit library. With two columns of one row the second element then lies either
//! next to the first or 2^32 + 1 elements on; both places are mapped, and the result tells which one was used. A
//! product such as `j * ld` that a faulty 64-bit library narrows to 32 bits, in elements or bytes, lands on the near
//! place as well, so no narrowing of that kind faults here; it could look like a 32-bit interface, which is why "32"
//! needs all three operands and "64" only one.

use std::fmt;
use std::ptr;

use super::call::{Gemm, GemmCall};
use super::invoke::Passed;
use super::library::CblasError;
use super::symbols::{Decoration, Exports};

/// The width of the library's integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntWidth {
    I32,
    I64,
}

impl fmt::Display for IntWidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IntWidth::I32 => "32",
            IntWidth::I64 => "64",
        })
    }
}

/// What the library says about itself, and where it says so.
pub(super) fn declared(
    exports: &Exports,
    decoration: Decoration,
    openblas_config: Option<&str>,
) -> Option<(IntWidth, String)> {
    if let Some(width) = decoration.states() {
        return Some((width, format!("the decoration {decoration} means {width}-bit ints")));
    }
    if let Some(config) = openblas_config {
        return Some(if config.contains("USE64BITINT") {
            (IntWidth::I64, "openblas_get_config has USE64BITINT".to_string())
        } else {
            (IntWidth::I32, "openblas_get_config lacks USE64BITINT".to_string())
        });
    }
    // SAFETY: `gint_t bli_info_get_blas_int_type_size(void)` (frame/base/bli_info.h); gint_t has the width of a register.
    if let Some(bits) =
        unsafe { exports.function::<unsafe extern "C" fn() -> isize>("bli_info_get_blas_int_type_size") }
    {
        // SAFETY: it returns a constant.
        match unsafe { bits() } {
            32 => {
                return Some((IntWidth::I32, "bli_info_get_blas_int_type_size is 32".to_string()));
            }
            64 => {
                return Some((IntWidth::I64, "bli_info_get_blas_int_type_size is 64".to_string()));
            }
            _ => {}
        }
    }
    if exports.address("MKL_Get_Version_String").is_some() {
        let layer = std::env::var("MKL_INTERFACE_LAYER").unwrap_or_default();
        let width = if layer.to_ascii_uppercase().contains("ILP64") { IntWidth::I64 } else { IntWidth::I32 };
        let from = if layer.is_empty() { "unset: LP64".to_string() } else { format!("{layer:?}") };
        return Some((width, format!("MKL_INTERFACE_LAYER is {from}")));
    }
    if exports.address("ATL_xerbla").is_some() {
        return Some((IntWidth::I32, "ATLAS has 32-bit ints only".to_string()));
    }
    None
}

/// What the library did with a leading dimension of 2^32 + 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Observed {
    Width(IntWidth),
    Nothing(String),
}

impl fmt::Display for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Observed::Width(IntWidth::I32) => f.write_str("observed: lda, ldb and ldc of 2^32+1 each act as 1"),
            Observed::Width(IntWidth::I64) => f.write_str("observed: a leading dimension of 2^32+1 is obeyed"),
            Observed::Nothing(why) => write!(f, "not observed: {why}"),
        }
    }
}

/// The width to use and the evidence for it, or an error if there is none or it contradicts itself.
pub(super) fn decide(
    named: Option<IntWidth>,
    declared: Option<(IntWidth, String)>,
    observed: &Observed,
) -> Result<(IntWidth, String), CblasError> {
    // Named 64 and seen 32 may be a 64-bit library that narrows every offset; far more often the name is wrong, and every
    // argument past 31 bits a false finding.
    let claim = match named {
        Some(width) => Some((width, format!("--int-width {width}"))),
        None => declared,
    };
    match (claim, observed) {
        (Some((claimed, source)), Observed::Width(seen)) if claimed != *seen => {
            Err(CblasError::WidthContradiction { claim: source, observed: observed.to_string() })
        }
        (Some((claimed, source)), _) => Ok((claimed, format!("{source}; {observed}"))),
        (None, Observed::Width(seen)) => Ok((*seen, observed.to_string())),
        (None, Observed::Nothing(why)) => Err(CblasError::WidthUnknown { why: why.clone() }),
    }
}

/// The leading dimension that is 1 in its lower half.
const FAR: usize = (1 << 32) + 1;
/// Bytes mapped at either end; the element of interest lies in the middle, so that short over-reads are harmless.
const BLOCK: usize = 1 << 16;
const NEAR_VALUE: f32 = 7.0;
const FAR_VALUE: f32 = 11.0;

/// Reserved addresses with a mapped block at the start and one 2^32 + 1 floats on.
struct Span {
    base: *mut u8,
}

impl Span {
    const BYTES: usize = (FAR * size_of::<f32>()).next_multiple_of(BLOCK) + BLOCK;

    fn new() -> std::io::Result<Span> {
        let (private, none) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, libc::PROT_NONE);
        // SAFETY: a new anonymous mapping at an address of the kernel's choice.
        let base = unsafe { libc::mmap(ptr::null_mut(), Self::BYTES, none, private, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        let span = Span { base: base.cast() };
        for offset in [0, Self::BYTES - 2 * BLOCK] {
            let bytes = if offset == 0 { BLOCK } else { 2 * BLOCK };
            // SAFETY: both blocks lie inside the mapping made above.
            if unsafe { libc::mprotect(span.base.add(offset).cast(), bytes, libc::PROT_READ | libc::PROT_WRITE) } != 0 {
                return Err(std::io::Error::last_os_error());
            }
        }
        Ok(span)
    }

    /// The element at `index` of an operand that starts in the middle of the first block: 0, 1 or `FAR`.
    fn element(&self, index: usize) -> *mut f32 {
        debug_assert!(index <= 1 || index == FAR);
        // SAFETY: the first block's middle, its neighbour, or FAR floats on, which is in the last two blocks.
        unsafe { self.base.cast::<f32>().add(BLOCK / 2 / size_of::<f32>() + index) }
    }

    fn set(&self, [first, near, far]: [f32; 3]) {
        for (index, value) in [(0, first), (1, near), (FAR, far)] {
            // SAFETY: `element` is mapped and aligned.
            unsafe { self.element(index).write(value) }
        }
    }

    fn get(&self, index: usize) -> f32 {
        // SAFETY: as in `set`.
        unsafe { self.element(index).read() }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        // SAFETY: unmaps what `new` mapped; no pointer into it leaves this module.
        unsafe { libc::munmap(self.base.cast(), Self::BYTES) };
    }
}

/// Watches which element the library takes for the second column of A, B and C in turn.
///
/// # Safety
/// `sgemm` must be a `sgemm` of either integer width, with the prototype's registers and words 64 bits wide.
pub(super) unsafe fn observe(sgemm: Gemm) -> Observed {
    if !cfg!(all(target_pointer_width = "64", target_endian = "little")) {
        return Observed::Nothing("the test needs a 64-bit little-endian machine".to_string());
    }
    let span = match Span::new() {
        Ok(span) => span,
        Err(error) => {
            return Observed::Nothing(format!("failed to reserve 16 GiB of addresses: {error}"));
        }
    };
    let mut widths = Vec::new();
    for operand in ["lda", "ldb", "ldc"] {
        // SAFETY: both places of the second element are mapped; the other operands lie in arrays of 64 floats.
        let second = unsafe { second_element(sgemm, &span, operand) };
        widths.push(match second {
            Some(NEAR_VALUE) => IntWidth::I32,
            Some(FAR_VALUE) => IntWidth::I64,
            other => {
                return Observed::Nothing(format!("the test call for {operand} answered {other:?}"));
            }
        });
    }
    Observed::Width(if widths.contains(&IntWidth::I64) { IntWidth::I64 } else { IntWidth::I32 })
}

/// The value that the library took from (or, for C, replaced in) the second column's element.
///
/// # Safety
/// As for [`observe`].
unsafe fn second_element(sgemm: Gemm, span: &Span, operand: &str) -> Option<f32> {
    span.set([5.0, NEAR_VALUE, FAR_VALUE]);
    let far = |name| if operand == name { FAR as i64 } else { 1 };
    // With lda under test one dot product of length two, else one row times two columns.
    let (n, k, ldb) = if operand == "lda" { (1, 2, 2) } else { (2, 1, far("ldb")) };
    let (mut a, mut b, mut c) = ([0.0f32; 64], [0.0f32; 64], [0.0f32; 64]);
    a[0] = 1.0;
    b[..2].copy_from_slice(&[2.0, 1.0]);
    let call = GemmCall {
        trans_a: false,
        trans_b: false,
        m: 1,
        n,
        k,
        alpha: 1.0,
        a: if operand == "lda" { span.element(0).cast::<u8>() } else { a.as_ptr().cast() },
        lda: far("lda"),
        b: if operand == "ldb" { span.element(0).cast::<u8>() } else { b.as_ptr().cast() },
        ldb,
        beta: 0.0,
        c: if operand == "ldc" { span.element(0).cast::<u8>() } else { c.as_mut_ptr().cast() },
        ldc: far("ldc"),
    };
    // SAFETY: see `observe`.
    unsafe { sgemm.call::<i64>(Passed::Single, &call.args()) };
    match operand {
        "lda" => Some(c[0] - 5.0 * b[0]),
        "ldb" => (c[0] == 5.0).then_some(c[1]),
        // The result [2, 1] replaces the first element and whichever the library takes for the second.
        _ => match (span.get(0), span.get(1), span.get(FAR)) {
            (2.0, 1.0, FAR_VALUE) => Some(NEAR_VALUE),
            (2.0, NEAR_VALUE, 1.0) => Some(FAR_VALUE),
            _ => None,
        },
    }
}
