//! One rectangle of elements at its place in memory, walked row by row.

use crate::problem::contents::{Along, MAX_DIMS};
use crate::problem::{Dtype, View};

#[derive(Debug, Clone, Copy, Default)]
struct Axis {
    along: Along,
    /// Bytes from one index to the next.
    stride: i64,
}

/// Elements of one copy of an operand: all of them, or one box.
#[derive(Debug, Clone)]
pub struct Region {
    pub operand: usize,
    pub copy: u32,
    pub dtype: Dtype,
    pub element_bytes: i64,
    pub defined: bool,
    pub writes: bool,
    /// Lies in the memory of another operand.
    pub alias: bool,
    /// Address of the element with the lowest index in every dimension.
    start: u64,
    dims: usize,
    /// Dimensions of more than one element, smallest stride first.
    axes: [Axis; MAX_DIMS],
    walked: usize,
    lowest: [i64; MAX_DIMS],
}

/// Elements in a row: same distance from one to the next.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    pub address: u64,
    pub count: usize,
    /// Bytes from one element to the next.
    pub stride: i64,
    /// Dimensions along which the row runs: the first one fastest.
    pub along: &'a [Along],
}

impl Row<'_> {
    /// Address of an element of the row.
    pub fn at(&self, i: usize) -> u64 {
        self.address.wrapping_add_signed(self.stride * i as i64)
    }

    /// Index of an element of the row whose first has this index.
    pub fn index(&self, first: &[i64], i: usize) -> Vec<i64> {
        let mut index = first.to_vec();
        let mut steps = i as i64;
        for a in self.along {
            steps += index[a.dim] - a.first;
            index[a.dim] = a.first + steps % a.extent;
            steps /= a.extent;
        }
        index
    }
}

impl Region {
    /// The elements of a view, or of one box of it; `None` where there are none.
    pub fn new(view: &View, copy: u32, base: u64, ranges: Option<&[(i64, i64)]>) -> Option<Region> {
        let mut region = Region {
            operand: view.operand,
            copy,
            dtype: view.dtype?,
            element_bytes: view.element_bytes,
            defined: view.defined,
            writes: view.access.writes(),
            alias: view.alias.is_some(),
            start: base.wrapping_add_signed(view.offsets[copy as usize] * view.element_bytes),
            dims: view.dims.len(),
            axes: Default::default(),
            walked: 0,
            lowest: [0; MAX_DIMS],
        };
        for (dim, step) in view.dims.iter().enumerate().take(MAX_DIMS) {
            let (first, end) = ranges.map_or((0, step.extent), |r| r[dim]);
            if first >= end {
                return None;
            }
            let stride = step.stride * view.element_bytes;
            region.start = region.start.wrapping_add_signed(stride * first);
            region.lowest[dim] = first;
            if end - first > 1 {
                region.axes[region.walked] = Axis { along: Along { dim, first, extent: end - first }, stride };
                region.walked += 1;
            }
        }
        region.axes[..region.walked].sort_by_key(|a| a.stride.unsigned_abs());
        Some(region)
    }

    /// Elements in it.
    pub fn count(&self) -> u64 {
        self.axes().iter().map(|a| a.0 as u64).product()
    }

    /// Address of the element with the lowest index in every dimension.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Extent and stride in bytes of the dimensions of more than one element, in the order of [`rows`](Self::rows): the
    /// innermost first.
    pub fn axes(&self) -> Vec<(i64, i64)> {
        self.axes[..self.walked].iter().map(|a| (a.along.extent, a.stride)).collect()
    }

    /// Logical index of an element by its number in the order of [`rows`](Self::rows).
    pub fn index_of(&self, number: u64) -> Vec<i64> {
        let mut index = self.lowest[..self.dims].to_vec();
        let mut left = number as i64;
        for axis in &self.axes[..self.walked] {
            let along = axis.along;
            index[along.dim] = along.first + left % along.extent;
            left /= along.extent;
        }
        index
    }

    /// How many axes run on into each other: the distance from one element to the next is the same, over all their ends.
    fn joined(&self) -> usize {
        let axes = &self.axes[..self.walked];
        let run_on = axes.windows(2).take_while(|pair| pair[0].stride * pair[0].along.extent == pair[1].stride);
        (1 + run_on.count()).min(self.walked)
    }

