//! The parts of an ELF file that turn an offset in it into a name.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use object::read::ReadCache;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SectionKind, SegmentFlags, SymbolKind, elf};

/// The largest page, in bytes, that a linker on Linux aligns segments to.
const LARGEST_PAGE: u64 = 65_536;

/// What changes when a file is replaced or rewritten.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileVersion {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl FileVersion {
    pub(super) fn of(path: &Path) -> io::Result<FileVersion> {
        let metadata = fs::metadata(path)?;
        Ok(FileVersion {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        })
    }
}

/// Segments and code symbols of one file.
#[derive(Debug)]
pub(super) struct Image {
    segments: Vec<Segment>,
    symbols: Vec<Symbol>,
}

/// A PT_LOAD header.
#[derive(Debug)]
struct Segment {
    file_offset: u64,
    file_bytes: u64,
    address: u64,
    executable: bool,
}

/// A code symbol; the list is sorted by `start`, and by how good the name is among equal starts.
#[derive(Debug)]
struct Symbol {
    start: u64,
    /// First address after it. Without a size: where the next symbol starts, or where its section or
    /// the symbol around it ends.
    end: u64,
    sized: bool,
    /// The largest `end` of this symbol and all before it: where a search backwards may stop.
    reach: u64,
    name: Box<str>,
}

impl Image {
    /// Reads headers and symbols, not the whole file, which may have gigabytes.
    pub(super) fn read(path: &Path) -> io::Result<Image> {
        let data = ReadCache::new(File::open(path)?);
        let file = object::File::parse(&data).map_err(io::Error::other)?;
        let segments = file.segments().map(|segment| segment_of(&segment));
        Ok(Image { segments: segments.collect(), symbols: symbols_of(&file) })
    }

    /// The address, in the file's own address space, of the code at an offset in the file.
    ///
    /// Mappings are rounded to pages, so the pages at a segment's ends show bytes of its neighbours
    /// in the file; code is looked for in executable segments first, and within their bytes first.
    pub(super) fn address_of(&self, file_offset: u64) -> Option<u64> {
        let find = |executable: bool, round: u64| {
            self.segments.iter().find_map(|segment| {
                let start = segment.file_offset & !(round - 1);
                let end = segment.file_offset.checked_add(segment.file_bytes)?;
                let holds = start <= file_offset && file_offset < end.checked_next_multiple_of(round)?;
                (holds && segment.executable == executable).then(|| {
                    let before = segment.address.wrapping_sub(segment.file_offset);
                    before.wrapping_add(file_offset)
                })
            })
        };
        find(true, 1).or_else(|| find(true, LARGEST_PAGE)).or_else(|| find(false, 1))
    }

    /// The name of the symbol around an address, and the distance from its start. A symbol whose
    /// size is known goes before one that merely lies nearest below.
    pub(super) fn symbol_at(&self, address: u64) -> Option<(&str, u64)> {
        let after = self.symbols.partition_point(|symbol| symbol.start <= address);
        let around = self.symbols[..after]
            .iter()
            .rev()
            .take_while(|symbol| symbol.reach > address)
            .filter(|symbol| symbol.end > address);
        let mut found: Option<&Symbol> = None;
        for symbol in around {
            // Backwards, so the last one of equal starts comes first and the best name last.
            match found {
                Some(best) if best.start != symbol.start && best.sized => break,
                Some(best) if best.start != symbol.start && !symbol.sized => continue,
                _ => found = Some(symbol),
            }
        }
        found.map(|symbol| (&*symbol.name, address - symbol.start))
    }
}

fn segment_of<'data>(segment: &impl ObjectSegment<'data>) -> Segment {
    let (file_offset, file_bytes) = segment.file_range();
    let executable = match segment.flags() {
        SegmentFlags::Elf { p_flags } => p_flags & elf::PF_X != 0,
        _ => false,
    };
    Segment { file_offset, file_bytes, address: segment.address(), executable }
}

/// The code symbols of `.symtab`, or of `.dynsym` in a stripped file.
fn symbols_of<'data>(file: &impl Object<'data>) -> Vec<Symbol> {
    let of = |symbol| Candidate::of(file, &symbol);
    let mut candidates: Vec<Candidate> = file.symbols().filter_map(of).collect();
    if candidates.is_empty() {
        candidates = file.dynamic_symbols().filter_map(of).collect();
    }
    table_of(candidates)
}

