//! Memory of one device with its oracles: maps pages, fills, compares.

mod cuda;
mod host;
mod staging;

pub use cuda::CudaGround;
pub use host::HostGround;

use super::oracle::{Damage, Placed};
use super::pages::PageSet;
use crate::device::MemoryError;
use crate::evidence::GpuFault;
use crate::exec::protocol::ArenaSpan;
use crate::problem::Contents;

/// Why a case could not be brought to its end.
#[derive(Debug)]
pub enum Loss {
    /// The device reported that a launch failed. It is of no more use to this process.
    Fault(GpuFault),
    /// One sentence: the worker has to end.
    Broken(String),
}

/// Where the operands of cases lie.
pub trait Ground {
    fn arena(&self) -> ArenaSpan;

    /// Gives pages back: a touch faults again.
    ///
    /// # Errors
    /// After one the worker has to end.
    fn unmap(&mut self, gone: &PageSet) -> Result<(), MemoryError>;

    /// Maps pages and covers them with the canary.
    ///
    /// # Errors
    /// As those of [`Arena::map`](crate::device::Arena::map).
    fn map(&mut self, new: &PageSet) -> Result<(), MemoryError>;

    /// Writes the defined elements of a case.
    ///
    /// # Errors
    /// A sentence, where the worker has to end.
    ///
    /// # Safety
    /// Every element of the footprint lies in pages that are mapped, to which no Rust reference points. Every byte of them
    /// holds the canary.
    unsafe fn fill(&mut self, placed: Placed<'_>, contents: &dyn Contents) -> Result<(), String>;

    /// Waits until what was launched has ended.
    ///
    /// # Errors
    /// The device's report that it failed.
    fn settle(&mut self) -> Result<(), Loss>;

    /// Takes the values of the last fill back without comparing them.
    ///
    /// # Errors
    /// A sentence, where the worker has to end.
    ///
    /// # Safety
    /// As for [`check`](Self::check).
    unsafe fn clear(&mut self, placed: Placed<'_>) -> Result<(), String>;

    /// Compares everything with what a correct run leaves, and leaves every mapped byte at the canary.
    ///
    /// # Errors
    /// As those of [`settle`](Self::settle).
    ///
    /// # Safety
    /// `placed` and `contents` are those of the last [`fill`](Self::fill), whose conditions still hold, and the run has ended.
    unsafe fn check(&mut self, placed: Placed<'_>, contents: &dyn Contents) -> Result<Option<Damage>, Loss>;
}
