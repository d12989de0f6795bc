//! Which placements the search tries, and what they mean for the bytes at an edge.

use super::draw::Draw;
use crate::problem::{Flush, Placement, View};

/// A promised alignment that libraries care about: 256 bytes, what device allocators give.
const ALIGNED: u32 = 256;

/// One placement: flush and promising nothing in most draws, else aligned or padded.
pub(super) fn draw(draw: &mut Draw<'_>) -> Placement {
    let flush = if draw.chance(3, 5) { Flush::End } else { Flush::Start };
    match draw.below(10) {
        0..=5 => Placement { flush, pad: 0, align: 0 },
        6 | 7 => Placement { flush, pad: 0, align: ALIGNED },
        8 => Placement { flush, pad: 16 << draw.below(9), align: 0 },
        _ => Placement { flush, pad: 16 << draw.below(9), align: ALIGNED },
    }
}

/// Alignment of the base pointer of a view, bytes.
fn alignment(view: &View, placement: Placement) -> i64 {
    i64::from(placement.align).max(view.element_bytes)
}

/// Address of the base pointer of a copy, bytes, up to a multiple of the page: pages start at multiples of `page_bytes`.
///
/// Flush to the end, the highest byte is as close below a page's end as padding and alignment leave it; flush to the
/// start, the lowest byte is as close above a page's start.
pub fn phase(view: &View, copy: u32, placement: Placement, page_bytes: i64) -> i64 {
    let (bytes, align) = (view.element_bytes, alignment(view, placement));
    let pad = i64::from(placement.pad);
    let base = match placement.flush {
        Flush::End => -pad - (view.highest(copy) + 1) * bytes,
        Flush::Start => pad - view.lowest(copy) * bytes,
    };
    let aligned = match placement.flush {
        Flush::End => base.div_euclid(align) * align,
        Flush::Start => -(-base).div_euclid(align) * align,
    };
    aligned.rem_euclid(page_bytes)
}

/// Whether the byte past the highest element (end) or before the lowest (start) lies on another page than the element.
pub fn touches_edge(view: &View, placement: Placement, page_bytes: i64) -> bool {
    let bytes = view.element_bytes;
    let base = phase(view, 0, placement, page_bytes);
    let edge = match placement.flush {
        Flush::End => base + (view.highest(0) + 1) * bytes,
        Flush::Start => base + view.lowest(0) * bytes,
    };
    !view.is_empty() && edge.rem_euclid(page_bytes) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Dtype, Gaps, Use, view::Step};
    use proptest::prelude::*;

    fn view(extent: i64, offset: i64) -> View {
        View {
            operand: 0,
            dtype: Some(Dtype::F32),
            element_bytes: 4,
            dims: vec![Step { extent, stride: 1 }],
            offsets: vec![offset],
            access: Use::Read,
            defined: true,
            gaps: Gaps::None,
            alias: None,
        }
    }

    #[test]
    fn unaligned_placements_touch_their_edge_and_alignment_leaves_slack() {
        assert!(touches_edge(&view(7, 0), Placement::END, 4096));
        assert!(touches_edge(&view(7, 3), Placement::START, 4096));
        let aligned = Placement { align: 256, ..Placement::END };
        assert!(!touches_edge(&view(7, 0), aligned, 4096));
        assert!(touches_edge(&view(64, 0), aligned, 4096));
        assert!(!touches_edge(&view(7, 0), Placement { pad: 16, ..Placement::START }, 4096));
    }

    proptest! {
        #[test]
        fn a_base_is_aligned_and_leaves_less_than_one_alignment(
            extent in 1i64..5000, offset in 0i64..5000, align in 0u32..9, start: bool
        ) {
            let flush = if start { Flush::Start } else { Flush::End };
            let p = Placement { flush, pad: 0, align: if align == 0 { 0 } else { 1 << align } };
            let v = view(extent, offset);
            let base = phase(&v, 0, p, 4096);
            let align = i64::from(p.align.max(4));
            prop_assert_eq!(base % align, 0);
            let slack = match flush {
                Flush::End => (-(base + (offset + extent) * 4)).rem_euclid(4096),
                Flush::Start => (base + offset * 4).rem_euclid(4096),
            };
            prop_assert!(slack < align, "{slack} {align}");
        }
    }
}
