//! Small integers by place: one hash gives 32 of them.

use crate::problem::contents::{mix, small_nonzero};

/// Values that one hash gives, two bits each.
const WORD: usize = 32;

/// The values of all pairs of bits in a byte.
static QUADS: [[i16; 4]; 256] = quads();

const fn quads() -> [[i16; 4]; 256] {
    let mut quads = [[0; 4]; 256];
    let mut at = 0;
    while at < 4 * quads.len() {
        let (byte, pair) = (at / 4, at % 4);
        quads[byte][pair] = small_nonzero(((byte as u64 >> (2 * pair)) & 3) << 61) as i16;
        at += 1;
    }
    quads
}

/// A value (-2, -1, 1 or 2) for every place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plane(pub u64);

impl Plane {
    /// The values of the word that a place lies in, from that place on.
    fn word(self, place: i64) -> u64 {
        mix(self.0, place as u64 / WORD as u64) >> (2 * (place as u64 % WORD as u64))
    }

    pub fn at(self, place: i64) -> i16 {
        QUADS[(self.word(place) & 3) as usize][0]
    }

    /// The values of consecutive places.
    pub fn run(self, place: i64, out: &mut [i16]) {
        let to_edge = (WORD - (place as u64 % WORD as u64) as usize) % WORD;
        let (head, body) = out.split_at_mut(to_edge.min(out.len()));
        unpack(self.word(place), head);
        for (word, out) in body.chunks_mut(WORD).enumerate() {
            unpack(self.word(place + (to_edge + word * WORD) as i64), out);
        }
    }
}

fn unpack(word: u64, out: &mut [i16]) {
    let bytes = word.to_le_bytes();
    let (quads, rest) = out.as_chunks_mut::<4>();
    quads.iter_mut().zip(bytes).for_each(|(out, byte)| *out = QUADS[byte as usize]);
    if let Some(byte) = bytes.get(quads.len()) {
        rest.copy_from_slice(&QUADS[*byte as usize][..rest.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_run_holds_the_values_of_its_places(key: u64, place in 0i64..1 << 40, count in 0usize..200) {
            let mut run = vec![0; count];
            Plane(key).run(place, &mut run);
            let each: Vec<i16> = (place..).take(count).map(|place| Plane(key).at(place)).collect();
            prop_assert_eq!(run, each);
        }
    }

    #[test]
    fn every_value_is_as_frequent_as_the_others() {
        let mut run = vec![0; 40_000];
        Plane(5).run(3, &mut run);
        for value in [-2, -1, 1, 2] {
            let count = run.iter().filter(|v| **v == value).count();
            assert!((9_500..10_500).contains(&count), "{value}: {count}");
        }
    }
}
