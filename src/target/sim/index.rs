//! Offsets in the integer width under test.

use std::num::Wrapping;
use std::ops::{Add, Mul};

/// An integer of a kernel: narrowing keeps the low bits, sums and products wrap.
pub trait Index: Copy + Add<Output = Self> + Mul<Output = Self> {
    fn of(value: i64) -> Self;
    fn wide(self) -> i64;
}

impl Index for Wrapping<i32> {
    fn of(value: i64) -> Self {
        Wrapping(value as i32)
    }

    fn wide(self) -> i64 {
        i64::from(self.0)
    }
}

impl Index for Wrapping<i64> {
    fn of(value: i64) -> Self {
        Wrapping(value)
    }

    fn wide(self) -> i64 {
        self.0
    }
}

/// Offset of the first element and distance between neighbours along three dimensions, elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strides {
    pub offset: i64,
    pub steps: [i64; 3],
}

impl Strides {
    /// The right offset of an element.
    #[inline(always)]
    pub fn at(&self, at: [i64; 3]) -> i64 {
        self.offset + at[0] * self.steps[0] + at[1] * self.steps[1] + at[2] * self.steps[2]
    }

    fn term<I: Index>(&self, at: [i64; 3], dim: usize) -> I {
        I::of(at[dim]) * I::of(self.steps[dim])
    }

    /// Terms multiplied and summed in `I`, then widened and added to the pointer (which has the first element's offset).
    #[inline(always)]
    pub fn narrow_sum<I: Index>(&self, at: [i64; 3]) -> i64 {
        self.offset + (self.term::<I>(at, 0) + self.term::<I>(at, 1) + self.term::<I>(at, 2)).wide()
    }

    /// Each term multiplied in `I` and widened alone.
    #[inline(always)]
    pub fn narrow_terms<I: Index>(&self, at: [i64; 3]) -> i64 {
        self.offset + (0..3).map(|d| self.term::<I>(at, d).wide()).sum::<i64>()
    }

    /// The last term alone in `I`: a batch index times a batch stride.
    #[inline(always)]
    pub fn narrow_last<I: Index>(&self, at: [i64; 3]) -> i64 {
        self.at([at[0], at[1], 0]) + self.term::<I>(at, 2).wide()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type I32 = Wrapping<i32>;

    #[test]
    fn a_column_of_127_wraps_where_the_report_says() {
        // pytorch #31708: (N-1)*127 crosses 2^31-1 between N = 16,909,321 and 16,909,322.
        let s = Strides { offset: 0, steps: [1, 127, 0] };
        assert_eq!(s.narrow_sum::<I32>([0, 16_909_320, 0]), 2_147_483_640);
        assert_eq!(s.narrow_sum::<I32>([0, 16_909_321, 0]), 2_147_483_767 - (1 << 32));
        // The first column alone does not tell: with the rows of the last column the sum passes the line earlier.
        assert_eq!(s.narrow_sum::<I32>([7, 16_909_320, 0]), (1 << 31) - 1);
        assert_eq!(s.narrow_sum::<I32>([8, 16_909_320, 0]), -(1 << 31));
        assert_eq!(s.narrow_terms::<I32>([8, 16_909_320, 0]), 1 << 31);
    }

    #[test]
    fn a_batch_term_wraps_alone_where_the_whole_offset_does_not_tell() {
        // pytorch PR #196431: batch 512, N 512; 511*8208*512 fits, 511*8209*512 does not.
        let fits = Strides { offset: 0, steps: [1, 8208, 8208 * 512] };
        let last = |m: i64| [m - 1, 511, 511];
        assert!(fits.at(last(8208)) > i64::from(i32::MAX));
        assert_eq!(fits.narrow_last::<I32>(last(8208)), fits.at(last(8208)));
        assert_ne!(fits.narrow_sum::<I32>(last(8208)), fits.at(last(8208)));
        let wraps = Strides { offset: 0, steps: [1, 8209, 8209 * 512] };
        assert_eq!(wraps.narrow_last::<I32>(last(8209)), wraps.at(last(8209)) - (1 << 32));
    }

    #[test]
    fn the_offset_of_the_first_element_is_added_in_64_bits() {
        let s = Strides { offset: 1 << 33, steps: [1, 1 << 30, 0] };
        assert_eq!(s.narrow_sum::<I32>([0, 1, 0]), (1 << 33) + (1 << 30));
        assert_eq!(s.narrow_sum::<I32>([0, 2, 0]), (1 << 33) - (1 << 31));
        assert_eq!(s.narrow_sum::<Wrapping<i64>>([0, 2, 0]), s.at([0, 2, 0]));
    }

    #[test]
    fn a_factor_beyond_32_bits_loses_its_high_bits() {
        let s = Strides { offset: 0, steps: [1, 1 << 34, 0] };
        assert_eq!(s.narrow_sum::<I32>([3, 5, 0]), 3);
    }
}
