//! Silence by aliasing: whether a wrapped offset can land on a page that the case itself maps.
//!
//! With a stride of exactly 2^31 elements most wrapped offsets do, nothing faults, and only the comparison of contents
//! is left to notice. The search prefers strides whose images miss every mapped page.

use super::placing;
use crate::problem::{Placement, View, contents::mix, view::Step};

/// Widths that offsets are narrowed to.
const WIDTHS: [u32; 2] = [31, 32];
/// Offsets examined per copy of an operand.
const EXAMINED: usize = 24;
/// Candidates tried per dimension before a page counts as hit.
const CANDIDATES: i64 = 64;

/// Whether some offset of the case, reduced modulo 2^31 or 2^32, signed or unsigned, in elements or in bytes, lands on a
/// page that holds an element of the same copy of the same operand.
///
/// Examined are all combinations of indices along the dimensions that leave the page, where they are few, else the
/// corners and a fixed sample. Other operands lie beyond a moat and cannot be hit.
pub fn can_be_silent(views: &[Option<View>], placement: Placement, page_bytes: i64) -> bool {
    views.iter().flatten().any(|view| {
        let copies = view.copies();
        let distinct = if copies > 1 { copies - 1..copies } else { 0..copies };
        distinct
            .chain((copies > 1).then_some(0))
            .any(|copy| copy_can_be_silent(views, view, copy, placement, page_bytes))
    })
}

fn copy_can_be_silent(views: &[Option<View>], view: &View, copy: u32, placement: Placement, page: i64) -> bool {
    let bytes = view.element_bytes;
    let reach = view.highest(copy).max(-view.lowest(copy));
    if view.is_empty() || reach * bytes < 1 << WIDTHS[0] {
        return false;
    }
    let host = view.alias.unwrap_or(view.operand);
    let phase = match views.get(host) {
        Some(Some(host)) => placing::phase(host, copy, placement, page),
        _ => placing::phase(view, copy, placement, page),
    };
    let mut offsets = [0i64; EXAMINED];
    let count = examined(view, copy, page, &mut offsets);
    offsets[..count].iter().any(|offset| {
        let units = [bytes, 1];
        units[usize::from(bytes == 1)..].iter().any(|unit| {
            images(offset * bytes / unit).into_iter().flatten().any(|image| {
                let first = (image * unit + phase).div_euclid(page) * page - phase;
                let mut family = views.iter().flatten().filter(|v| v.alias.unwrap_or(v.operand) == host);
                family.any(|v| page_holds_element(v, copy, first, page))
            })
        })
    })
}

/// What a quantity becomes under each narrowing that changes it.
fn images(quantity: i64) -> [Option<i64>; 4] {
    let mut out = [None; 4];
    for (i, bits) in WIDTHS.into_iter().enumerate() {
        let whole = 1i64 << bits;
        let unsigned = quantity.rem_euclid(whole);
        let signed = if unsigned >= whole / 2 { unsigned - whole } else { unsigned };
        out[2 * i] = (unsigned != quantity).then_some(unsigned);
        out[2 * i + 1] = (signed != quantity && signed != unsigned).then_some(signed);
    }
    out
}

/// Offsets worth examining, in elements: fills `out` and says how many.
fn examined(view: &View, copy: u32, page: i64, out: &mut [i64; EXAMINED]) -> usize {
    let far = |d: &&Step| d.extent > 1 && (d.extent - 1) * d.stride.abs() * view.element_bytes >= page;
    let start = view.offsets[copy as usize];
    let total = view.dims.iter().filter(far).fold(1i64, |n, d| n.saturating_mul(d.extent));
    if total <= EXAMINED as i64 {
        out[0] = start;
        let mut count = 1;
        for d in view.dims.iter().filter(far) {
            for i in 1..d.extent {
                for before in 0..count {
                    out[count * i as usize + before] = out[before] + i * d.stride;
                }
            }
            count *= d.extent as usize;
        }
        return count;
    }
    let dims = view.dims.iter().filter(far).take(4);
    let corners = 1usize << dims.clone().count();
    for (n, slot) in out.iter_mut().enumerate() {
        *slot = start;
        for (d, dim) in dims.clone().enumerate() {
            let index = if n < corners {
                if n & (1 << d) == 0 { 0 } else { dim.extent - 1 }
            } else {
                (mix(n as u64, d as u64) % dim.extent as u64) as i64
            };
            *slot += index * dim.stride;
        }
    }
    EXAMINED
}

