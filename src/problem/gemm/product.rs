//! Products of small factors: sums of 16 bits, as many side by side as the vector instructions at hand hold.

use multiversion::multiversion;

/// Sums that fit one or two registers.
const LANES: usize = 16;
/// Registers of sums that one walk along k keeps.
const WIDE: usize = 4;
/// So many products, of at most 4 each, fit the 16 bits of a sum.
const TERMS: usize = i16::MAX as usize / 4;

/// Factors that lie side by side are followed by zeros up to this multiple.
pub(super) fn padded(width: usize) -> usize {
    width.next_multiple_of(LANES)
}

/// Real or complex factors: real parts, imaginary parts (none where they are real).
#[derive(Debug, Default)]
pub(super) struct Factors {
    pub re: Vec<i16>,
    pub im: Vec<i16>,
}

/// How the factors of a product lie, which says along what the sums are formed side by side: what lies together there is
/// [`padded`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// By columns: op(A) has all rows of a place along k together, op(B) all places of a column.
    Rows,
    /// op(A) has all places of a row together, op(B) all columns of a place.
    Columns,
    /// All places of a row, all places of a column: few of both.
    Places,
}

impl Shape {
    pub fn of(rows: usize, columns: usize) -> Shape {
        match (rows, columns) {
            (8.., _) => Shape::Rows,
            (_, 8..) => Shape::Columns,
            _ => Shape::Places,
        }
    }

    /// `sums += sign * a * b` for `rows` times `columns` sums, by columns.
    fn add(self, sums: &mut [i32], rows: usize, k: usize, sign: i32, a: &[i16], b: &[i16]) {
        match self {
            Shape::Rows => {
                let mut lanes = vec![0; padded(rows)];
                for (sums, factors) in sums.chunks_mut(rows).zip(b.chunks(k)) {
                    side_by_side(a, factors, &mut lanes);
                    sums.iter_mut().zip(&lanes).for_each(|(sum, lane)| *sum += sign * lane);
                }
            }
            Shape::Columns => {
                let mut lanes = vec![0; padded(sums.len() / rows)];
                for (row, factors) in a.chunks(k).enumerate() {
                    side_by_side(b, factors, &mut lanes);
                    let sums = sums[row..].iter_mut().step_by(rows);
                    sums.zip(&lanes).for_each(|(sum, lane)| *sum += sign * lane);
                }
            }
            Shape::Places => {
                for (sums, column) in sums.chunks_mut(rows).zip(b.chunks(k)) {
                    sums.iter_mut().zip(a.chunks(k)).for_each(|(sum, row)| *sum += sign * dot(row, column));
                }
            }
        }
    }

    /// Real and imaginary parts (none where the factors are real) of the product, by columns.
    pub fn product(self, rows: usize, columns: usize, k: usize, a: &Factors, b: &Factors) -> [Vec<i32>; 2] {
        let mut re = vec![0; rows * columns];
        self.add(&mut re, rows, k, 1, &a.re, &b.re);
        if a.im.is_empty() {
            return [re, vec![]];
        }
        let mut im = vec![0; rows * columns];
        self.add(&mut re, rows, k, -1, &a.im, &b.im);
        self.add(&mut im, rows, k, 1, &a.re, &b.im);
        self.add(&mut im, rows, k, 1, &a.im, &b.re);
        [re, im]
    }
}

/// The sums over l of `wide[l][at] * factors[l]`, where `wide` has as many columns as there are sums.
#[multiversion(targets("x86_64+avx2"))]
fn side_by_side(wide: &[i16], factors: &[i16], sums: &mut [i32]) {
    let pitch = sums.len();
    let (registers, _) = sums.as_chunks_mut::<LANES>();
    let (blocks, rest) = registers.as_chunks_mut::<WIDE>();
    let rest_from = blocks.len() * WIDE;
    for (at, block) in blocks.iter_mut().enumerate() {
        add_registers(&wide[at * WIDE * LANES..], factors, pitch, block);
    }
    for (at, register) in rest.iter_mut().enumerate() {
        add_registers(&wide[(rest_from + at) * LANES..], factors, pitch, std::array::from_mut(register));
    }
}

