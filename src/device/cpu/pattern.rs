//! Canaries: what fills every mapped byte that belongs to no element.
//!
//! Each byte is a function of its own address and a seed. Every 16-bit lane at an even address lies in 0xFFF1..=0xFFFF,
//! so that an aligned f16, bf16, f32 or f64 read from a canary is NaN (all exponent bits set, some fraction bit set) and
//! shows in the result if the value is used. The bytes differ from place to place, so that a copy of canaries onto canaries
//! is noticed too: any displacement keeps a lane with probability 1/15 only, and a whole block with 1/16,384.

use std::ops::Range;
use std::{ptr, slice};

/// Bytes of addresses that share one place in the table. Not the system's page size, which varies.
const BLOCK: usize = 4096;
/// Lanes at which a block may start in the table. Table and blocks fit a first-level cache of 48 KiB.
const STARTS: usize = 16_384;
const TABLE_LANES: usize = STARTS + BLOCK / 2;

/// The pattern of one seed.
#[derive(Debug)]
pub struct Canary {
    seed: u64,
    table: Box<[u8]>,
}

impl Canary {
    pub fn new(seed: u64) -> Canary {
        let lane = |index: usize| 0xFFF1 + (mix(seed ^ mix(index as u64)) % 15) as u16;
        let table = (0..TABLE_LANES).flat_map(|index| lane(index).to_ne_bytes()).collect();
        Canary { seed, table }
    }

    /// Writes the pattern over `bytes` bytes from address `start` on. Neither has to be aligned.
    ///
    /// # Safety
    /// The bytes are mapped for writing, no Rust reference points to them, and no other thread touches them meanwhile.
    pub unsafe fn fill(&self, start: u64, bytes: usize) {
        for (address, expected) in self.pieces(start, bytes) {
            // SAFETY: the piece lies within the caller's bytes, and the table is no part of them.
            unsafe { ptr::copy_nonoverlapping(expected.as_ptr(), at(address).cast_mut(), expected.len()) };
        }
    }

    /// The lowest address whose byte is not what [`fill`](Self::fill) left there.
    ///
    /// # Safety
    /// The bytes are mapped for reading, and no other thread writes to them meanwhile.
    pub unsafe fn first_difference(&self, start: u64, bytes: usize) -> Option<u64> {
        self.pieces(start, bytes).find_map(|(address, expected)| {
            // SAFETY: the piece lies within the caller's bytes.
            let found = unsafe { slice::from_raw_parts(at(address), expected.len()) };
            if found == expected {
                return None;
            }
            let offset = found.iter().zip(expected).position(|(found, expected)| found != expected)?;
            Some(address + offset as u64)
        })
    }

    /// How many bytes are not what [`fill`](Self::fill) left there.
    ///
    /// # Safety
    /// The bytes are mapped for reading, and no other thread writes to them meanwhile.
    pub unsafe fn count_differences(&self, start: u64, bytes: usize) -> usize {
        let differences = self.pieces(start, bytes).map(|(address, expected)| {
            // SAFETY: the piece lies within the caller's bytes.
            let found = unsafe { slice::from_raw_parts(at(address), expected.len()) };
            if found == expected {
                return 0;
            }
            found.iter().zip(expected).filter(|(found, expected)| found != expected).count()
        });
        differences.sum()
    }

    /// The range in pieces that end with it or with a block: address and pattern of each.
    fn pieces(&self, start: u64, bytes: usize) -> impl Iterator<Item = (u64, &[u8])> {
        let mut done = 0;
        std::iter::from_fn(move || {
            let address = start + done as u64;
            let within = self.within_table(address);
            let piece = within.len().min(bytes - done);
            done += piece;
            (piece > 0).then(|| (address, &self.table[within.start..within.start + piece]))
        })
    }

    /// Where the table holds the pattern from `address` to the end of its block.
    fn within_table(&self, address: u64) -> Range<usize> {
        let block = address / BLOCK as u64;
        let first = 2 * (mix(self.seed.rotate_left(32) ^ block) % STARTS as u64) as usize;
        first + (address % BLOCK as u64) as usize..first + BLOCK
    }
}

fn at(address: u64) -> *const u8 {
    ptr::with_exposed_provenance(address as usize)
}

