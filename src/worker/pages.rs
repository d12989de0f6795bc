//! Which pages a case touches: sorted ranges, their union, and what changes from one layout to the next.

use super::layout::Layout;
use crate::device::PageRange;
use crate::problem::{Flush, Instance, View};
use crate::target::IndexBox;

/// Most page ranges that one case may touch: Linux allows 65,530 mappings, and a range between two holes takes two.
pub const MAX_RANGES: usize = 20_000;
/// Most contiguous pieces that are walked to find the ranges of one view; pieces may share pages.
const MAX_PIECES: i128 = 8 * MAX_RANGES as i128;

/// Disjoint page ranges in order of address, no two of them adjacent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageSet {
    /// First address and the one after the last, multiples of the page size.
    ranges: Vec<(u64, u64)>,
}

impl PageSet {
    /// The union of byte ranges, each widened to whole pages. Ranges may overlap and come in any order.
    pub fn of_bytes(mut bytes: Vec<(u64, u64)>, page: u64) -> PageSet {
        for range in &mut bytes {
            *range = (range.0 / page * page, range.1.next_multiple_of(page));
        }
        bytes.retain(|r| r.0 < r.1);
        bytes.sort_unstable();
        let mut ranges: Vec<(u64, u64)> = Vec::with_capacity(bytes.len());
        for (start, end) in bytes {
            match ranges.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => ranges.push((start, end)),
            }
        }
        PageSet { ranges }
    }

    pub fn union(&self, other: &PageSet) -> PageSet {
        let mut all = self.ranges.clone();
        all.extend_from_slice(&other.ranges);
        // Already whole pages.
        PageSet::of_bytes(all, 1)
    }

    /// The pages of `self` that are not in `other`.
    pub fn minus(&self, other: &PageSet) -> PageSet {
        let mut ranges = Vec::new();
        let mut from = 0;
        for &(mut start, end) in &self.ranges {
            while from < other.ranges.len() && other.ranges[from].1 <= start {
                from += 1;
            }
            for &(cut_start, cut_end) in &other.ranges[from..] {
                if cut_start >= end {
                    break;
                }
                if cut_start > start {
                    ranges.push((start, cut_start));
                }
                start = start.max(cut_end);
            }
            if start < end {
                ranges.push((start, end));
            }
        }
        PageSet { ranges }
    }

    /// Every range widened by so many bytes (a multiple of the page size) on both sides, within `low..high`.
    pub fn widened(&self, by: u64, low: u64, high: u64) -> PageSet {
        let wide = |&(start, end): &(u64, u64)| (start.saturating_sub(by).max(low), (end + by).min(high));
        PageSet::of_bytes(self.ranges.iter().map(wide).collect(), 1)
    }

    /// Number of ranges.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub fn bytes(&self) -> u64 {
        self.ranges.iter().map(|r| r.1 - r.0).sum()
    }

    pub fn iter(&self) -> impl Iterator<Item = PageRange> + '_ {
        self.ranges.iter().map(|&(start, end)| PageRange { start, bytes: end - start })
    }

    pub fn contains(&self, address: u64) -> bool {
        let after = self.ranges.partition_point(|r| r.0 <= address);
        after > 0 && address < self.ranges[after - 1].1
    }
}

