//! Memory of the host.

use super::{Ground, Loss};
use crate::device::cpu::CpuArena;
use crate::device::{Arena, MemoryError, PageRange};
use crate::exec::protocol::ArenaSpan;
use crate::problem::Contents;
use crate::worker::oracle::{BrokenOracle, Damage, Oracle, Placed};
use crate::worker::pages::PageSet;

/// An arena of the host and what compares its bytes.
pub struct HostGround {
    arena: CpuArena,
    oracle: Oracle,
}

impl HostGround {
    pub fn new(arena: CpuArena, broken: Option<BrokenOracle>) -> HostGround {
        HostGround { arena, oracle: Oracle::new(broken) }
    }
}

fn list(set: &PageSet) -> Vec<PageRange> {
    set.iter().collect()
}

impl Ground for HostGround {
    fn arena(&self) -> ArenaSpan {
        ArenaSpan { base: self.arena.base(), len: self.arena.len(), page_bytes: self.arena.page_bytes() }
    }

    fn unmap(&mut self, gone: &PageSet) -> Result<(), MemoryError> {
        self.arena.unmap(&list(gone))
    }

    fn map(&mut self, new: &PageSet) -> Result<(), MemoryError> {
        self.arena.map(&list(new))?;
        // SAFETY: the pages were mapped in the line above.
        unsafe { self.oracle.cover(new) };
        Ok(())
    }

    unsafe fn fill(&mut self, placed: Placed<'_>, contents: &dyn Contents) -> Result<(), String> {
        // SAFETY: passed on.
        unsafe { self.oracle.fill(placed, contents) };
        Ok(())
    }

    fn settle(&mut self) -> Result<(), Loss> {
        Ok(())
    }

    unsafe fn clear(&mut self, placed: Placed<'_>) -> Result<(), String> {
        // SAFETY: passed on.
        unsafe { self.oracle.clear(placed) };
        Ok(())
    }

    unsafe fn check(&mut self, placed: Placed<'_>, contents: &dyn Contents) -> Result<Option<Damage>, Loss> {
        // SAFETY: passed on.
        Ok(unsafe { self.oracle.check(placed, contents) })
    }
}
