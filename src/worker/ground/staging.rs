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
