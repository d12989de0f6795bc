//! The arena of a GPU: one reservation of device addresses, in which pages of the card are mapped where a case needs them.

use super::driver::{CudaError, check};
use super::gpu::Gpu;
use super::physical::{Physical, Piece, access};
use crate::device::{Arena, MemoryError, MemoryKind, PageRange, Protection, end_in};
use cudarc::driver::sys::{self, CUmemAccess_flags};
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

/// A reservation of device addresses. Lives as long as the process: the driver gives all of it back then.
#[derive(Debug)]
pub struct CudaArena {
    gpu: Rc<Gpu>,
    base: u64,
    len: u64,
    physical: Physical,
    /// What is mapped, by its address.
    mapped: BTreeMap<u64, Piece>,
    /// Pages that stayed mapped and lost what they held.
    renewed: Vec<PageRange>,
}

impl CudaArena {
    /// The largest reservation that one call was seen to grant.
    pub const WANTED_BYTES: u64 = 1 << 46;

    /// Reserves `wanted` bytes of addresses, or the largest of its halves, quarters, ... that the driver grants, but `least`
    /// bytes at least.
    ///
    /// # Errors
    /// One sentence, where even `least` bytes are refused or the card cannot map pages.
    pub fn reserve(gpu: &Rc<Gpu>, wanted: u64, least: u64) -> Result<CudaArena, String> {
        if !gpu.can_map {
            return Err(format!("{} cannot map memory at chosen addresses (no virtual memory management)", gpu.name));
        }
        let physical = Physical::new(gpu).map_err(|e| e.to_string())?;
        let mut len = wanted.next_multiple_of(physical.page_bytes);
        loop {
            let mut base = 0;
            // SAFETY: the result outlives the call.
            let status = unsafe { sys::cuMemAddressReserve(&mut base, len as usize, 0, 0, 0) };
            match check("cuMemAddressReserve", status) {
                Ok(()) => {
                    return Ok(CudaArena {
                        gpu: Rc::clone(gpu),
                        base,
                        len,
                        physical,
                        mapped: BTreeMap::new(),
                        renewed: vec![],
                    });
                }
                Err(e) if len / 2 < least => return Err(format!("not even {len} bytes of device addresses: {e}")),
                Err(_) => len /= 2,
            }
        }
    }

    /// The pages that stayed mapped since the last call and lost what they held: a piece of physical memory is mapped whole or
    /// not at all, so what is left of one that was cut is another piece.
    pub fn take_renewed(&mut self) -> Vec<PageRange> {
        std::mem::take(&mut self.renewed)
    }

    fn check(&self, ranges: &[PageRange]) -> Result<(), MemoryError> {
        let page_bytes = self.physical.page_bytes;
        ranges.iter().try_for_each(|range| end_in(*range, self.base, self.len, page_bytes).map(drop))
    }

    fn open(&mut self, range: PageRange) -> Result<(), MemoryError> {
        let PageRange { start, bytes } = range;
        let failed = |e: CudaError| {
            let out_of_memory = e.is_out_of_memory();
            let source = io::Error::other(e);
            if out_of_memory {
                MemoryError::CardFull { start, bytes, source }
            } else {
                MemoryError::Map { start, bytes, source }
            }
        };
        let mut pieces = self.physical.take(bytes).map_err(failed)?;
        let mut at = start;
        while let Some(piece) = pieces.first().copied() {
            // SAFETY: the addresses are reserved and free, and the piece is mapped nowhere else.
            let status = unsafe { sys::cuMemMap(at, piece.bytes as usize, 0, piece.handle, 0) };
            if let Err(e) = check("cuMemMap", status) {
                self.physical.give(pieces);
                return Err(failed(e));
            }
            self.mapped.insert(at, pieces.remove(0));
            at += piece.bytes;
        }
        let access = access(&self.gpu);
        // SAFETY: the whole range was mapped above.
        let status = unsafe { sys::cuMemSetAccess(start, bytes as usize, &access, 1) };
        check("cuMemSetAccess", status).map_err(failed)
    }

    /// Unmaps whole pieces within a range; what is left of a piece that is cut is mapped anew.
    fn close(&mut self, range: PageRange) -> Result<(), MemoryError> {
        let (start, end) = (range.start, range.start + range.bytes);
        let first = self.mapped.range(..start).next_back().filter(|(at, p)| **at + p.bytes > start).map(|(at, _)| *at);
        let met: Vec<u64> = first.into_iter().chain(self.mapped.range(start..end).map(|(at, _)| *at)).collect();
        let mut rest = vec![];
        for at in met {
            let Some(piece) = self.mapped.remove(&at) else { continue };
            let bytes = piece.bytes;
            // SAFETY: exactly what one call mapped; nothing runs on the card while the arena is borrowed mutably.
            let status = unsafe { sys::cuMemUnmap(at, bytes as usize) };
            check("cuMemUnmap", status).map_err(|e| {
                let source = io::Error::other(e);
                MemoryError::Unmap { start: at, bytes, source }
            })?;
            self.physical.give(vec![piece]);
            rest.extend((at < start).then(|| PageRange { start: at, bytes: start - at }));
            rest.extend((at + bytes > end).then(|| PageRange { start: end, bytes: at + bytes - end }));
        }
        for range in rest {
            self.open(range)?;
            self.renewed.push(range);
        }
        Ok(())
    }
}

impl Arena for CudaArena {
    fn page_bytes(&self) -> u64 {
        self.physical.page_bytes
    }

    fn base(&self) -> u64 {
        self.base
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn kind(&self) -> MemoryKind {
        MemoryKind::Sparse
    }

    fn map(&mut self, ranges: &[PageRange]) -> Result<(), MemoryError> {
        self.check(ranges)?;
        for (done, range) in ranges.iter().enumerate().filter(|(_, r)| r.bytes > 0) {
            let opened = self.close(*range).and_then(|()| self.open(*range));
            if let Err(e) = opened {
                self.unmap(&ranges[..=done])?;
                return Err(e);
            }
        }
        Ok(())
    }

    fn unmap(&mut self, ranges: &[PageRange]) -> Result<(), MemoryError> {
        self.check(ranges)?;
        ranges.iter().filter(|r| r.bytes > 0).try_for_each(|range| self.close(*range))
    }

    fn protect(&mut self, range: PageRange, protection: Protection) -> Result<(), MemoryError> {
        self.check(&[range])?;
        let PageRange { start, bytes } = range;
        let mut covered = start;
        for (at, piece) in self.mapped.range(start..start + bytes) {
            if *at != covered {
                break;
            }
            covered += piece.bytes;
        }
        if covered < start + bytes {
            return Err(MemoryError::NotMapped { start, bytes });
        }
        let mut access = access(&self.gpu);
        if protection == Protection::Read {
            access.flags = CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READ;
        }
        // SAFETY: every page of the range is mapped.
        let status = unsafe { sys::cuMemSetAccess(start, bytes as usize, &access, 1) };
        check("cuMemSetAccess", status).map_err(|e| {
            let source = io::Error::other(e);
            MemoryError::Protect { start, bytes, source }
        })
    }
}
