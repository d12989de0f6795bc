//! The all-gather models, replayed access by access.

use super::case::{Param, Placement, Sizes, Values};
use super::memory::Memory;
use super::{Rule, Signature, Verdict, i32_of};
use std::collections::HashMap;

static SCHEMA: [Param; 7] = [
    Param { name: "ranks", choices: &[], least: 1, feature: false },
    Param { name: "M", choices: &[], least: 1, feature: false },
    Param { name: "N", choices: &[], least: 1, feature: false },
    Param { name: "inplace", choices: &["false", "true"], least: 0, feature: true },
    Param { name: "strideIn", choices: &[], least: 1, feature: false },
    Param { name: "strideOut", choices: &[], least: 1, feature: false },
    Param { name: "dtype", choices: &["f32", "bf16", "f16", "f64"], least: 0, feature: true },
];

/// Programs of the persistent kernel.
const PROGRAMS: usize = 64;

/// A model of allgather.
#[derive(Debug, Clone)]
pub struct Gather {
    partitioned: bool,
    narrow: bool,
    tile: [i128; 2],
}

impl Gather {
    /// Reads the settings from the name of the kernel: `sim:persistent-i32/64x128`.
    pub fn of_kernel(kernel: &str) -> Gather {
        let (name, tile) = kernel.strip_prefix("sim:").unwrap().split_once('/').unwrap();
        let sides: Vec<i128> = tile.split('x').map(|s| s.parse().unwrap()).collect();
        let narrow = name.ends_with("i32");
        Gather { partitioned: name.starts_with("partitioned"), narrow, tile: [sides[0], sides[1]] }
    }

    fn width(&self, x: i128) -> i128 {
        if self.narrow { i32_of(x) } else { x }
    }

    /// `row * strideIn + column`.
    fn input(&self, row: i128, column: i128, stride: i128) -> i128 {
        self.width(self.width(row) * self.width(stride) + self.width(column))
    }

    /// `(row + rank * M) * strideOut + column`.
    fn output(&self, rank: i128, rows: i128, row: i128, column: i128, stride: i128) -> i128 {
        let output_row = self.width(self.width(row) + self.width(rank) * self.width(rows));
        self.width(output_row * self.width(stride) + self.width(column))
    }

    /// Tile after tile of a rank, and where each goes, in the order of the kernel.
    fn pushes(&self, ranks: i128, tiles: [i128; 2]) -> Vec<([i128; 2], i128)> {
        let all: Vec<[i128; 2]> = (0..tiles[1]).flat_map(|y| (0..tiles[0]).map(move |x| [x, y])).collect();
        let to_all = |t: [i128; 2]| (0..ranks).map(move |d| (t, d));
        if self.partitioned {
            return (0..ranks).flat_map(|d| all.iter().map(move |t| (*t, d)).collect::<Vec<_>>()).collect();
        }
        let of_program = |p: usize| all.iter().skip(p).step_by(PROGRAMS).flat_map(|t| to_all(*t)).collect::<Vec<_>>();
        (0..PROGRAMS).flat_map(of_program).collect()
    }

    fn replay(&self, v: &Values, place: &Placement) -> Result<(), Verdict> {
        let [ranks, m, n, inplace, stride_in, stride_out, dtype] = v.0[..] else { panic!("7 values") };
        let bytes = [4, 2, 2, 8][dtype as usize];
        let inplace = inplace == 1;
        let output = Memory::new(bytes, 0, &[(ranks, m * stride_out), (m, stride_out), (n, 1)], place);
        let input = Memory::new(bytes, 0, &[(m, stride_in), (n, 1)], place);
        // Whether a value of some output is right, by rank and offset.
        let mut written: HashMap<(i128, i128), bool> = HashMap::new();
        let mut by_contents = false;
        let tiles = [(m + self.tile[0] - 1) / self.tile[0], (n + self.tile[1] - 1) / self.tile[1]];
        for rank in 0..ranks {
            for (tile, to) in self.pushes(ranks, tiles) {
                for row in tile[0] * self.tile[0]..((tile[0] + 1) * self.tile[0]).min(m) {
                    for column in tile[1] * self.tile[1]..((tile[1] + 1) * self.tile[1]).min(n) {
                        let (from, name, memory, right) = if inplace {
                            let block = rank * m * stride_out;
                            let at = block + self.input(row, column, stride_out);
                            (at, "out", &output, block + row * stride_out + column)
                        } else {
                            (self.input(row, column, stride_in), "in", &input, row * stride_in + column)
                        };
                        if !memory.is_mapped(from) {
                            return Err(Verdict::Bad(Signature::located(name, "read", memory.place(from))));
                        }
                        by_contents |= from != right;
                        let at = self.output(rank, m, row, column, stride_out);
                        if !output.is_mapped(at) {
                            return Err(Verdict::Bad(Signature::located("out", "write", output.place(at))));
                        }
                        let right = (rank * m + row) * stride_out + column;
                        if !output.is_element(at) {
                            return Err(Verdict::Bad(Signature::located("out", "write", output.place(at))));
                        }
                        by_contents |= at != right;
                        written.insert((to, at), at == right);
                    }
                }
            }
        }
        if by_contents {
            return Err(Verdict::ByContents);
        }
        Ok(())
    }
}

impl Rule for Gather {
    fn schema(&self) -> &'static [Param] {
        &SCHEMA
    }

    fn is_active(&self, param: usize, v: &Values) -> bool {
        SCHEMA[param].name != "strideIn" || v.0[3] == 0
    }

    fn least(&self, param: usize, v: &Values) -> i128 {
        if SCHEMA[param].name.starts_with("stride") { v.0[2] } else { SCHEMA[param].least }
    }

    fn work(&self, v: &Values) -> i128 {
        v.0[0] * v.0[0] * v.0[1] * v.0[2]
    }

    fn verdict(&self, v: &Values, place: &Placement) -> Verdict {
        self.replay(v, place).err().unwrap_or(Verdict::Pass)
    }

    fn large_sizes(&self) -> Vec<Sizes> {
        vec![]
    }

    fn is_overrun(&self) -> bool {
        false
    }
}
