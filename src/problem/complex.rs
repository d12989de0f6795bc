//! A complex number of small integers in one `f64`, so that values of every element type pass through one kind of slice.
//!
//! `re + im * 2^26`: exact while both parts lie within 2^24, which is all that a complex element of two `f32` holds exactly.

const SHIFT: f64 = (1u64 << 26) as f64;

/// Integers are one apart from here on.
const ROUNDING: f64 = 1.5 * (1u64 << 52) as f64;

/// The number `re + im * i` in one word; both are integers of at most 2^24 in size.
pub fn pack(re: f64, im: f64) -> f64 {
    re + im * SHIFT
}

/// The parts of a packed number; NaN has two of them.
pub fn unpack(value: f64) -> (f64, f64) {
    // Rounded by what is lost beside a large number; never half way, as the real part is less than half of SHIFT.
    let im = value / SHIFT + ROUNDING - ROUNDING;
    (value - im * SHIFT, im)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_packed_number_has_its_parts(re in -(1i64 << 24)..=1 << 24, im in -(1i64 << 24)..=1 << 24) {
            let (re, im) = (re as f64, im as f64);
            prop_assert_eq!(unpack(pack(re, im)), (re, im));
        }
    }

    #[test]
    fn a_number_that_is_none_has_no_parts() {
        let (re, im) = unpack(f64::NAN);
        assert!(re.is_nan() && im.is_nan());
    }
}
