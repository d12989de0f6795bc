//! The arena of the host: one reservation without access, in which pages are mapped where a case needs them.

use std::io;

use super::pages::Pages;
use super::system::{close_pages, mapping_limit_reached, open_pages, page_bytes, protect_pages, release, reserve};
use crate::device::{Arena, MemoryError, MemoryKind, PageRange, Protection, end_in};

/// How often pages were mapped and given back: one entry is one range of a call. Pages that are
/// mapped anew count in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    pub mapped: u64,
    pub unmapped: u64,
}

/// A reservation of host addresses, given back when it is dropped: no address in it means anything after that.
#[derive(Debug)]
pub struct CpuArena {
    base: u64,
    len: u64,
    page_bytes: u64,
    mapped: Pages,
    entries: Entries,
}

impl CpuArena {
    /// What to ask for: half of the addresses that x86-64 and aarch64 give a process by default.
    pub const WANTED_BYTES: u64 = 64 << 40;

    /// Reserves `wanted` bytes of addresses, or the largest of its halves, quarters, ... that the system grants, but
    /// `least` bytes at least. Both are rounded up to pages. A reservation takes no memory.
    ///
    /// # Errors
    /// [`MemoryError::Reserve`] if even `least` bytes are refused, as they are under a low `ulimit -v`.
    pub fn reserve(wanted: u64, least: u64) -> Result<CpuArena, MemoryError> {
        let page_bytes = page_bytes();
        let least = least.max(1).next_multiple_of(page_bytes);
        let mut len = wanted.next_multiple_of(page_bytes).max(least);
        loop {
            match reserve(len) {
                Ok(base) => {
                    return Ok(CpuArena {
                        base,
                        len,
                        page_bytes,
                        mapped: Pages::default(),
                        entries: Entries::default(),
                    });
                }
                Err(source) if len == least => return Err(MemoryError::Reserve { least, source }),
                Err(_) => len = (len / 2).next_multiple_of(page_bytes).max(least),
            }
        }
    }

    /// What was mapped and unmapped since the reservation.
    pub fn entries(&self) -> Entries {
        self.entries
    }

    /// Checks a range and gives its end.
    fn end_of(&self, range: PageRange) -> Result<u64, MemoryError> {
        end_in(range, self.base, self.len, self.page_bytes)
    }

    fn check(&self, ranges: &[PageRange]) -> Result<(), MemoryError> {
        ranges.iter().try_for_each(|&range| self.end_of(range).map(drop))
    }

    /// Takes access and memory away from one checked range that is not empty.
    fn close(&mut self, range: PageRange) -> Result<(), MemoryError> {
        let PageRange { start, bytes } = range;
        // SAFETY: the range was checked to be pages of this reservation, to which no reference points: cases use raw
        // addresses, and none of them runs while the arena is borrowed mutably.
        unsafe { close_pages(start, bytes) }.map_err(|source| MemoryError::Unmap { start, bytes, source })?;
        if self.mapped.meets(start, start + bytes) {
            self.mapped.remove(start, start + bytes);
            self.entries.unmapped += 1;
        }
        Ok(())
    }

    /// Maps one checked range that is not empty.
    fn open(&mut self, range: PageRange) -> Result<(), MemoryError> {
        let PageRange { start, bytes } = range;
        if self.mapped.meets(start, start + bytes) {
            self.close(range)?;
        }
        // SAFETY: the range was checked to be pages of this reservation.
        unsafe { open_pages(start, bytes) }
            .map_err(|error| refused(range, error, |source| MemoryError::Map { start, bytes, source }))?;
        self.mapped.insert(start, start + bytes);
        self.entries.mapped += 1;
        Ok(())
    }

    /// Leaves none of the checked ranges mapped after the one at `failed` could not be. That one is closed in any case,
    /// because the kernel may have opened some of it.
    fn roll_back(&mut self, ranges: &[PageRange], failed: usize) -> Result<(), MemoryError> {
        self.close(ranges[failed])?;
        for &range in ranges {
            if range.bytes > 0 && self.mapped.meets(range.start, range.start + range.bytes) {
                self.close(range)?;
            }
        }
        Ok(())
    }
}

impl Arena for CpuArena {
    fn page_bytes(&self) -> u64 {
        self.page_bytes
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
        for (index, &range) in ranges.iter().enumerate() {
            if range.bytes == 0 {
                continue;
            }
            if let Err(error) = self.open(range) {
                self.roll_back(ranges, index)?;
                return Err(error);
            }
        }
        Ok(())
    }

    fn unmap(&mut self, ranges: &[PageRange]) -> Result<(), MemoryError> {
        self.check(ranges)?;
        for &range in ranges.iter().filter(|range| range.bytes > 0) {
            self.close(range)?;
        }
        Ok(())
    }