/// Sums of the first columns of `wide`, whose rows are `pitch` apart.
#[inline(always)] // with the instructions of its caller
fn add_registers<const N: usize>(wide: &[i16], factors: &[i16], pitch: usize, out: &mut [[i32; LANES]; N]) {
    *out = [[0; LANES]; N];
    for (part, terms) in factors.chunks(TERMS).enumerate() {
        let mut sums = [[0i16; LANES]; N];
        for (l, factor) in terms.iter().enumerate() {
            let (row, _) = wide[(part * TERMS + l) * pitch..][..N * LANES].as_chunks::<LANES>();
            for (sums, row) in sums.iter_mut().zip(row) {
                // The sums fit, by TERMS; unchecked ones are what the compiler forms side by side.
                sums.iter_mut().zip(row).for_each(|(sum, a)| *sum = sum.wrapping_add(a.wrapping_mul(*factor)));
            }
        }
        for (out, sums) in out.iter_mut().zip(sums) {
            out.iter_mut().zip(sums).for_each(|(out, sum)| *out += i32::from(sum));
        }
    }
}

#[multiversion(targets("x86_64+avx2"))]
fn dot(row: &[i16], column: &[i16]) -> i32 {
    // Factors of at most 2: the sum fits for any length that memory holds.
    row.iter().zip(column).fold(0i32, |sum, (a, b)| sum.wrapping_add(i32::from(*a) * i32::from(*b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_shape_gives_the_same_product(rows in 1usize..140, columns in 1usize..20, k in 1usize..30, seed: u64) {
            let value = |l: usize, at: usize, part: u64| (seed.rotate_left((7 * l + at) as u32 + part as u32) % 5) as i16 - 2;
            let make = |count: usize, together: bool, key: u64| {
                let mut both = [vec![], vec![]];
                for (part, out) in both.iter_mut().enumerate() {
                    let at = |l, x| value(l, x, key + 31 * part as u64);
                    *out = match together {
                        true => (0..k).flat_map(|l| (0..padded(count)).map(move |x| if x < count { at(l, x) } else { 0 })).collect(),
                        false => (0..count).flat_map(|x| (0..k).map(move |l| at(l, x))).collect(),
                    };
                }
                let [re, im] = both;
                Factors { re, im }
            };
            let (a, b) = (|wide| make(rows, wide, 1), |wide| make(columns, wide, 17));
            let plain = Shape::Places.product(rows, columns, k, &a(false), &b(false));
            let (re, im) = (&plain[0], &plain[1]);
            for (j, i) in (0..columns).flat_map(|j| (0..rows).map(move |i| (j, i))) {
                let (mut x, mut y) = (0, 0);
                for l in 0..k {
                    let [ar, ai] = [1, 32].map(|key| i32::from(value(l, i, key)));
                    let [br, bi] = [17, 48].map(|key| i32::from(value(l, j, key)));
                    (x, y) = (x + ar * br - ai * bi, y + ar * bi + ai * br);
                }
                prop_assert_eq!((re[j * rows + i], im[j * rows + i]), (x, y));
            }
            prop_assert_eq!(&plain, &Shape::Rows.product(rows, columns, k, &a(true), &b(false)));
            prop_assert_eq!(&plain, &Shape::Columns.product(rows, columns, k, &a(false), &b(true)));
        }
    }

    #[test]
    fn long_sums_do_not_wrap() {
        let k = 3 * TERMS + 5;
        let wide = (0..16 * k).map(|at| if at % 16 < 9 { 2 } else { 0 }).collect();
        let (a, b) = (Factors { re: wide, im: vec![] }, Factors { re: vec![2; k], im: vec![] });
        assert_eq!(Shape::Rows.product(9, 1, k, &a, &b)[0], vec![4 * k as i32; 9]);
        let a = Factors { re: vec![2; 9 * k], im: vec![] };
        assert_eq!(Shape::Places.product(9, 1, k, &a, &b)[0], vec![4 * k as i32; 9]);
    }
}