/// The pages that a case touches: those of its index boxes (of whole views without `boxes`), of its padding, and of
/// the addresses in `also`.
///
/// # Errors
/// A reason to skip the case: too many ranges, or more than `memory` bytes.
pub fn of_case(
    layout: &Layout,
    case: usize,
    instance: &Instance,
    boxes: Option<&[IndexBox]>,
    also: &[u64],
    memory: u64,
) -> Result<PageSet, String> {
    let page = layout.page_bytes();
    let mut bytes: Vec<(u64, u64)> = also.iter().map(|a| (a / page * page, a / page * page + page)).collect();
    for view in instance.views.iter().flatten().filter(|v| !v.is_empty()) {
        for copy in 0..view.copies() {
            let base = layout.base(case, view.operand, copy);
            match boxes {
                None => pieces(view, copy, base, page, None, &mut bytes),
                Some(boxes) => boxes
                    .iter()
                    .filter(|b| (b.operand, b.copy) == (view.operand, copy))
                    .try_for_each(|b| pieces(view, copy, base, page, Some(&b.ranges), &mut bytes)),
            }
            .map_err(|count| too_many(&instance.problem.operands[view.operand].name, count))?;
            if bytes.len() as i128 > MAX_PIECES {
                return Err(too_many("all together", bytes.len() as i128));
            }
            padding(instance, view, copy, base, &mut bytes);
        }
    }
    let set = PageSet::of_bytes(bytes, page);
    if set.len() > MAX_RANGES {
        return Err(format!("{} page ranges are more than the {MAX_RANGES} that can be mapped at once", set.len()));
    }
    if set.bytes() > memory {
        return Err(format!("{} bytes to map are above --max-memory {memory}", set.bytes()));
    }
    Ok(set)
}

fn too_many(operand: &str, count: i128) -> String {
    format!("operands ({operand}) lie in {count} pieces, more than the {MAX_PIECES} that are walked")
}

/// The promised padding beside the operand's extreme element.
fn padding(instance: &Instance, view: &View, copy: u32, base: u64, bytes: &mut Vec<(u64, u64)>) {
    let place = instance.case.placement;
    let pad = u64::from(place.pad);
    if pad == 0 || view.alias.is_some() {
        return;
    }
    match place.flush {
        Flush::End => {
            let end = base.wrapping_add_signed((view.highest(copy) + 1) * view.element_bytes);
            bytes.push((end, end + pad));
        }
        Flush::Start => {
            let start = base.wrapping_add_signed(view.lowest(copy) * view.element_bytes);
            bytes.push((start - pad, start));
        }
    }
}

