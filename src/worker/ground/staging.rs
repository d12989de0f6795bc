//! What a device needs to fill and compare a case: its regions, and their values one beside the other.

use crate::problem::Contents;
use crate::worker::oracle::{Placed, Region, regions, write_values};

/// Elements whose values are computed at once.
const ROW: usize = 4096;
/// Values begin at multiples of so many bytes.
const ALIGN: u64 = 16;
/// Bytes of a region's description; see `Region` in device/cuda/kernels/oracle.cu.
pub const REGION_BYTES: u64 = 7 * 8 + 2 * 8 * 8;
const NONE: u64 = u64::MAX;

/// A case as the device reads it.
#[derive(Debug, Default)]
pub struct Staging {
    pub regions: Vec<Region>,
    /// Per region: where its values before and after the run begin, in bytes.
    places: Vec<(Option<u64>, Option<u64>)>,
    /// Bytes of all values.
    pub bytes: u64,
    /// Elements of the largest region.
    pub most: u64,
    /// Output elements.
    pub compared: u64,
}

impl Staging {
    /// Plans where the values of a case go.
    pub fn plan(&mut self, placed: Placed<'_>) {
        self.regions.clear();
        self.places.clear();
        (self.bytes, self.most, self.compared) = (0, 0, 0);
        regions(placed, &mut self.regions);
        for region in &self.regions {
            let count = region.count();
            let mut room = |wanted: bool| {
                wanted.then(|| {
                    let at = self.bytes;
                    self.bytes = (at + count * region.element_bytes as u64).next_multiple_of(ALIGN);
                    at
                })
            };
            self.places.push((room(region.defined), room(region.writes)));
            self.most = self.most.max(count);
            self.compared += if region.writes { count } else { 0 };
        }
    }

    /// Writes the descriptions and the values; `out` has [`total_bytes`](Self::total_bytes) bytes. `written` tells whether an
    /// operand, or the one it lies in, is written by the run.
    pub fn write(&self, contents: &dyn Contents, written: impl Fn(usize) -> bool, out: &mut [u8]) {
        let (head, values) = out.split_at_mut((self.regions.len() as u64 * REGION_BYTES) as usize);
        let mut position = 0;
        let mut buffer = vec![0.0; ROW];
        for ((region, (before, after)), head) in
            self.regions.iter().zip(&self.places).zip(head.chunks_mut(REGION_BYTES as usize))
        {
            let shared = !region.writes && region.alias && written(region.operand);
            describe(region, position, *before, *after, shared, head);
            position += region.count();
            for (at, after) in [(before, false), (after, true)] {
                let Some(at) = at else { continue };
                let mut place = values[*at as usize..].as_mut_ptr().expose_provenance() as u64;
                region.rows(ROW, |row, index| {
                    let values = &mut buffer[..row.count];
                    if after {
                        contents.expected_run(region.operand, region.copy, index, row.along, values);
                    } else {
                        contents.input_run(region.operand, region.copy, index, row.along, values);
                    }
                    // SAFETY: the values of a region have room for all of its elements, by `plan`; nobody else looks.
                    unsafe { write_values(region, values, place) };
                    place += row.count as u64 * region.element_bytes as u64;
                });
            }
        }
    }

    /// Bytes of descriptions and values.
    pub fn total_bytes(&self) -> u64 {
        self.regions.len() as u64 * REGION_BYTES + self.bytes
    }

    /// The region and the logical index of an element, by its position among those of all regions.
    pub fn element(&self, mut position: u64) -> Option<(&Region, Vec<i64>)> {
        for region in &self.regions {
            if position < region.count() {
                return Some((region, region.index_of(position)));
            }
            position -= region.count();
        }
        None
    }
}