    /// Calls `visit` with every row, of at most `most` elements, and the index of its first element: larger strides
    /// outside, ascending indices.
    pub fn rows(&self, most: usize, mut visit: impl FnMut(Row<'_>, &mut [i64])) {
        let mut index = self.lowest;
        let (inner, outer) = self.axes[..self.walked].split_at(self.joined());
        let mut along = [Along::default(); MAX_DIMS];
        along.iter_mut().zip(inner).for_each(|(along, axis)| *along = axis.along);
        let along = &along[..inner.len()];
        let stride = inner.first().map_or(0, |axis| axis.stride);
        let total: i64 = along.iter().map(|a| a.extent).product();
        let mut address = self.start;
        loop {
            let mut done = 0;
            while done < total {
                let count = (total - done).min(most.try_into().unwrap_or(i64::MAX));
                let mut rest = done;
                for a in along {
                    index[a.dim] = a.first + rest % a.extent;
                    rest /= a.extent;
                }
                let at = address.wrapping_add_signed(stride * done);
                visit(Row { address: at, count: count as usize, stride, along }, &mut index[..self.dims]);
                done += count;
            }
            let mut carried = 0;
            for Axis { along, stride } in outer {
                let at = &mut index[along.dim];
                *at += 1;
                address = address.wrapping_add_signed(*stride);
                if *at < along.first + along.extent {
                    break;
                }
                *at = along.first;
                address = address.wrapping_add_signed(-stride * along.extent);
                carried += 1;
            }
            if carried == outer.len() {
                return;
            }
        }
    }

    /// Calls `visit` with start and length of contiguous bytes that together are the elements.
    pub fn bytes(&self, mut visit: impl FnMut(u64, usize)) {
        let mut solid = self.clone();
        let mut piece = self.element_bytes;
        let mut joined = 0;
        for axis in &self.axes[..self.walked] {
            if axis.stride != piece {
                break;
            }
            piece *= axis.along.extent;
            joined += 1;
        }
        solid.axes.copy_within(joined..self.walked, 0);
        solid.walked -= joined;
        let piece = piece as usize;
        solid.rows(usize::MAX, |row, _| (0..row.count).for_each(|i| visit(row.at(i), piece)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Gaps, Step, Use};
    use proptest::prelude::*;

    fn view(dims: &[(i64, i64)]) -> View {
        View {
            operand: 0,
            dtype: Some(Dtype::F32),
            element_bytes: 4,
            dims: dims.iter().map(|&(extent, stride)| Step { extent, stride }).collect(),
            offsets: vec![3],
            access: Use::Read,
            defined: true,
            gaps: Gaps::None,
            alias: None,
        }
    }

    proptest! {
        #[test]
        fn rows_and_bytes_visit_every_element(dims in prop::collection::vec((1i64..6, -9i64..9), 0..4), most in 1usize..5,
                                              cut in prop::collection::vec((0i64..6, 0i64..6), 4), boxed in any::<bool>()) {
            let v = view(&dims);
            let ranges: Vec<(i64, i64)> = dims.iter().zip(&cut)
                .map(|(d, c)| if boxed { (c.0.min(d.0), c.1.min(d.0)) } else { (0, d.0) }).collect();
            let mut want = vec![vec![]];
            for r in &ranges {
                want = want.iter().flat_map(|w| (r.0..r.1).map(move |i| [&w[..], &[i]].concat())).collect();
            }
            let base = 1u64 << 40;
            let address = |index: &[i64]| base.wrapping_add_signed(4 * v.offset_of(0, index));
            let Some(region) = Region::new(&v, 0, base, Some(&ranges)) else {
                prop_assert!(want.is_empty());
                return Ok(());
            };
            let (mut seen, mut bytes) = (vec![], vec![]);
            region.rows(most, |row, index| {
                assert!(row.count <= most);
                for i in 0..row.count {
                    let at = row.index(index, i);
                    assert_eq!(row.at(i), address(&at));
                    assert_eq!(region.index_of(seen.len() as u64), at);
                    seen.push(at);
                }
            });
            region.bytes(|start, count| bytes.extend(start..start + count as u64));
            seen.sort();
            let mut touched: Vec<u64> = want.iter().flat_map(|w| address(w)..address(w) + 4).collect();
            touched.sort_unstable();
            bytes.sort_unstable();
            prop_assert_eq!(seen, want);
            prop_assert_eq!(bytes, touched);
        }
    }
}