/// Pushes byte ranges that touch exactly the pages that the elements touch.
///
/// Dimensions are taken by ascending stride; one whose step leaves out no page joins the piece, the others are walked.
///
/// # Errors
/// The number of pieces, where there are too many.
fn pieces(
    view: &View,
    copy: u32,
    base: u64,
    page: u64,
    ranges: Option<&[(i64, i64)]>,
    out: &mut Vec<(u64, u64)>,
) -> Result<(), i128> {
    let mut start = i128::from(base) + i128::from(view.offsets[copy as usize]) * i128::from(view.element_bytes);
    let mut steps: Vec<(i128, i128)> = Vec::with_capacity(view.dims.len());
    for (d, dim) in view.dims.iter().enumerate() {
        let (first, end) = ranges.map_or((0, dim.extent), |r| r[d]);
        if first >= end {
            return Ok(());
        }
        let stride = i128::from(dim.stride) * i128::from(view.element_bytes);
        let lowest = if stride < 0 { end - 1 } else { first };
        start += stride * i128::from(lowest);
        if end - first > 1 && stride != 0 {
            steps.push((stride.abs(), i128::from(end - first)));
        }
    }
    steps.sort_unstable();
    let mut piece = i128::from(view.element_bytes);
    let mut walked = Vec::with_capacity(steps.len());
    for (stride, extent) in steps {
        if stride < piece + i128::from(page) {
            piece += stride * (extent - 1);
        } else {
            walked.push((stride, extent));
        }
    }
    let count: i128 = walked.iter().map(|w| w.1).product();
    if count > MAX_PIECES {
        return Err(count);
    }
    let mut index = vec![0; walked.len()];
    loop {
        let at = start + walked.iter().zip(&index).map(|(w, i)| w.0 * i).sum::<i128>();
        // Instances keep every element within 2^62 bytes of a base in the arena.
        out.push((at as u64, (at + piece) as u64));
        let Some(d) = (0..index.len()).find(|&d| index[d] + 1 < walked[d].1) else {
            return Ok(());
        };
        index[d] += 1;
        index[..d].fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Dtype, Gaps, Step, Use};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const PAGE: u64 = 4096;

    fn view(dims: &[(i64, i64)], element_bytes: i64) -> View {
        View {
            operand: 0,
            dtype: Some(Dtype::F32),
            element_bytes,
            dims: dims.iter().map(|&(extent, stride)| Step { extent, stride }).collect(),
            offsets: vec![0],
            access: Use::Read,
            defined: true,
            gaps: Gaps::None,
            alias: None,
        }
    }

    fn pages(set: &PageSet) -> BTreeSet<u64> {
        set.iter().flat_map(|r| (r.start..r.start + r.bytes).step_by(PAGE as usize)).collect()
    }

    fn set(pages: &BTreeSet<u64>) -> PageSet {
        PageSet::of_bytes(pages.iter().map(|p| (p * PAGE, p * PAGE + 1)).collect(), PAGE)
    }

    fn some_pages() -> impl Strategy<Value = BTreeSet<u64>> {
        prop::collection::btree_set(0u64..40, 0..30)
    }

    proptest! {
        #[test]
        fn pieces_touch_the_pages_of_all_elements(
            dims in prop::collection::vec((1i64..7, -3000i64..3000), 1..4),
            bytes in prop::sample::select(vec![1i64, 2, 4, 8, 12]), base in 0u64..5000,
            cut in prop::collection::vec((0i64..7, 0i64..7), 3), boxed in any::<bool>(),
        ) {
            let view = view(&dims, bytes);
            let base = (1 << 40) + base;
            let ranges: Vec<(i64, i64)> = dims.iter().zip(&cut)
                .map(|(d, c)| if boxed { (c.0.min(d.0), c.1.min(d.0)) } else { (0, d.0) }).collect();
            let mut all = vec![0i64];
            for (r, (_, stride)) in ranges.iter().zip(&dims) {
                all = all.iter().flat_map(|a| (r.0..r.1).map(move |i| a + i * stride)).collect();
            }
            let touched: BTreeSet<u64> = all.iter()
                .flat_map(|e| (0..bytes).map(move |b| base.wrapping_add_signed(e * bytes + b) / PAGE * PAGE)).collect();
            let mut out = vec![];
            pieces(&view, 0, base, PAGE, boxed.then_some(&ranges[..]), &mut out).unwrap();
            prop_assert_eq!(pages(&PageSet::of_bytes(out, PAGE)), touched);
        }

        #[test]
        fn sets_behave_like_sets(a in some_pages(), b in some_pages()) {
            let (x, y) = (set(&a), set(&b));
            let union: BTreeSet<u64> = a.union(&b).copied().collect();
            let minus: BTreeSet<u64> = a.difference(&b).copied().collect();
            prop_assert_eq!(x.union(&y), set(&union));
            prop_assert_eq!(x.minus(&y), set(&minus));
            prop_assert_eq!(x.bytes(), a.len() as u64 * PAGE);
            for page in 0..41 {
                prop_assert_eq!(x.contains(page * PAGE + 5), a.contains(&page));
            }
        }
    }

    #[test]
    fn too_many_pieces_are_counted_not_walked() {
        let v = view(&[(1 << 20, 4096), (1 << 20, 1 << 32)], 4);
        assert_eq!(pieces(&v, 0, 0, PAGE, None, &mut vec![]), Err(1 << 40));
    }

    #[test]
    fn a_packed_view_is_one_piece() {
        let v = view(&[(1000, 1), (1000, 1000), (1000, 1_000_000)], 4);
        let mut out = vec![];
        pieces(&v, 0, 4096, PAGE, None, &mut out).unwrap();
        assert_eq!(out, [(4096, 4096 + 4_000_000_000)]);
    }
}
