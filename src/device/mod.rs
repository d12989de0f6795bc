//! Memory and launch substrates.
//!
//! A device gives its worker one [`Arena`]: a large range of addresses, nearly all of it unmapped, in which the pages
//! that a case may touch are mapped. An access that leaves them faults at the address that names the error.

use std::io;

use serde::{Deserialize, Serialize};

pub mod cpu;
pub mod cuda;

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Device {
    Cpu,
    /// A GPU of NVIDIA.
    Cuda,
}

impl Device {
    pub fn name(self) -> &'static str {
        match self {
            Device::Cpu => "cpu",
            Device::Cuda => "cuda",
        }
    }
}

/// What the access that faulted was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Access {
    #[serde(rename = "r")]
    Read,
    /// A store, or the store half of a read-modify-write.
    #[serde(rename = "w")]
    Write,
}

/// What an arena can promise about the addresses that it did not map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// Reserved addresses cost nothing and fault: guards and gaps of any size.
    Sparse,
    /// One solid allocation between guards: what leaves it faults, the gaps inside it do not.
    Dense,
    /// An ordinary allocation: nothing around it is known to fault.
    Plain,
}

/// Whole pages of an arena: `start` is an address, and both fields are multiples of [`Arena::page_bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageRange {
    pub start: u64,
    pub bytes: u64,
}

/// How mapped pages may be used. Pages that may not be used at all are unmapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protection {
    ReadWrite,
    Read,
}

/// A reservation of addresses whose pages are mapped and unmapped at will. One per process; the worker owns it.
pub trait Arena {
    /// Bytes in a page, the unit of every [`PageRange`]: a power of two.
    fn page_bytes(&self) -> u64;

    /// Address of the first byte.
    fn base(&self) -> u64;

    /// Bytes reserved from [`base`](Self::base) on, mapped or not.
    fn len(&self) -> u64;

    /// Whether nothing is reserved at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn kind(&self) -> MemoryKind;

    /// Maps pages for reading and writing. A page that was mapped already is replaced, so every page of `ranges` is
    /// new; a range of no bytes is passed over.
    ///
    /// # Errors
    /// [`MemoryError::OutOfMemory`] and [`MemoryError::TooManyMappings`] say that the case does not fit here; the others
    /// are mistakes of the caller or the system. After an error none of `ranges` is mapped, unless the ranges
    /// themselves were refused ([`MemoryError::Misaligned`], [`MemoryError::OutOfArena`]: then nothing has changed).
    fn map(&mut self, ranges: &[PageRange]) -> Result<(), MemoryError>;

    /// Gives pages back: a touch faults again. Pages that are not mapped stay so.
    ///
    /// # Errors
    /// After [`MemoryError::Unmap`] what is mapped is no longer known: the worker has to end.
    fn unmap(&mut self, ranges: &[PageRange]) -> Result<(), MemoryError>;

    /// Changes how mapped pages may be used; their contents stay.
    ///
    /// # Errors
    /// [`MemoryError::NotMapped`] if a page of `range` is not mapped: protecting it would open the guard.
    fn protect(&mut self, range: PageRange, protection: Protection) -> Result<(), MemoryError>;
}

/// The end of a range of whole pages of a reservation.
///
/// # Errors
/// [`MemoryError::Misaligned`], [`MemoryError::OutOfArena`].
fn end_in(range: PageRange, base: u64, len: u64, page_bytes: u64) -> Result<u64, MemoryError> {
    let PageRange { start, bytes } = range;
    if !start.is_multiple_of(page_bytes) || !bytes.is_multiple_of(page_bytes) {
        return Err(MemoryError::Misaligned { start, bytes, page_bytes });
    }
    let end = start.checked_add(bytes).filter(|&end| base <= start && end <= base + len);
    end.ok_or(MemoryError::OutOfArena { start, bytes, base, len })
}

/// Why an arena could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    #[error("failed to reserve even {least} bytes of address space: raise the limit that `ulimit -v` shows")]
    Reserve { least: u64, source: io::Error },

    /// The case does not fit: answer "skipped".
    #[error(
        "failed to map {bytes} bytes at {start:#x} for want of memory: lower --max-memory, or raise the limit that `ulimit -d` shows"
    )]
    OutOfMemory { start: u64, bytes: u64, source: io::Error },

    /// The case is in too many pieces: answer "skipped".
    #[error(
        "failed to map {bytes} bytes at {start:#x} because the process has {limit} mappings already: raise vm.max_map_count"
    )]
    TooManyMappings { start: u64, bytes: u64, limit: u64 },

    /// The card has no memory for the case: answer "skipped".
    #[error(
        "failed to map {bytes} bytes at {start:#x} for want of memory on the card: lower --max-memory, or end other programs on it"
    )]
    CardFull { start: u64, bytes: u64, source: io::Error },

    #[error("failed to map {bytes} bytes at {start:#x}: check that the system lets this process map private memory")]
    Map { start: u64, bytes: u64, source: io::Error },

    #[error(
        "failed to unmap {bytes} bytes at {start:#x}: end this worker, because its guards can no longer be trusted"
    )]
    Unmap { start: u64, bytes: u64, source: io::Error },

    #[error(
        "failed to protect {bytes} bytes at {start:#x}: check that the system lets this process protect its memory"
    )]
    Protect { start: u64, bytes: u64, source: io::Error },

    #[error("failed to use {bytes} bytes at {start:#x}: round both to pages of {page_bytes} bytes")]
    Misaligned { start: u64, bytes: u64, page_bytes: u64 },

    #[error("failed to use {bytes} bytes at {start:#x}: stay within the {len} bytes reserved at {base:#x}")]
    OutOfArena { start: u64, bytes: u64, base: u64, len: u64 },

    #[error("failed to protect {bytes} bytes at {start:#x}: map every page of them first")]
    NotMapped { start: u64, bytes: u64 },
}