/// A bijection in which every bit of the result depends on every bit of the argument: the finalizer of SplitMix64
/// (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use half::{bf16, f16};
    use proptest::prelude::*;

    use super::*;

    fn address(buffer: &mut [u8]) -> u64 {
        buffer.as_mut_ptr().expose_provenance() as u64
    }

    /// The pattern of any addresses, mapped or not.
    fn pattern(canary: &Canary, start: u64, bytes: usize) -> Vec<u8> {
        canary.pieces(start, bytes).flat_map(|(_, expected)| expected.to_vec()).collect()
    }

    proptest! {
        #[test]
        fn every_aligned_number_is_nan(seed: u64, start in 0_u64..1 << 56) {
            let start = start & !7;
            let bytes = pattern(&Canary::new(seed), start, 2 * BLOCK + 8);
            prop_assert_eq!(bytes.len(), 2 * BLOCK + 8);
            for lane in bytes.as_chunks::<2>().0 {
                prop_assert!((0xFFF1..=0xFFFF).contains(&u16::from_ne_bytes(*lane)));
                prop_assert!(f16::from_ne_bytes(*lane).is_nan() && bf16::from_ne_bytes(*lane).is_nan());
            }
            prop_assert!(bytes.as_chunks::<4>().0.iter().all(|&bytes| f32::from_ne_bytes(bytes).is_nan()));
            prop_assert!(bytes.as_chunks::<8>().0.iter().all(|&bytes| f64::from_ne_bytes(bytes).is_nan()));
        }

        #[test]
        fn the_pattern_depends_on_the_address_alone(seed: u64, start in 0_u64..1 << 56, skip in 0_usize..9000, bytes in 0_usize..9000) {
            let canary = Canary::new(seed);
            let whole = pattern(&canary, start, skip + bytes);
            prop_assert_eq!(&whole[skip..], pattern(&canary, start + skip as u64, bytes));
        }

        #[test]
        fn a_copy_from_elsewhere_is_noticed(seed: u64, start in 0_u64..1 << 46, displacement in 1_u64..1 << 46) {
            let canary = Canary::new(seed);
            let bytes = 8 * BLOCK;
            let here = pattern(&canary, start, bytes);
            let there = pattern(&canary, start + 2 * displacement, bytes);
            let same = here.as_chunks::<2>().0.iter().zip(there.as_chunks::<2>().0).filter(|(here, there)| here == there).count();
            prop_assert!(same < bytes / 4, "{} of {} lanes", same, bytes / 2);
        }
    }

    #[test]
    fn no_power_of_two_is_a_period() {
        let canary = Canary::new(7);
        let here = pattern(&canary, 1 << 45, 64);
        for shift in 1..45 {
            assert_ne!(here, pattern(&canary, (1 << 45) + (1 << shift), 64), "{shift}");
        }
    }

    #[test]
    fn a_change_of_any_byte_of_a_range_is_found() {
        let canary = Canary::new(3);
        let mut buffer = vec![0_u8; 2 * BLOCK + 100];
        let (skip, bytes) = (13, 2 * BLOCK + 57);
        let start = address(&mut buffer) + skip as u64;
        // SAFETY: the buffer holds the bytes, and no reference to it is used until they are filled.
        unsafe { canary.fill(start, bytes) };
        assert!(buffer[..skip].iter().chain(&buffer[skip + bytes..]).all(|&byte| byte == 0));
        // SAFETY: the bytes are inside the buffer, which only this thread uses (here and below).
        let differences = || unsafe { (canary.first_difference(start, bytes), canary.count_differences(start, bytes)) };
        assert_eq!(differences(), (None, 0));
        let last = start + bytes as u64 - 1;
        for changed in start..=last {
            let byte: *mut u8 = ptr::with_exposed_provenance_mut(changed as usize);
            // SAFETY: as above.
            unsafe { byte.write(byte.read() ^ 1) };
            assert_eq!(differences(), (Some(changed), 1));
            // SAFETY: as above.
            unsafe { byte.write(byte.read() ^ 1) };
        }
        buffer[skip + 100..skip + 5000].fill(0);
        assert_eq!(differences(), (Some(start + 100), 4900));
    }

    #[test]
    #[ignore = "a measurement: cargo test --release --lib canary_speed -- --ignored --nocapture"]
    fn canary_speed() {
        let canary = Canary::new(1);
        let bytes = 256 << 20;
        let mut buffer = vec![1_u8; bytes];
        let start = address(&mut buffer);
        let rate = |name: &str, run: &dyn Fn()| {
            let seconds = (0..5).map(|_| {
                let begin = Instant::now();
                run();
                begin.elapsed().as_secs_f64()
            });
            println!("{name}: {:.1} GB/s", bytes as f64 / 1e9 / seconds.fold(f64::INFINITY, f64::min));
        };
        // SAFETY: the bytes are those of the buffer, which only this thread uses.
        unsafe {
            rate("fill", &|| canary.fill(start, bytes));
            rate("first_difference", &|| assert_eq!(canary.first_difference(start, bytes), None));
            rate("count_differences", &|| assert_eq!(canary.count_differences(start, bytes), 0));
        }
    }
}
