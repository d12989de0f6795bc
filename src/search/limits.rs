//! What a case may cost: spans, mappings, memory and work.

use crate::problem::{Assignment, Problem, View};
use crate::worker::layout::MIN_MOAT;

/// Caps on what a generated case asks of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanLimits {
    /// Bytes from the first to the last element of one copy of one operand.
    pub span_bytes: i128,
    /// Bytes of address space of all copies of all operands, each with a moat.
    pub arena_bytes: i128,
    /// Unmapped bytes kept on either side of an operand; neighbours share them.
    pub moat_bytes: i128,
    /// Work of one case, in the problem's own unit.
    pub work: i128,
    /// Elements of all copies of all operands.
    pub elements: i128,
    /// Bytes of the pages that hold elements.
    pub memory: i128,
    /// Separate ranges of pages.
    pub fragments: i128,
    /// Bytes of one page of the device.
    pub page_bytes: i64,
    /// The target runs a sample of what is too large: work, elements, memory and fragments do not count.
    pub sampled: bool,
}

impl Default for SpanLimits {
    /// A CPU arena of 48 TiB and the default caps of a run.
    fn default() -> SpanLimits {
        let caps = crate::target::Caps::default();
        SpanLimits {
            span_bytes: 8 << 40,
            arena_bytes: 48 << 40,
            moat_bytes: i128::from(MIN_MOAT),
            work: i128::from(caps.work),
            elements: caps.elements(),
            memory: i128::from(caps.memory),
            fragments: 256,
            page_bytes: 4096,
            sampled: false,
        }
    }
}

/// Which cap a case is above, and by what factor (rounded up, at least 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excess {
    /// The elements lie too far apart.
    Span(i128),
    /// There are too many of them, in too many pieces, or too much work.
    Size(i128),
}

impl SpanLimits {
    /// The worst excess of a case; `None` for one within all caps.
    pub fn excess(&self, problem: &Problem, values: &Assignment, views: &[Option<View>]) -> Option<Excess> {
        let (mut arena, mut memory, mut fragments, mut widest, mut elements) = (0i128, 0i128, 0i128, 0i128, 0i128);
        for view in views.iter().flatten().filter(|v| v.alias.is_none() && !v.is_empty()) {
            let span = i128::from(view.span()) * i128::from(view.element_bytes);
            let copies = i128::from(view.copies());
            let (pieces, bytes) = touched(view, self.page_bytes);
            widest = widest.max(span);
            arena += (span + self.moat_bytes) * copies;
            fragments = fragments.saturating_add(pieces.saturating_mul(copies));
            memory = memory.saturating_add(bytes.saturating_mul(copies));
            elements = elements.saturating_add(view.elements().saturating_mul(copies));
        }
        let over = |have: i128, cap: i128| if have > cap { ((have - 1) / cap.max(1) + 1).max(2) } else { 0 };
        let span = over(widest, self.span_bytes).max(over(arena, self.arena_bytes));
        if span > 0 {
            return Some(Excess::Span(span));
        }
        if self.sampled {
            return None;
        }
        let size = over(problem.work(values), self.work)
            .max(over(elements, self.elements))
            .max(over(memory, self.memory))
            .max(over(fragments, self.fragments));
        (size > 0).then_some(Excess::Size(size))
    }

    /// Whether a case is within all caps.
    pub fn allow(&self, problem: &Problem, values: &Assignment, views: &[Option<View>]) -> bool {
        self.excess(problem, values, views).is_none()
    }
}

/// Separate page ranges of one copy of an operand, and their bytes: an upper bound, as every range may straddle a page.
pub fn touched(view: &View, page_bytes: i64) -> (i128, i128) {
    // The span of a view fits an `i64` in bytes, and so does every distance within it.
    let bytes = view.element_bytes;
    let mut dims = [(0i64, 0i64); 8];
    let mut count = 0;
    let (mut block, mut pieces) = (bytes, 1i128);
    for d in view.dims.iter().filter(|d| d.extent > 1 && d.stride != 0) {
        if count == dims.len() {
            pieces = pieces.saturating_mul(d.extent.into());
            continue;
        }
        let stride = d.stride.abs() * bytes;
        // Sorted by stride while it grows: descriptions have a handful of dimensions.
        let mut at = count;
        while at > 0 && dims[at - 1].0 > stride {
            dims[at] = dims[at - 1];
            at -= 1;
        }
        dims[at] = (stride, d.extent);
        count += 1;
    }
    for (stride, extent) in &dims[..count] {
        if pieces == 1 && *stride <= block + page_bytes {
            block += (extent - 1) * stride;
        } else {
            pieces = pieces.saturating_mul(i128::from(*extent));
        }
    }
    let pages = (block - 1) / page_bytes + 2;
    (pieces, pieces.saturating_mul(i128::from(pages) * i128::from(page_bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Dtype, Gaps, Use, view::Step};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn view(dims: &[(i64, i64)]) -> View {
        View {
            operand: 0,
            dtype: Some(Dtype::F32),
            element_bytes: 4,
            dims: dims.iter().map(|&(extent, stride)| Step { extent, stride }).collect(),
            offsets: vec![0],
            access: Use::Read,
            defined: true,
            gaps: Gaps::None,
            alias: None,
        }
    }

    proptest! {
        #[test]
        fn the_estimate_covers_the_pages_of_a_list_of_all_elements(
            dims in prop::collection::vec((1i64..6, -3000i64..3000), 1..4), phase in 0i64..1024
        ) {
            let mut all = vec![phase * 4];
            for (extent, stride) in &dims {
                all = all.iter().flat_map(|a| (0..*extent).map(move |i| a + i * stride * 4)).collect();
            }
            let pages: BTreeSet<i64> = all.iter().map(|a| a.div_euclid(4096)).collect();
            let ranges = pages.iter().filter(|p| !pages.contains(&(**p - 1))).count();
            let (pieces, bytes) = touched(&view(&dims), 4096);
            prop_assert!(bytes >= pages.len() as i128 * 4096, "{pieces} {bytes} {}", pages.len());
            prop_assert!(pieces >= ranges as i128);
        }
    }

    #[test]
    fn a_packed_matrix_is_one_piece_and_a_wide_one_a_piece_a_column() {
        assert_eq!(touched(&view(&[(16, 1), (16, 16)]), 4096), (1, 8192));
        assert_eq!(touched(&view(&[(16, 1), (16, 1 << 31)]), 4096), (16, 16 * 8192));
    }
}
