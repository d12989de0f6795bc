//! What operands hold before a run and must hold after it, as a function of the logical index and a seed.

/// Values of one case under one seed. Every value is a small integer, exact in the element type, and so is every partial sum.
pub trait Contents: Send {
    /// Value of an element that is defined before the run. `index` has one entry per dimension of the operand.
    fn input(&self, operand: usize, copy: u32, index: &[i64]) -> f64;

    /// Value of an element of an operand that the run writes, after a correct run.
    fn expected(&self, operand: usize, copy: u32, index: &[i64]) -> f64;

    /// [`input`](Self::input) of `out.len()` elements from `index` on; `index` is left as it came. One call for many elements.
    /// They run along the first of `along`, from its end on along the next one, and so forth, and lie as far apart from one
    /// to the next everywhere; a single element has no dimension to run along.
    fn input_run(&self, operand: usize, copy: u32, index: &mut [i64], along: &[Along], out: &mut [f64]) {
        by_rows(index, along, out, |index, dim, out| run(index, dim, out, |index| self.input(operand, copy, index)));
    }

    /// [`expected`](Self::expected), as [`input_run`](Self::input_run).
    fn expected_run(&self, operand: usize, copy: u32, index: &mut [i64], along: &[Along], out: &mut [f64]) {
        by_rows(index, along, out, |index, dim, out| run(index, dim, out, |index| self.expected(operand, copy, index)));
    }
}

/// Most dimensions of an operand.
pub const MAX_DIMS: usize = 8;

/// A dimension that is walked, and the indices that it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Along {
    pub dim: usize,
    pub first: i64,
    pub extent: i64,
}

/// Calls `row` with pieces of `out` that run along one dimension, and the index of the first element of each.
pub fn by_rows(
    index: &mut [i64],
    along: &[Along],
    mut out: &mut [f64],
    mut row: impl FnMut(&mut [i64], usize, &mut [f64]),
) {
    let Some((inner, outer)) = along.split_first() else {
        return row(index, 0, out);
    };
    let mut first = [0; MAX_DIMS];
    first[..index.len()].copy_from_slice(index);
    loop {
        let count = (inner.first + inner.extent - index[inner.dim]).min(out.len() as i64);
        let (now, later) = out.split_at_mut(count as usize);
        row(index, inner.dim, now);
        out = later;
        if out.is_empty() {
            break;
        }
        index[inner.dim] = inner.first;
        for a in outer {
            index[a.dim] += 1;
            if index[a.dim] < a.first + a.extent {
                break;
            }
            index[a.dim] = a.first;
        }
    }
    index.copy_from_slice(&first[..index.len()]);
}

/// Values of `out.len()` elements from `index` on along `dim`, one by one.
pub fn run(index: &mut [i64], dim: usize, out: &mut [f64], value: impl Fn(&[i64]) -> f64) {
    // A single element needs no dimension to run along: an operand may have none.
    if let [one] = out {
        *one = value(index);
        return;
    }
    let first = index[dim];
    for out in out {
        *out = value(index);
        index[dim] += 1;
    }
    index[dim] = first;
}

/// Mixes a seed and an index into 64 well-spread bits (the finaliser of SplitMix64).
pub fn mix(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Hash of an operand, its copy and a logical index.
pub fn hash(seed: u64, operand: usize, copy: u32, index: &[i64]) -> u64 {
    let start = mix(seed, (operand as u64) << 32 | u64::from(copy));
    index.iter().fold(start, |h, i| mix(h, *i as u64))
}

/// One of -2, -1, 1, 2.
pub const fn small_nonzero(hash: u64) -> i64 {
    [-2, -1, 1, 2][(hash >> 61) as usize & 3]
}
