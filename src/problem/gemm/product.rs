//! Products of small factors: sums of 16 bits, as many side by side as the vector instructions at hand hold.

use multiversion::multiversion;

/// Sums that are formed side by side.
const LANES: usize = 128;
/// Products of one step through the lanes.
const STEP: usize = 4;
/// So many products, of at most 4 each, fit the 16 bits of a sum.
const TERMS: usize = i16::MAX as usize / 4 / STEP * STEP;

/// Real or complex factors: real parts, imaginary parts (none where they are real).
#[derive(Debug, Default)]
pub(super) struct Factors {
    pub re: Vec<i16>,
    pub im: Vec<i16>,
}

/// How the factors of a product lie, which says along what the sums are formed side by side.
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
    fn add(self, sums: &mut [i32], rows: usize, sign: i32, a: &[i16], b: &[i16]) {
        let columns = sums.len() / rows;
        let k = a.len() / rows;
        match self {
            Shape::Rows => {
                for (sums, factors) in sums.chunks_mut(rows).zip(b.chunks(k)) {
                    side_by_side(a, factors, rows, |at, sum| sums[at] += sign * sum);
                }
            }
            Shape::Columns => {
                for (row, factors) in a.chunks(k).enumerate() {
                    side_by_side(b, factors, columns, |at, sum| sums[at * rows + row] += sign * sum);
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
    pub fn product(self, rows: usize, columns: usize, a: &Factors, b: &Factors) -> [Vec<i32>; 2] {
        let mut re = vec![0; rows * columns];
        self.add(&mut re, rows, 1, &a.re, &b.re);
        if a.im.is_empty() {
            return [re, vec![]];
        }
        let mut im = vec![0; rows * columns];
        self.add(&mut re, rows, -1, &a.im, &b.im);
        self.add(&mut im, rows, 1, &a.re, &b.im);
        self.add(&mut im, rows, 1, &a.im, &b.re);
        [re, im]
    }
}

/// The sums over l of `wide[l][at] * factors[l]` for every `at` below `width`.
fn side_by_side(wide: &[i16], factors: &[i16], width: usize, mut visit: impl FnMut(usize, i32)) {
    for first in (0..width).step_by(LANES) {
        let mut sums = [0; LANES];
        let sums = &mut sums[..LANES.min(width - first)];
        add_lanes(wide, factors, width, first, sums);
        sums.iter().enumerate().for_each(|(at, sum)| visit(first + at, *sum));
    }
}

/// Adds the sums of the lanes from `first` on.
#[multiversion(targets("x86_64+avx2"))]
fn add_lanes(wide: &[i16], factors: &[i16], width: usize, first: usize, out: &mut [i32]) {
    let row = |l: usize| &wide[l * width + first..][..out.len()];
    let mut total = [0i32; LANES];
    for (part, terms) in factors.chunks(TERMS).enumerate() {
        let mut sums = [0i16; LANES];
        let sums = &mut sums[..out.len()];
        let l = part * TERMS;
        let (steps, rest) = terms.as_chunks::<STEP>();
        // The sums fit, by TERMS; unchecked ones are what the compiler forms side by side.
        for (step, [f, g, h, i]) in steps.iter().enumerate() {
            let l = l + step * STEP;
            let (a, b, c, d) = (row(l), row(l + 1), row(l + 2), row(l + 3));
            for ((((sum, a), b), c), d) in sums.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                let two = a.wrapping_mul(*f).wrapping_add(b.wrapping_mul(*g));
                let more = c.wrapping_mul(*h).wrapping_add(d.wrapping_mul(*i));
                *sum = sum.wrapping_add(two).wrapping_add(more);
            }
        }
        for (at, factor) in rest.iter().enumerate() {
            let values = row(l + steps.len() * STEP + at);
            sums.iter_mut().zip(values).for_each(|(sum, a)| *sum = sum.wrapping_add(a.wrapping_mul(*factor)));
        }
        total.iter_mut().zip(sums).for_each(|(total, sum)| *total += i32::from(*sum));
    }
    out.iter_mut().zip(total).for_each(|(out, total)| *out += total);
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
                        true => (0..k).flat_map(|l| (0..count).map(move |x| at(l, x))).collect(),
                        false => (0..count).flat_map(|x| (0..k).map(move |l| at(l, x))).collect(),
                    };
                }
                let [re, im] = both;
                Factors { re, im }
            };
            let (a, b) = (|wide| make(rows, wide, 1), |wide| make(columns, wide, 17));
            let plain = Shape::Places.product(rows, columns, &a(false), &b(false));
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
            prop_assert_eq!(&plain, &Shape::Rows.product(rows, columns, &a(true), &b(false)));
            prop_assert_eq!(&plain, &Shape::Columns.product(rows, columns, &a(false), &b(true)));
        }
    }

    #[test]
    fn long_sums_do_not_wrap() {
        let k = 3 * TERMS + 5;
        let (a, b) = (Factors { re: vec![2; 9 * k], im: vec![] }, Factors { re: vec![2; k], im: vec![] });
        assert_eq!(Shape::Rows.product(9, 1, &a, &b)[0], vec![4 * k as i32; 9]);
        assert_eq!(Shape::Places.product(9, 1, &a, &b)[0], vec![4 * k as i32; 9]);
    }
}
