//! A launch: work-groups on a grid of three axes.

/// Tiles along an extent.
pub fn tiles(extent: i64, tile: i64) -> i64 {
    extent / tile + i64::from(extent % tile != 0)
}

/// The least multiple of `tile` that is not below `extent`.
pub fn round_up(extent: i64, tile: i64) -> i64 {
    tiles(extent, tile) * tile
}

/// Work-groups per axis; the first axis runs fastest. Every axis has at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    pub counts: [i64; 3],
}

impl Grid {
    /// Number of work-groups. Fits: a group stands for at least one element of a view whose span is below 2^62 bytes.
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|c| *c as u64).product()
    }

    /// Coordinates of a work-group.
    pub fn group(&self, id: u64) -> [i64; 3] {
        let [x, y] = [self.counts[0] as u64, self.counts[1] as u64];
        [(id % x) as i64, (id / x % y) as i64, (id / x / y) as i64]
    }

    /// Number of the work-group at the coordinates.
    pub fn id(&self, at: [i64; 3]) -> u64 {
        ((at[2] * self.counts[1] + at[1]) * self.counts[0] + at[0]) as u64
    }

    /// Coordinates of the last work-group.
    pub fn last(&self) -> [i64; 3] {
        self.counts.map(|c| c - 1)
    }
}

/// Which work-groups a launch runs.
#[derive(Debug, Clone, Copy)]
pub enum Groups<'a> {
    All(u64),
    Only(&'a [u64]),
}

impl Groups<'_> {
    /// Calls `run` for every work-group, in order.
    pub fn each(&self, run: &mut impl FnMut(u64)) {
        match self {
            Groups::All(total) => (0..*total).for_each(run),
            Groups::Only(list) => list.iter().copied().for_each(run),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_coordinates_agree() {
        let grid = Grid { counts: [3, 4, 5] };
        for id in 0..grid.total() {
            assert_eq!(grid.id(grid.group(id)), id);
        }
        assert_eq!(grid.group(59), grid.last());
        let large = Grid { counts: [1 << 28, 1 << 27, 3] };
        assert_eq!(large.group(large.id([12_345, 1 << 26, 2])), [12_345, 1 << 26, 2]);
    }

    #[test]
    fn partial_tiles_count() {
        assert_eq!((tiles(608, 64), tiles(640, 64), tiles(1, 64)), (10, 10, 1));
        assert_eq!(round_up(2096, 192), 2112);
    }
}