    fn protect(&mut self, range: PageRange, protection: Protection) -> Result<(), MemoryError> {
        let end = self.end_of(range)?;
        let PageRange { start, bytes } = range;
        if bytes == 0 {
            return Ok(());
        }
        if !self.mapped.covers(start, end) {
            return Err(MemoryError::NotMapped { start, bytes });
        }
        let access = match protection {
            Protection::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
            Protection::Read => libc::PROT_READ,
        };
        // SAFETY: the range was checked to be pages of this reservation, to which no reference points.
        unsafe { protect_pages(start, bytes, access) }
            .map_err(|error| refused(range, error, |source| MemoryError::Protect { start, bytes, source }))
    }
}

impl Drop for CpuArena {
    fn drop(&mut self) {
        // SAFETY: this is the reservation that `reserve` made, and whoever kept an address of it was told that it ends here.
        unsafe { release(self.base, self.len) };
    }
}

/// Names the reason for a refusal. ENOMEM alone does not tell want of memory from too many mappings.
fn refused(range: PageRange, source: io::Error, otherwise: impl FnOnce(io::Error) -> MemoryError) -> MemoryError {
    let PageRange { start, bytes } = range;
    match source.raw_os_error() {
        Some(libc::ENOMEM | libc::EAGAIN) => match mapping_limit_reached() {
            Some(limit) => MemoryError::TooManyMappings { start, bytes, limit },
            None => MemoryError::OutOfMemory { start, bytes, source },
        },
        _ => otherwise(source),
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::fs;
    use std::time::Instant;

    use super::super::test_child::{Child, in_fresh_process, read_byte, resident_bytes, set_limit, write_byte};
    use super::*;
    use crate::device::Access;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;
    const TIB: u64 = 1 << 40;

    fn arena() -> CpuArena {
        CpuArena::reserve(TIB, TIB).unwrap()
    }

    fn page(arena: &CpuArena, index: u64) -> PageRange {
        PageRange { start: arena.base() + index * arena.page_bytes(), bytes: arena.page_bytes() }
    }

    #[test]
    fn a_mapped_page_holds_what_is_written_and_starts_at_zero() {
        let mut arena = arena();
        let range = page(&arena, 12345);
        for _ in 0..2 {
            arena.map(&[range]).unwrap();
            assert_eq!(read_byte(range.start + 7), 0);
            write_byte(range.start + 7, 9);
            assert_eq!(read_byte(range.start + 7), 9);
        }
        arena.unmap(&[range]).unwrap();
        assert_eq!(arena.entries(), Entries { mapped: 2, unmapped: 2 });
    }

    #[test]
    fn a_touch_after_unmap_faults_again() {
        let mut arena = arena();
        let range = page(&arena, 99);
        arena.map(&[range]).unwrap();
        write_byte(range.start, 1);
        arena.unmap(&[range]).unwrap();
        let fault = Child::new().fault(|| read_byte(range.start + 5));
        assert_eq!((fault.address, fault.access), (Some(range.start + 5), Some(Access::Read)));
    }

    #[test]
    fn pages_beside_a_mapped_one_fault() {
        let mut arena = arena();
        let range = page(&arena, 50);
        arena.map(&[range]).unwrap();
        for address in [range.start - 1, range.start + range.bytes] {
            let fault = Child::new().fault(|| write_byte(address, 1));
            assert_eq!((fault.address, fault.access), (Some(address), Some(Access::Write)));
        }
    }

    #[test]
    fn a_read_only_page_faults_on_stores_alone() {
        let mut arena = arena();
        let range = page(&arena, 3);
        arena.map(&[range]).unwrap();
        write_byte(range.start, 42);
        arena.protect(range, Protection::Read).unwrap();
        assert_eq!(read_byte(range.start), 42);
        let fault = Child::new().fault(|| write_byte(range.start + 1, 1));
        assert_eq!((fault.address, fault.access), (Some(range.start + 1), Some(Access::Write)));
        arena.protect(range, Protection::ReadWrite).unwrap();
        write_byte(range.start, 43);
        assert_eq!(read_byte(range.start), 43);
    }

    #[test]
    fn unmapping_gives_memory_back() {
        in_fresh_process("device::cpu::arena::tests::unmapping_gives_memory_back", || {
            let mut arena = arena();
            let range = PageRange { start: arena.base() + GIB, bytes: 64 * MIB };
            let before = resident_bytes();
            arena.map(&[range]).unwrap();
            (0..range.bytes).step_by(4096).for_each(|offset| write_byte(range.start + offset, 1));
            assert!(resident_bytes() >= before + 60 * MIB);
            arena.unmap(&[range]).unwrap();
            assert!(resident_bytes() < before + 8 * MIB);
        });
    }

    #[test]
    fn wrong_ranges_are_refused_and_change_nothing() {
        let mut arena = arena();
        let good = page(&arena, 0);
        let base = arena.base();
        let wrong = [
            PageRange { start: base + 1, bytes: good.bytes },
            PageRange { start: base, bytes: 1 },
            PageRange { start: base - good.bytes, bytes: good.bytes },
            PageRange { start: base, bytes: TIB + good.bytes },
            PageRange { start: base, bytes: 0_u64.wrapping_sub(good.bytes) },
        ];
        for range in wrong {
            assert!(arena.map(&[good, range]).is_err(), "{range:?}");
            assert!(arena.unmap(&[good, range]).is_err(), "{range:?}");
            assert!(arena.protect(range, Protection::Read).is_err(), "{range:?}");
        }
        assert_eq!(arena.entries(), Entries::default());
        assert!(matches!(arena.protect(good, Protection::Read), Err(MemoryError::NotMapped { .. })));
    }

    #[test]
    fn half_as_much_is_reserved_until_the_system_grants_it() {
        let name = "device::cpu::arena::tests::half_as_much_is_reserved_until_the_system_grants_it";
        in_fresh_process(name, || {
            set_limit(libc::RLIMIT_AS, TIB);
            let arena = CpuArena::reserve(CpuArena::WANTED_BYTES, GIB).unwrap();
            assert_eq!(arena.len(), TIB / 2);
            drop(arena);
            assert_eq!(CpuArena::reserve(1, 1).unwrap().len(), page_bytes());
            let odd = CpuArena::reserve(3 * TIB, 900 * GIB).unwrap();
            assert_eq!(odd.len(), 900 * GIB, "the last try is for `least` itself");
        });
    }

    #[test]
    fn a_low_limit_on_addresses_is_named() {
        in_fresh_process("device::cpu::arena::tests::a_low_limit_on_addresses_is_named", || {
            set_limit(libc::RLIMIT_AS, 100 * MIB);
            let error = CpuArena::reserve(CpuArena::WANTED_BYTES, GIB).unwrap_err();
            assert!(matches!(error, MemoryError::Reserve { least: GIB, .. }));
            assert!(error.to_string().contains("ulimit -v"));
            assert!(error.source().is_some());
        });
    }

    #[test]
    fn want_of_memory_is_told_from_too_many_mappings() {
        let name = "device::cpu::arena::tests::want_of_memory_is_told_from_too_many_mappings";
        in_fresh_process(name, || {
            set_limit(libc::RLIMIT_DATA, GIB);
            let mut arena = arena();
            let small = page(&arena, 0);
            let large = PageRange { start: arena.base() + GIB, bytes: 2 * GIB };
            let later = page(&arena, 7);
            arena.map(&[later]).unwrap();
            let error = arena.map(&[small, large, later]).unwrap_err();
            assert!(matches!(error, MemoryError::OutOfMemory { bytes, .. } if bytes == large.bytes), "{error}");
            for address in [small.start, large.start, later.start] {
                let fault = Child::new().fault(|| write_byte(address, 1));
                assert_eq!(fault.address, Some(address), "nothing stays mapped after an error");
            }
        });
    }

    #[test]
    fn too_many_mappings_are_named_and_rolled_back() {
        let name = "device::cpu::arena::tests::too_many_mappings_are_named_and_rolled_back";
        in_fresh_process(name, || {
            let mut arena = arena();
            let limit: u64 = fs::read_to_string("/proc/sys/vm/max_map_count").unwrap().trim().parse().unwrap();
            if limit > 1 << 20 {
                return; // Some systems set it to 2^31: not to be reached in a test.
            }
            let fragments: Vec<_> = (0..limit).map(|index| page(&arena, 2 * index)).collect();
            let error = arena.map(&fragments).unwrap_err();
            assert!(matches!(error, MemoryError::TooManyMappings { .. }), "{error}");
            assert!(arena.entries().mapped > limit / 3);
            for index in [0, arena.entries().mapped - 1, arena.entries().mapped] {
                let address = fragments[index as usize].start;
                assert_eq!(Child::new().fault(|| write_byte(address, 1)).address, Some(address));
            }
            arena.map(&fragments[..100]).unwrap();
        });
    }

    #[test]
    #[ignore = "a measurement: cargo test --release --lib arena_speed -- --ignored --nocapture"]
    fn arena_speed() {
        let mut arena = arena();
        let fragments: Vec<_> = (0..64).map(|index| page(&arena, index << 19)).collect();
        let begin = Instant::now();
        let rounds = 300;
        for _ in 0..rounds {
            arena.map(&fragments).unwrap();
            fragments.iter().for_each(|range| write_byte(range.start, 1));
            arena.unmap(&fragments).unwrap();
        }
        let entries = rounds * fragments.len() as u32;
        println!("map, touch, unmap one page: {:?}", begin.elapsed() / entries);
        let begin = Instant::now();
        let child = Child::new();
        for _ in 0..1000 {
            child.fault(|| write_byte(fragments[0].start, 1));
        }
        println!("fork, fault, record, wait: {:?}", begin.elapsed() / 1000);
    }
}
