//! Physical pages of the card, kept from mapping to mapping: making one costs more than mapping it.

use super::driver::{CudaError, check};
use super::gpu::Gpu;
use cudarc::driver::sys::{
    self, CUmemAccessDesc, CUmemAllocationGranularity_flags, CUmemAllocationProp, CUmemAllocationType, CUmemLocation,
    CUmemLocationType,
};
use std::collections::BTreeMap;

/// Largest single piece, bytes: large operands take few pieces.
const LARGEST: u64 = 1 << 30;
/// Unused bytes that are kept.
const KEPT_BYTES: u64 = 8 << 30;

/// A physical allocation of so many bytes.
#[derive(Debug, Clone, Copy)]
pub struct Piece {
    pub(super) handle: u64,
    pub bytes: u64,
}

/// Where physical memory comes from and goes back to.
#[derive(Debug)]
pub struct Physical {
    properties: CUmemAllocationProp,
    /// Bytes of the smallest piece.
    pub page_bytes: u64,
    free: BTreeMap<u64, Vec<Piece>>,
    free_bytes: u64,
}

fn properties(gpu: &Gpu) -> CUmemAllocationProp {
    // SAFETY: plain numbers and null pointers; 0 is a valid value of each field that is not set below.
    let mut properties: CUmemAllocationProp = unsafe { std::mem::zeroed() };
    properties.type_ = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = place(gpu);
    properties
}

fn place(gpu: &Gpu) -> CUmemLocation {
    CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: gpu.device }
}

/// Reading and writing by the card.
pub(super) fn access(gpu: &Gpu) -> CUmemAccessDesc {
    CUmemAccessDesc { location: place(gpu), flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE }
}

impl Physical {
    /// # Errors
    /// Where the driver does not tell the size of a page.
    pub fn new(gpu: &Gpu) -> Result<Physical, CudaError> {
        let properties = properties(gpu);
        let mut page = 0;
        let which = CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
        // SAFETY: both arguments outlive the call.
        let status = unsafe { sys::cuMemGetAllocationGranularity(&mut page, &properties, which) };
        check("cuMemGetAllocationGranularity", status)?;
        Ok(Physical { properties, page_bytes: page as u64, free: BTreeMap::new(), free_bytes: 0 })
    }

    /// Pieces that together have `bytes` bytes, largest first.
    ///
    /// # Errors
    /// Where the card has no more memory; what was taken is given back.
    pub fn take(&mut self, bytes: u64) -> Result<Vec<Piece>, CudaError> {
        let mut pieces = Vec::new();
        let mut left = bytes;
        while left > 0 {
            let size = if left >= LARGEST { LARGEST } else { left.min(1 << left.ilog2()).max(self.page_bytes) };
            match self.one(size) {
                Ok(piece) => pieces.push(piece),
                Err(e) => {
                    self.give(pieces);
                    return Err(e);
                }
            }
            left -= size;
        }
        Ok(pieces)
    }

    fn one(&mut self, bytes: u64) -> Result<Piece, CudaError> {
        if let Some(piece) = self.free.get_mut(&bytes).and_then(Vec::pop) {
            self.free_bytes -= bytes;
            return Ok(piece);
        }
        match self.make(bytes) {
            Err(e) if e.is_out_of_memory() && self.free_bytes > 0 => {
                // What is kept in other sizes may be what is missing.
                self.release_all();
                self.make(bytes)
            }
            other => other,
        }
    }

    fn make(&self, bytes: u64) -> Result<Piece, CudaError> {
        let mut handle = 0;
        // SAFETY: both arguments outlive the call.
        check("cuMemCreate", unsafe { sys::cuMemCreate(&mut handle, bytes as usize, &self.properties, 0) })?;
        Ok(Piece { handle, bytes })
    }

    /// Takes pieces back that are mapped nowhere any more.
    pub fn give(&mut self, pieces: Vec<Piece>) {
        for piece in pieces {
            if self.free_bytes + piece.bytes > KEPT_BYTES {
                release(piece);
            } else {
                self.free_bytes += piece.bytes;
                self.free.entry(piece.bytes).or_default().push(piece);
            }
        }
    }

    fn release_all(&mut self) {
        std::mem::take(&mut self.free).into_values().flatten().for_each(release);
        self.free_bytes = 0;
    }
}

fn release(piece: Piece) {
    // SAFETY: made by `make`, mapped nowhere, released once. A refusal leaks it until the process ends.
    let _ = unsafe { sys::cuMemRelease(piece.handle) };
}