/// Sorts, drops aliases and works out the ends.
fn table_of(mut candidates: Vec<Candidate>) -> Vec<Symbol> {
    candidates.sort_by(|a, b| a.order().cmp(&b.order()));
    candidates.dedup_by(|alias, kept| alias.start == kept.start && (alias.size == 0 || alias.size == kept.size));
    let next_starts = candidates.iter().skip(1).map(|next| next.start).chain([u64::MAX]);
    let mut reach = 0;
    let mut symbols = Vec::with_capacity(candidates.len());
    for (candidate, next_start) in candidates.iter().zip(next_starts) {
        let end = match candidate.size {
            0 if reach > candidate.start => reach.min(next_start),
            0 => candidate.section_end.min(next_start),
            size => candidate.start.saturating_add(size),
        };
        reach = end.max(reach);
        symbols.push(Symbol {
            start: candidate.start,
            end,
            sized: candidate.size > 0,
            reach,
            name: candidate.name.into(),
        });
    }
    symbols
}

/// A code symbol as the file has it.
struct Candidate<'data> {
    start: u64,
    size: u64,
    section_end: u64,
    global: bool,
    name: &'data str,
}

impl<'data> Candidate<'data> {
    fn of(file: &impl Object<'data>, symbol: &impl ObjectSymbol<'data>) -> Option<Candidate<'data>> {
        // Assembly kernels may have no type.
        if !matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Unknown) {
            return None;
        }
        let section = file.section_by_index(symbol.section_index()?).ok()?;
        let name = symbol.name().ok()?;
        if section.kind() != SectionKind::Text || name.is_empty() || name.starts_with('$') {
            return None;
        }
        Some(Candidate {
            start: symbol.address(),
            size: symbol.size(),
            section_end: section.address().saturating_add(section.size()),
            global: symbol.is_global(),
            name,
        })
    }

    /// By address; among equal addresses the best name first: with a size, global, no leading
    /// underscore, short.
    fn order(&self) -> (u64, (bool, bool, bool), usize, &'data str) {
        let plain = (self.size == 0, !self.global, self.name.starts_with('_'));
        (self.start, plain, self.name.len(), self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(name: &'static str, start: u64, size: u64, global: bool) -> Candidate<'static> {
        Candidate { start, size, section_end: 0x2000, global, name }
    }

    fn image(candidates: Vec<Candidate>) -> Image {
        Image { segments: Vec::new(), symbols: table_of(candidates) }
    }

    #[test]
    fn a_size_decides_and_the_nearest_below_is_second_best() {
        let image = image(vec![
            candidate("outer", 0x1000, 0x100, true),
            candidate("inner", 0x1020, 0x10, false),
            candidate("label", 0x1040, 0, false),
            candidate("assembly", 0x1200, 0, true),
            candidate("later_assembly", 0x1300, 0, true),
            candidate("last", 0x1800, 0x10, true),
        ]);
        let cases = [
            (0xfff, None),
            (0x1000, Some(("outer", 0))),
            (0x1021, Some(("inner", 1))),
            (0x1030, Some(("outer", 0x30))),
            (0x1050, Some(("outer", 0x50))),
            (0x1100, None),
            (0x12ff, Some(("assembly", 0xff))),
            (0x1310, Some(("later_assembly", 0x10))),
            (0x1810, None),
        ];
        for (address, expected) in cases {
            assert_eq!(image.symbol_at(address), expected, "{address:#x}");
        }
    }

    #[test]
    fn a_symbol_without_a_size_ends_with_its_section() {
        let image = image(vec![candidate("only", 0x1f00, 0, true)]);
        assert_eq!(image.symbol_at(0x1fff), Some(("only", 0xff)));
        assert_eq!(image.symbol_at(0x2000), None);
    }

    #[test]
    fn of_several_names_the_plain_global_one_is_told() {
        let image = image(vec![
            candidate("__cosh", 0x1000, 8, true),
            candidate("aa", 0x1000, 8, false),
            candidate("cosh", 0x1000, 8, true),
            candidate("coshf64", 0x1000, 8, true),
            candidate("c", 0x1000, 0, true),
        ]);
        assert_eq!(image.symbol_at(0x1004), Some(("cosh", 4)));
    }

    #[test]
    fn offsets_become_addresses_through_the_executable_segment() {
        let segment =
            |file_offset, file_bytes, address, executable| Segment { file_offset, file_bytes, address, executable };
        // As lld lays them out: file offset and address differ, and segments share pages of the file.
        let image = Image {
            segments: vec![
                segment(0, 0x1234, 0, false),
                segment(0x1234, 0x2000, 0x2_1234, true),
                segment(0x3234, 0x100, 0x4_3234, false),
            ],
            symbols: Vec::new(),
        };
        assert_eq!(image.address_of(0x1234), Some(0x2_1234));
        assert_eq!(image.address_of(0x3233), Some(0x2_3233));
        assert_eq!(image.address_of(0x1000), Some(0x2_1000));
    }
}
