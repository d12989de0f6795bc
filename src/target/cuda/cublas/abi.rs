//! Functions of cuBLAS, as in cublas_api.h.

use crate::target::cuda::blas::{Status, functions};
use libloading::Library;
use std::ffi::{c_int, c_void};

/// `cublasHandle_t`.
pub type Handle = *mut c_void;

/// `CUBLAS_GEMM_DEFAULT` of `cublasGemmAlgo_t`.
pub const GEMM_DEFAULT: c_int = -1;

functions! {
    /// The functions that say what the library is.
    Api {
        create = "cublasCreate_v2": fn(*mut Handle) -> Status;
        property = "cublasGetProperty": fn(u32, *mut c_int) -> Status;
    }
}

/// `cublasGemmEx`: handle, operations, m n k, alpha, A with type and leading dimension, B likewise, beta, C likewise, compute
/// type, algorithm. `I` is `int`, or `int64_t` in the functions that end in `_64`.
pub type GemmEx<I> = unsafe extern "C" fn(
    Handle,
    u32,
    u32,
    I,
    I,
    I,
    *const c_void,
    *const c_void,
    u32,
    I,
    *const c_void,
    u32,
    I,
    *const c_void,
    *mut c_void,
    u32,
    I,
    u32,
    c_int,
) -> Status;

/// `cublasGemmStridedBatchedEx`: as above, with a `long long` stride after each leading dimension, and the number of products
/// before the compute type.
pub type GemmStridedBatchedEx<I> = unsafe extern "C" fn(
    Handle,
    u32,
    u32,
    I,
    I,
    I,
    *const c_void,
    *const c_void,
    u32,
    I,
    i64,
    *const c_void,
    u32,
    I,
    i64,
    *const c_void,
    *mut c_void,
    u32,
    I,
    i64,
    I,
    u32,
    c_int,
) -> Status;

/// `cublasGemmBatchedEx`: as `cublasGemmEx`, with arrays of pointers in the memory of the card in place of matrices, and the
/// number of products before the compute type.
pub type GemmBatchedEx<I> = unsafe extern "C" fn(
    Handle,
    u32,
    u32,
    I,
    I,
    I,
    *const c_void,
    *const *const c_void,
    u32,
    I,
    *const *const c_void,
    u32,
    I,
    *const c_void,
    *const *mut c_void,
    u32,
    I,
    I,
    u32,
    c_int,
) -> Status;

/// The functions that multiply, with integers of one width.
#[derive(Debug, Clone, Copy)]
pub struct Calls<I> {
    pub plain: GemmEx<I>,
    pub strided: GemmStridedBatchedEx<I>,
    pub pointers: GemmBatchedEx<I>,
}

impl Calls<c_int> {
    /// # Errors
    /// The name of a function that is missing.
    pub fn load(library: &Library) -> Result<Calls<c_int>, &'static str> {
        // SAFETY: these are the prototypes of these functions in cublas_api.h.
        unsafe { load(library, ["cublasGemmEx", "cublasGemmStridedBatchedEx", "cublasGemmBatchedEx"]) }
    }
}

impl Calls<i64> {
    /// # Errors
    /// The name of a function that is missing: versions before 12 have none of them.
    pub fn load(library: &Library) -> Result<Calls<i64>, &'static str> {
        // SAFETY: as above.
        unsafe { load(library, ["cublasGemmEx_64", "cublasGemmStridedBatchedEx_64", "cublasGemmBatchedEx_64"]) }
    }
}

/// # Safety
/// The functions of these names have the prototypes of [`Calls`] with integers `I`.
unsafe fn load<I>(library: &Library, names: [&'static str; 3]) -> Result<Calls<I>, &'static str> {
    let [plain, strided, pointers] = names;
    // SAFETY: passed on; callers keep the library open as long as they call.
    unsafe {
        Ok(Calls {
            plain: *library.get(plain.as_bytes()).map_err(|_| plain)?,
            strided: *library.get(strided.as_bytes()).map_err(|_| strided)?,
            pointers: *library.get(pointers.as_bytes()).map_err(|_| pointers)?,
        })
    }
}
