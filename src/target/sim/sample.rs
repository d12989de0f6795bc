//! Choosing work-groups of a case that is too large to run whole.

use super::grid::Grid;
use crate::problem::contents::mix;
use crate::target::Caps;

const PAGE: i128 = 4096;
/// Separate pieces of memory that one case may need: mapping them takes a tenth of a second, and stays far below what
/// Linux allows a process (65,530 mappings, and a piece between two guards counts twice).
const MOST_PIECES: i128 = 1 << 13;
/// What mapping a piece counts for when all of a case is weighed: it takes about 10 us, as 2^12 multiply-adds do.
const WORK_OF_PIECE: i128 = 1 << 12;
/// What it counts for when the extreme work-groups are weighed, without which a case tells nothing.
const WORK_OF_NEEDED_PIECE: i128 = 1 << 9;
/// Pieces that a case may have under any cap.
const FREE_PIECES: i128 = 16;
/// The groups that must run may take so many times the cap on work (along K a work-group cannot be cut), and so many times
/// the elements (a long K reads two of them a multiply-add) and the pieces (a tile of every one of 64 ranks).
const NEEDED: Allowance = Allowance { work: 4, elements: 16, pieces: 2 };
const ONCE: Allowance = Allowance { work: 1, elements: 1, pieces: 1 };
/// Work-groups drawn by the hash of the shape.
const DRAWN: u64 = 16;

/// How many times a cap may be taken.
#[derive(Debug, Clone, Copy)]
struct Allowance {
    work: i128,
    elements: i128,
    pieces: i128,
}

/// What running some work-groups takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// In the unit of the problem's work.
    pub work: i128,
    /// Bytes of pages touched, at most.
    pub bytes: i128,
    /// Runs of neighbouring pages, at most.
    pub pieces: i128,
    pub elements: i128,
}

impl Cost {
    /// The memory of a box of elements: extent and stride per dimension (elements), bytes of one element.
    pub fn of_box(dims: &[(i64, i64)], element_bytes: i64) -> Cost {
        let mut dims: Vec<(i128, i128)> =
            dims.iter().map(|(n, s)| (i128::from(*n), i128::from(*s) * i128::from(element_bytes))).collect();
        let elements = dims.iter().map(|d| d.0).product();
        dims.sort_by_key(|d| d.1);
        // A gap shorter than a page leaves no page untouched: what it separates counts as one run.
        let (mut run, mut pieces) = (i128::from(element_bytes), 1i128);
        for (extent, stride) in dims {
            if stride < run + PAGE {
                run += (extent - 1) * stride;
            } else {
                pieces *= extent;
            }
        }
        let pages = (run + PAGE - 2) / PAGE + 1;
        Cost { work: 0, bytes: pieces * pages * PAGE, pieces, elements }
    }

    pub fn times(self, n: i64) -> Cost {
        let n = i128::from(n);
        Cost { work: self.work * n, bytes: self.bytes * n, pieces: self.pieces * n, elements: self.elements * n }
    }

    /// Whether all of a case may run, rather than some of its work-groups.
    pub fn is_cheap(&self, caps: &Caps) -> bool {
        self.fits(caps) && self.pieces <= pieces_for(caps, WORK_OF_PIECE)
    }

    fn fits(&self, caps: &Caps) -> bool {
        self.excess(caps, ONCE).is_none()
    }

    /// Which cap the cost is above, as a fragment for people; the caps on work and pieces times so many.
    fn excess(&self, caps: &Caps, times: Allowance) -> Option<String> {
        let Allowance { work, elements, pieces } = times;
        let most = pieces_for(caps, WORK_OF_NEEDED_PIECE) * pieces;
        let factor = if work > 1 { format!("{work} times ") } else { String::new() };
        if self.work > i128::from(caps.work) * work {
            Some(format!("{} units of work, above {factor}--max-work {}", self.work, caps.work))
        } else if self.bytes > i128::from(caps.memory) {
            Some(format!("{} bytes of memory, above --max-memory {}", self.bytes, caps.memory))
        } else if self.elements > caps.elements() * elements {
            let most = caps.elements() * elements;
            Some(format!("{} elements, above the {most} under --max-work {}", self.elements, caps.work))
        } else if self.pieces > most {
            Some(format!("{} separate pieces of memory, above the {most} under --max-work {}", self.pieces, caps.work))
        } else {
            None
        }
    }
}

fn pieces_for(caps: &Caps, work_of_piece: i128) -> i128 {
    (i128::from(caps.work) / work_of_piece).clamp(FREE_PIECES, MOST_PIECES)
}

impl std::ops::Add for Cost {
    type Output = Cost;
    fn add(self, o: Cost) -> Cost {
        Cost {
            work: self.work + o.work,
            bytes: self.bytes + o.bytes,
            pieces: self.pieces + o.pieces,
            elements: self.elements + o.elements,
        }
    }
}

impl std::iter::Sum for Cost {
    fn sum<I: Iterator<Item = Cost>>(costs: I) -> Cost {
        costs.fold(Cost::default(), |a, b| a + b)
    }
}