/// Whether the page of bytes `first..first + page`, counted from the base pointer, holds part of an element of a copy.
fn page_holds_element(view: &View, copy: u32, first: i64, page: i64) -> bool {
    let bytes = view.element_bytes;
    let (low, high) = (first.div_euclid(bytes), (first + page - 1).div_euclid(bytes));
    let start = view.offsets[copy as usize];
    if view.is_empty() || high < view.lowest(copy) || low > view.highest(copy) {
        return false;
    }
    let mut dims = [Step { extent: 1, stride: 0 }; 6];
    let mut count = 0;
    for d in view.dims.iter().filter(|d| d.extent > 1 && d.stride != 0) {
        if count == dims.len() {
            return true;
        }
        let mut at = count;
        while at > 0 && dims[at - 1].stride.abs() < d.stride.abs() {
            dims[at] = dims[at - 1];
            at -= 1;
        }
        dims[at] = *d;
        count += 1;
    }
    reaches(&dims[..count], low - start, high - start)
}

/// Whether some sum of `i_d * stride_d` lies in `low..=high`; dimensions by falling stride. True where it is not settled
/// within a bounded number of steps.
fn reaches(dims: &[Step], low: i64, high: i64) -> bool {
    let Some((d, inner)) = dims.split_first() else {
        return low <= 0 && 0 <= high;
    };
    let reach = |pick: fn(i64) -> i64| -> i64 { inner.iter().map(|s| (s.extent - 1) * pick(s.stride)).sum() };
    let (least, most) = (reach(|s| s.min(0)), reach(|s| s.max(0)));
    let (mut from, mut to) = (low - most, high - least);
    if d.stride < 0 {
        (from, to) = (-to, -from);
    }
    let stride = d.stride.abs();
    let first = (-(-from).div_euclid(stride)).max(0);
    let last = to.div_euclid(stride).min(d.extent - 1);
    if last - first >= CANDIDATES {
        return true;
    }
    let mut i = first;
    while i <= last {
        let at = i * d.stride;
        if reaches(inner, low - at, high - at) {
            return true;
        }
        i += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Dtype, Gaps, Use};
    use proptest::prelude::*;

    fn view(dims: &[(i64, i64)], offset: i64) -> View {
        View {
            operand: 0,
            dtype: Some(Dtype::F32),
            element_bytes: 4,
            dims: dims.iter().map(|&(extent, stride)| Step { extent, stride }).collect(),
            offsets: vec![offset],
            access: Use::Read,
            defined: true,
            gaps: Gaps::None,
            alias: None,
        }
    }

    fn silent(dims: &[(i64, i64)]) -> bool {
        can_be_silent(&[Some(view(dims, 0))], Placement::END, 4096)
    }

    #[test]
    fn a_stride_of_exactly_two_to_the_31_aliases_and_one_a_few_pages_further_does_not() {
        assert!(silent(&[(4, 1), (5, 1 << 31)]));
        assert!(!silent(&[(4, 1), (5, (1 << 31) + 12_345)]));
        assert!(!silent(&[(4, 1), (5, 1 << 20)]));
    }

    #[test]
    fn a_packed_operand_past_the_line_always_aliases() {
        assert!(silent(&[(1 << 16, 1), (1 << 16, 1 << 16)]));
    }

    proptest! {
        #[test]
        fn the_page_test_agrees_with_a_list_of_all_elements(
            dims in prop::collection::vec((1i64..6, -400i64..400), 1..4), offset in -500i64..500, first in -5000i64..5000
        ) {
            let v = view(&dims, offset);
            let mut all = vec![offset];
            for (extent, stride) in &dims {
                all = all.iter().flat_map(|a| (0..*extent).map(move |i| a + i * stride)).collect();
            }
            let listed = all.iter().any(|e| e * 4 + 3 >= first && e * 4 < first + 256);
            prop_assert_eq!(page_holds_element(&v, 0, first, 256), listed);
        }

        #[test]
        fn images_are_congruent_and_differ(quantity in -(1i64 << 40)..(1i64 << 40)) {
            for image in images(quantity).into_iter().flatten() {
                prop_assert_ne!(image, quantity);
                prop_assert_eq!((image - quantity) % (1 << 31), 0);
            }
        }
    }
}
