//! One operand at its place: which bytes are its elements, and which pages are mapped for it.

use super::Place;
use super::case::Placement;
use std::collections::HashSet;

const PAGE: i128 = 4096;
/// Accesses up to this far outside an operand count as near.
const NEAR: i128 = 64 << 10;

/// An operand in memory; offsets are in bytes from its base pointer.
pub struct Memory {
    pub bytes: i128,
    low: i128,
    high: i128,
    /// Address of the base pointer, up to a multiple of the page.
    base: i128,
    elements: HashSet<i128>,
    pages: HashSet<i128>,
}

impl Memory {
    /// Elements at `offset + sum(i * stride)`, i below the extent.
    pub fn new(bytes: i128, offset: i128, dims: &[(i128, i128)], place: &Placement) -> Memory {
        let mut elements = vec![offset];
        for (extent, stride) in dims {
            elements = elements.iter().flat_map(|e| (0..*extent).map(move |i| e + i * stride)).collect();
        }
        let (low, high) = (elements.iter().min().unwrap() * bytes, (elements.iter().max().unwrap() + 1) * bytes);
        // Flush, a page's end or start is a multiple of the page; the base pointer is moved inwards to its alignment.
        let align = place.align.max(bytes);
        let base = if place.at_end {
            (-place.pad - high).div_euclid(align) * align
        } else {
            -(low - place.pad).div_euclid(align) * align
        };
        let mut pages: HashSet<i128> = HashSet::new();
        let mut touch = |from: i128, to: i128| {
            if from < to {
                pages.extend((base + from).div_euclid(PAGE)..=(base + to - 1).div_euclid(PAGE));
            }
        };
        elements.iter().for_each(|e| touch(e * bytes, (e + 1) * bytes));
        if place.at_end {
            touch(high, high + place.pad)
        } else {
            touch(low - place.pad, low)
        }
        let elements = elements.into_iter().collect();
        Memory { bytes, low, high, base, elements, pages }
    }

    /// Whether an element at this offset (elements from the base pointer) lies on mapped pages.
    pub fn is_mapped(&self, offset: i128) -> bool {
        let at = self.base + offset * self.bytes;
        self.pages.contains(&at.div_euclid(PAGE)) && self.pages.contains(&(at + self.bytes - 1).div_euclid(PAGE))
    }

    pub fn is_element(&self, offset: i128) -> bool {
        self.elements.contains(&offset)
    }

    pub fn place(&self, offset: i128) -> Place {
        let at = offset * self.bytes;
        if at < self.low {
            if self.low - at <= NEAR { Place::BeforeStart } else { Place::Far }
        } else if at >= self.high {
            if at - self.high < NEAR { Place::PastEnd } else { Place::Far }
        } else if self.is_element(offset) {
            Place::Element
        } else {
            Place::Gap
        }
    }
}