/// Picks work-groups: all of `needed`, then of `wished`, in order, those that still fit. The numbers come back ascending.
///
/// # Errors
/// Says which cap is too low where not even the needed ones fit; they may take several times the work of the cap.
pub fn pick(
    grid: &Grid,
    needed: &[[i64; 3]],
    wished: &[[i64; 3]],
    caps: &Caps,
    cost: impl Fn([i64; 3]) -> Cost,
) -> Result<Vec<u64>, String> {
    let mut picked = std::collections::BTreeSet::new();
    let mut spent = Cost::default();
    for at in needed {
        if picked.insert(grid.id(*at)) {
            spent = spent + cost(*at);
        }
    }
    if let Some(excess) = spent.excess(caps, NEEDED) {
        return Err(format!("its first and last work-group alone take {excess}"));
    }
    let cheap = spent.pieces + pieces_for(caps, WORK_OF_PIECE);
    for at in wished {
        let id = grid.id(*at);
        let sum = spent + cost(*at);
        if !picked.contains(&id) && sum.fits(caps) && sum.pieces <= cheap {
            picked.insert(id);
            spent = sum;
        }
    }
    Ok(picked.into_iter().collect())
}

/// Work-groups worth running besides the first and the last: corners, the neighbours of the last (the last full tiles),
/// the middle of each edge through it, and some drawn by `seed`.
pub fn worthwhile(grid: &Grid, seed: u64) -> Vec<[i64; 3]> {
    let last = grid.last();
    let mut out: Vec<[i64; 3]> =
        (0..8).map(|corner| std::array::from_fn(|d| if corner >> d & 1 == 1 { last[d] } else { 0 })).collect();
    for d in 0..3 {
        for index in [(last[d] - 1).max(0), last[d] / 2] {
            let mut at = last;
            at[d] = index;
            out.push(at);
        }
    }
    out.extend((0..DRAWN).map(|i| grid.group(mix(seed, i) % grid.total())));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Pages of a box whose base lies `start` bytes into a page, by listing every byte's page.
    fn listed(dims: &[(i64, i64)], bytes: i64, start: i64) -> (i128, i128) {
        let mut offsets = vec![0i64];
        for (extent, stride) in dims {
            offsets = offsets.iter().flat_map(|o| (0..*extent).map(move |i| o + i * stride)).collect();
        }
        let ends = |o: &i64| [start + o * bytes, start + o * bytes + bytes - 1];
        let pages: BTreeSet<i64> = offsets.iter().flat_map(ends).map(|b| b.div_euclid(4096)).collect();
        let pieces = pages.iter().filter(|p| !pages.contains(&(*p - 1))).count();
        (pages.len() as i128 * 4096, pieces as i128)
    }

    #[test]
    fn the_cost_of_a_box_is_never_below_what_it_touches() {
        let boxes: [&[(i64, i64)]; 5] = [
            &[(64, 1), (128, 8192)],
            &[(5, 1), (7, 1000), (3, 0)],
            &[(3, 5000), (4, 1)],
            &[(1, 1)],
            &[(9, 700), (9, 1), (4, 90_000)],
        ];
        for dims in boxes {
            for start in [0, 8, 4088] {
                let (bytes, pieces) = listed(dims, 8, start);
                let cost = Cost::of_box(dims, 8);
                assert!(
                    cost.bytes >= bytes && cost.pieces >= pieces,
                    "{dims:?} at {start}: {cost:?} < {bytes}, {pieces}"
                );
                assert!(cost.bytes <= 2 * bytes + 8192 * cost.pieces, "{dims:?} at {start}: {cost:?}, listed {bytes}");
            }
        }
    }

    #[test]
    fn needed_groups_that_do_not_fit_name_the_cap() {
        let grid = Grid { counts: [10, 10, 1] };
        let caps = Caps { work: 100, memory: 1 << 20 };
        let unit = |work: i128, bytes: i128| move |_| Cost { work, bytes, pieces: 1, elements: 1 };
        let needed = [[9, 9, 0], [0, 0, 0]];
        assert!(pick(&grid, &needed, &[], &caps, unit(201, 1)).unwrap_err().contains("4 times --max-work 100"));
        assert!(pick(&grid, &needed, &[], &caps, unit(1, 1 << 20)).unwrap_err().contains("--max-memory"));
        assert_eq!(pick(&grid, &needed, &worthwhile(&grid, 1), &caps, unit(30, 1)).unwrap().len(), 3);
    }

    #[test]
    fn the_groups_of_a_huge_grid_are_found_without_walking_it() {
        let grid = Grid { counts: [1 << 26, 1 << 26, 4] };
        let caps = Caps::default();
        let picked = pick(&grid, &[grid.last(), [0; 3]], &worthwhile(&grid, 7), &caps, |_| Cost::default()).unwrap();
        assert!(picked.len() > 16 && picked.contains(&0) && picked.contains(&(grid.total() - 1)));
        assert!(picked.is_sorted());
    }
}
