//! Functions, constants and structs of cublasLt, as in cublasLt.h.

use crate::target::cuda::blas::{Status, functions};
use std::ffi::{c_int, c_void};

/// An opaque object of the library: handle, description, layout, preference.
pub type Object = *mut c_void;

/// `cublasLtMatmulAlgo_t`: plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Algo(pub [u64; 8]);

/// `cublasLtMatmulHeuristicResult_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct HeuristicResult {
    pub algo: Algo,
    pub workspace_bytes: usize,
    pub state: Status,
    pub waves: f32,
    pub reserved: [c_int; 4],
}

impl HeuristicResult {
    pub const EMPTY: HeuristicResult =
        HeuristicResult { algo: Algo([0; 8]), workspace_bytes: 0, state: Status(0), waves: 0.0, reserved: [0; 4] };
}

const _: () = assert!(size_of::<HeuristicResult>() == 96);

/// `cublasLtMatmulDescAttributes_t`.
pub const DESC_TRANSA: u32 = 3;
pub const DESC_TRANSB: u32 = 4;

/// `cublasLtMatrixLayoutAttribute_t`: `int32_t` and `int64_t`.
pub const LAYOUT_BATCH_COUNT: u32 = 5;
pub const LAYOUT_STRIDED_BATCH_OFFSET: u32 = 6;

/// `cublasLtMatmulPreferenceAttributes_t`: `uint64_t`, then `uint32_t` of A, B, C and D.
pub const PREF_MAX_WORKSPACE_BYTES: u32 = 1;
pub const PREF_MIN_ALIGNMENT_BYTES: [u32; 4] = [5, 6, 7, 8];

/// `cublasLtMatmulAlgoConfigAttributes_t`: of 32 bits, but for the last two, which have 16.
pub const CONFIG_ID: u32 = 0;
pub const CONFIG_TILE_ID: u32 = 1;
pub const CONFIG_SPLITK_NUM: u32 = 2;
pub const CONFIG_REDUCTION_SCHEME: u32 = 3;
pub const CONFIG_CTA_SWIZZLING: u32 = 4;
pub const CONFIG_CUSTOM_OPTION: u32 = 5;
pub const CONFIG_STAGES_ID: u32 = 6;
pub const CONFIG_INNER_SHAPE_ID: u32 = 7;
pub const CONFIG_CLUSTER_SHAPE_ID: u32 = 8;

/// `cublasLtMatmulAlgoCapAttributes_t`: of 32 bits; tiles and stages are arrays.
pub const CAP_SPLITK_SUPPORT: u32 = 0;
pub const CAP_REDUCTION_SCHEME_MASK: u32 = 1;
pub const CAP_CTA_SWIZZLING_SUPPORT: u32 = 2;
pub const CAP_TILE_IDS: u32 = 6;
pub const CAP_CUSTOM_OPTION_MAX: u32 = 7;
pub const CAP_STAGES_IDS: u32 = 13;
/// Of A, B, C and D.
pub const CAP_MIN_ALIGNMENT_BYTES: [u32; 4] = [16, 17, 18, 19];

functions! {
    /// The functions of cublasLt that are called.
    Api {
        create = "cublasLtCreate": fn(*mut Object) -> Status;
        property = "cublasLtGetProperty": fn(u32, *mut c_int) -> Status;
        matmul = "cublasLtMatmul": fn(
            Object, Object, *const c_void, *const c_void, Object, *const c_void, Object, *const c_void, *const c_void, Object,
            *mut c_void, Object, *const Algo, *mut c_void, usize, *mut c_void,
        ) -> Status;
        desc_create = "cublasLtMatmulDescCreate": fn(*mut Object, u32, u32) -> Status;
        desc_destroy = "cublasLtMatmulDescDestroy": fn(Object) -> Status;
        desc_set = "cublasLtMatmulDescSetAttribute": fn(Object, u32, *const c_void, usize) -> Status;
        layout_create = "cublasLtMatrixLayoutCreate": fn(*mut Object, u32, u64, u64, i64) -> Status;
        layout_destroy = "cublasLtMatrixLayoutDestroy": fn(Object) -> Status;
        layout_set = "cublasLtMatrixLayoutSetAttribute": fn(Object, u32, *const c_void, usize) -> Status;
        preference_create = "cublasLtMatmulPreferenceCreate": fn(*mut Object) -> Status;
        preference_destroy = "cublasLtMatmulPreferenceDestroy": fn(Object) -> Status;
        preference_set = "cublasLtMatmulPreferenceSetAttribute": fn(Object, u32, *const c_void, usize) -> Status;
        heuristic = "cublasLtMatmulAlgoGetHeuristic": fn(
            Object, Object, Object, Object, Object, Object, Object, c_int, *mut HeuristicResult, *mut c_int,
        ) -> Status;
        algo_ids = "cublasLtMatmulAlgoGetIds": fn(
            Object, u32, u32, u32, u32, u32, u32, c_int, *mut c_int, *mut c_int,
        ) -> Status;
        algo_init = "cublasLtMatmulAlgoInit": fn(Object, u32, u32, u32, u32, u32, u32, c_int, *mut Algo) -> Status;
        algo_check = "cublasLtMatmulAlgoCheck": fn(
            Object, Object, Object, Object, Object, Object, *const Algo, *mut HeuristicResult,
        ) -> Status;
        algo_cap = "cublasLtMatmulAlgoCapGetAttribute": fn(*const Algo, u32, *mut c_void, usize, *mut usize) -> Status;
        config_get = "cublasLtMatmulAlgoConfigGetAttribute": fn(*const Algo, u32, *mut c_void, usize, *mut usize) -> Status;
        config_set = "cublasLtMatmulAlgoConfigSetAttribute": fn(*mut Algo, u32, *const c_void, usize) -> Status;
    }
}
