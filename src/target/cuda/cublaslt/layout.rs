//! Descriptions of a product and its matrices, which the library holds.

use super::abi::{
    Api, DESC_TRANSA, DESC_TRANSB, LAYOUT_BATCH_COUNT, LAYOUT_STRIDED_BATCH_OFFSET, Object, PREF_MAX_WORKSPACE_BYTES,
    PREF_MIN_ALIGNMENT_BYTES,
};
use crate::target::cuda::blas::{DataType, Failure, Gemm, Side, Status, done};
use std::ffi::c_void;
use std::ptr;

/// An object of the library, destroyed when dropped.
#[derive(Debug)]
pub struct Owned {
    pub object: Object,
    destroy: unsafe extern "C" fn(Object) -> Status,
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: created by the function that belongs to this one, and destroyed once.
        unsafe { (self.destroy)(self.object) };
    }
}

type Set = unsafe extern "C" fn(Object, u32, *const c_void, usize) -> Status;

impl Owned {
    fn set<T: Copy>(&self, call: &'static str, set: Set, attribute: u32, value: T) -> Result<(), Failure> {
        // SAFETY: the library copies as many bytes as it is told; callers give the type of the header.
        done(call, unsafe { set(self.object, attribute, (&raw const value).cast(), size_of::<T>()) })
    }
}

/// Everything that describes a product to the library but its pointers and factors.
#[derive(Debug)]
pub struct Described {
    pub desc: Owned,
    pub a: Owned,
    pub b: Owned,
    pub c: Owned,
    /// `None`: the result goes to C.
    d: Option<Owned>,
}

impl Described {
    /// # Errors
    /// Where the library refuses a description.
    pub fn new(api: &Api, gemm: &Gemm) -> Result<Described, Failure> {
        let mut object = ptr::null_mut();
        let (compute, scale) = (gemm.of.compute as u32, gemm.of.scale as u32);
        // SAFETY: `object` outlives the call.
        done("cublasLtMatmulDescCreate", unsafe { (api.desc_create)(&mut object, compute, scale) })?;
        let desc = Owned { object, destroy: api.desc_destroy };
        for (attribute, operation) in [DESC_TRANSA, DESC_TRANSB].into_iter().zip(gemm.operations) {
            desc.set("cublasLtMatmulDescSetAttribute", api.desc_set, attribute, operation)?;
        }
        let layout = |side: &Side, of| layout(api, side, of, gemm.batch);
        Ok(Described {
            desc,
            a: layout(&gemm.a, gemm.of.a)?,
            b: layout(&gemm.b, gemm.of.b)?,
            c: layout(&gemm.c, gemm.of.c)?,
            d: gemm.d.as_ref().map(|d| layout(d, gemm.of.c)).transpose()?,
        })
    }

    /// Layout of the matrix that receives the result.
    pub fn result(&self) -> &Owned {
        self.d.as_ref().unwrap_or(&self.c)
    }
}

fn layout(api: &Api, side: &Side, of: DataType, batch: i64) -> Result<Owned, Failure> {
    let mut object = ptr::null_mut();
    let (rows, columns) = (side.rows as u64, side.columns as u64);
    // SAFETY: `object` outlives the call.
    let status = unsafe { (api.layout_create)(&mut object, of as u32, rows, columns, side.leading) };
    done("cublasLtMatrixLayoutCreate", status)?;
    let layout = Owned { object, destroy: api.layout_destroy };
    if batch > 1 {
        let call = "cublasLtMatrixLayoutSetAttribute";
        let count =
            i32::try_from(batch).map_err(|_| Failure::Refused(format!("batch={batch}: {call} takes an int")))?;
        layout.set(call, api.layout_set, LAYOUT_BATCH_COUNT, count)?;
        layout.set(call, api.layout_set, LAYOUT_STRIDED_BATCH_OFFSET, side.stride)?;
    }
    Ok(layout)
}

/// What the heuristic has to keep to: bytes of workspace, and the alignments that the pointers really have.
///
/// # Errors
/// Where the library refuses it.
pub fn preference(api: &Api, gemm: &Gemm, workspace_bytes: u64) -> Result<Owned, Failure> {
    let mut object = ptr::null_mut();
    // SAFETY: `object` outlives the call.
    done("cublasLtMatmulPreferenceCreate", unsafe { (api.preference_create)(&mut object) })?;
    let preference = Owned { object, destroy: api.preference_destroy };
    let call = "cublasLtMatmulPreferenceSetAttribute";
    preference.set(call, api.preference_set, PREF_MAX_WORKSPACE_BYTES, workspace_bytes)?;
    for (attribute, alignment) in PREF_MIN_ALIGNMENT_BYTES.into_iter().zip(alignments(gemm)) {
        preference.set(call, api.preference_set, attribute, alignment)?;
    }
    Ok(preference)
}

/// Bytes to which A, B, C and D are aligned.
pub fn alignments(gemm: &Gemm) -> [u32; 4] {
    [gemm.a, gemm.b, gemm.c, gemm.result()].map(|side| side.alignment())
}