fn describe(region: &Region, position: u64, before: Option<u64>, after: Option<u64>, shared: bool, out: &mut [u8]) {
    let part = if region.dtype.is_float() { region.dtype.real().bytes() as u32 } else { 0 };
    let flags = u32::from(region.defined || region.writes) | u32::from(shared) << 1;
    let words = [region.start(), region.count(), position, before.unwrap_or(NONE), after.unwrap_or(NONE)];
    let shorts = [region.element_bytes as u32, part, region.axes().len() as u32, flags];
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        out[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    words.iter().for_each(|w| put(&w.to_le_bytes()));
    shorts.iter().for_each(|s| put(&s.to_le_bytes()));
    let mut axes = region.axes().to_vec();
    axes.resize(8, (1, 0));
    axes.iter().for_each(|a| put(&a.0.to_le_bytes()));
    axes.iter().for_each(|a| put(&a.1.to_le_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::protocol::ArenaSpan;
    use crate::problem::{Builtin, Case, Instance, Placement, Value};
    use crate::worker::Layout;
    use crate::worker::oracle::writes;
    use crate::worker::pages::PageSet;

    fn instance(problem: &str, text: &str) -> (Builtin, Instance) {
        let builtin = Builtin::find(problem).unwrap();
        let pairs = text.split_whitespace().map(|w| w.split_once('=').unwrap());
        let named = pairs.map(|(n, v)| (n.to_owned(), Value::from_word(v))).collect();
        let params = builtin.problem().complete(&named).unwrap();
        let case = Case { params, knobs: Default::default(), placement: Placement::END };
        (builtin, builtin.problem().instance(case).unwrap())
    }

    /// Words of a description, as the kernels read it.
    fn word(head: &[u8], at: usize) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|i| head[8 * at + i]))
    }

    /// Every element of every region, through the description alone: where the kernels would find it, and its values.
    fn check(problem: &str, text: &str) {
        let (builtin, instance) = instance(problem, text);
        let arena = ArenaSpan { base: 1 << 40, len: 1 << 46, page_bytes: 2 << 20 };
        let layout = Layout::plan(&arena, &[&instance]).unwrap();
        let pages = PageSet::default();
        let placed = Placed { layout: &layout, index: 0, instance: &instance, boxes: None, pages: &pages };
        let contents = (builtin.contents)(&instance, 3);
        let mut staging = Staging::default();
        staging.plan(placed);
        let mut out = vec![0; staging.total_bytes() as usize];
        staging.write(&*contents, |operand| writes(placed, operand), &mut out);
        let (heads, values) = out.split_at((staging.regions.len() as u64 * REGION_BYTES) as usize);
        let mut position = 0;
        for (region, head) in staging.regions.iter().zip(heads.chunks(REGION_BYTES as usize)) {
            let view = instance.view(region.operand).unwrap();
            assert_eq!((word(head, 1), word(head, 2)), (region.count(), position));
            for number in 0..region.count() {
                let (found, index) = staging.element(position + number).unwrap();
                assert_eq!((found.operand, found.copy), (region.operand, region.copy));
                // As `element` in oracle.cu.
                let (mut address, mut left) = (word(head, 0), number);
                let axes = (word(head, 6) & 0xffff_ffff) as usize;
                for axis in 0..axes {
                    let extent = word(head, 7 + axis);
                    let quotient = if axis + 1 < axes { left / extent } else { 0 };
                    address = address.wrapping_add(word(head, 15 + axis).wrapping_mul(left - quotient * extent));
                    left = quotient;
                }
                let base = layout.base(0, region.operand, region.copy);
                let offset = view.offset_of(region.copy, &index) * view.element_bytes;
                assert_eq!(address, base.wrapping_add_signed(offset), "{problem} {text} {index:?}");
                let read = |at: u64| {
                    let at = (at + number * region.element_bytes as u64) as usize;
                    region.dtype.decode(&values[at..])
                };
                if word(head, 3) != NONE {
                    assert_eq!(read(word(head, 3)), contents.input(region.operand, region.copy, &index));
                }
                assert_eq!(word(head, 3) != NONE, region.defined);
                if word(head, 4) != NONE {
                    assert_eq!(read(word(head, 4)), contents.expected(region.operand, region.copy, &index));
                }
                assert_eq!(word(head, 4) != NONE, region.writes);
            }
            position += region.count();
        }
        assert!(staging.element(position).is_none());
    }

    #[test]
    fn kernels_find_every_element_and_its_values_by_the_description() {
        check("gemm", "m=5 n=4 k=3 lda=9 ldb=3 ldc=5 beta=1");
        check("gemm", "transA=T transB=T m=2 n=3 k=4 batch=3 strideA=0 strideC=40 dtype=bf16 out=D");
        check("gemm", "m=1 n=1 k=7 dtype=c64 offA=3");
        check("allgather", "ranks=3 M=2 N=5 strideOut=8 inplace=true");
    }
}
