//! Planted failures, with arithmetic of their own.

use super::oracle::{PASS, fault, wrong};
use crate::device::Access;
use crate::exec::{Place, Verdict, WrongKind};
use crate::problem::{Builtin, Case, contents::mix};
use std::sync::LazyLock;

/// A GEMM case by name.
pub struct Call {
    pub m: i128,
    pub n: i128,
    pub k: i128,
    pub batch: i128,
    trans: [bool; 2],
    ld: [i128; 4],
    stride: [i128; 4],
    offset: [i128; 4],
    bytes: i128,
    separate: bool,
}

/// Where the parameters of the GEMM stand: narrowing moves none.
static PLACES: LazyLock<[usize; 18]> = LazyLock::new(|| {
    let problem = Builtin::find("gemm").unwrap().problem();
    let names = "m n k batch transA transB lda ldb ldc ldd strideA strideB strideC strideD offA offB offC out";
    let places: Vec<usize> = names.split(' ').map(|n| problem.param(n).unwrap()).collect();
    places.try_into().unwrap()
});

/// Where the element type stands.
static DTYPE: LazyLock<usize> = LazyLock::new(|| Builtin::find("gemm").unwrap().problem().param("dtype").unwrap());

impl Call {
    pub fn of(case: &Case) -> Call {
        let v = PLACES.map(|i| i128::from(case.params[i]));
        Call {
            m: v[0],
            n: v[1],
            k: v[2],
            batch: v[3],
            trans: [v[4] == 1, v[5] == 1],
            ld: [v[6], v[7], v[8], v[9]],
            stride: [v[10], v[11], v[12], v[13]],
            offset: [v[14], v[15], v[16], 0],
            separate: v[17] == 1,
            bytes: [4, 8, 2, 2][case.params[*DTYPE] as usize],
        }
    }

    /// Extents and strides of rows, columns and batch of an operand (0 A, 1 B, 2 C, 3 D).
    fn dims(&self, operand: usize) -> [(i128, i128); 3] {
        let (rows, columns) = [(self.m, self.k), (self.k, self.n), (self.m, self.n), (self.m, self.n)][operand];
        let ld = self.ld[operand];
        let (r, c) = if operand < 2 && self.trans[operand] { (ld, 1) } else { (1, ld) };
        [(rows, r), (columns, c), (self.batch, self.stride[operand])]
    }
}

pub const NAMES: [&str; 4] = ["A", "B", "C", "D"];

fn access(operand: usize) -> Access {
    if operand < 2 { Access::Read } else { Access::Write }
}

/// A planted failure.
#[derive(Debug, Clone, Copy)]
pub enum Rule {
    /// The sum of all terms (or any of them alone) reaches 2^bits elements or bytes.
    Wrap { operand: usize, alone: bool, bytes: bool, bits: u32 },
    /// Every offset of B is kept in 32 bits, signed or not, and goes where that leads.
    Narrowed { signed: bool },
    /// The wrap of B's sum, which ends again at the next power of two.
    Window,
    /// The batch term alone reaches 2^31.
    Batch { operand: usize },
    /// The last tile of rows of A is read whole: fails where rows are left, and from `over` tiles on.
    Edge { tile: i128, over: i128 },
    /// The tail of k of B is read in whole vectors.
    Tail { unroll: i128, least: i128 },
    /// Tile count in 16 bits: nothing is written beyond.
    Tiles { m: i128, n: i128 },
    /// The last index of k is rounded up to the unroll before it is multiplied by lda, in 31 bits.
    Rounded { unroll: i128 },
    /// Outside every grammar.
    Elements { above: i128 },
    /// Outside every grammar, without any size.
    Remainder { of: i128, is: i128 },
    /// Only square outputs, and only large ones.
    Square { from: i128 },
}

impl Rule {
    pub fn verdict(&self, call: &Call) -> Verdict {
        let when = |bad: bool, verdict: Verdict| if bad { verdict } else { PASS };
        match *self {
            Rule::Wrap { operand, alone, bytes, bits } => {
                if operand == 3 && !call.separate {
                    return PASS;
                }
                let terms = call.dims(operand).map(|(e, s)| (e - 1) * s);
                let unit = if bytes { call.bytes } else { 1 };
                let largest = if alone {
                    terms.into_iter().max().unwrap()
                } else {
                    terms.iter().sum::<i128>() + call.offset[operand]
                };
                when(largest * unit >= 1 << bits, fault(NAMES[operand], access(operand), Place::Far))
            }
            Rule::Narrowed { signed } => narrowed(call, signed),
            Rule::Window => {
                let sum: i128 = call.dims(1).iter().map(|(e, s)| (e - 1) * s).sum();
                when((1 << 31..1 << 32).contains(&sum), fault("B", Access::Read, Place::Far))
            }
            Rule::Batch { operand } => when(
                (call.batch - 1) * call.stride[operand] >= 1 << 31,
                fault(NAMES[operand], access(operand), Place::Far),
            ),
            Rule::Edge { tile, over } => {
                when(call.m % tile != 0 && call.m > over * tile, fault("A", Access::Read, Place::PastEnd))
            }
            Rule::Tail { unroll, least } => when(call.k % unroll >= least, fault("B", Access::Read, Place::PastEnd)),
            Rule::Tiles { m, n } => {
                let count = ((call.m + m - 1) / m) * ((call.n + n - 1) / n);
                when(count >= 1 << 16, wrong(WrongKind::Unwritten))
            }
            Rule::Rounded { unroll } => {
                let last = (call.k + unroll - 1) / unroll * unroll - 1;
                when(!call.trans[0] && last * call.ld[0] >= 1 << 31, fault("A", Access::Read, Place::Far))
            }
            Rule::Elements { above } => when(call.m * call.n > above, fault("C", Access::Write, Place::Far)),
            Rule::Remainder { of, is } => when(call.k % of == is, fault("A", Access::Read, Place::PastEnd)),
            Rule::Square { from } => {
                when(call.m == call.n && call.m >= from, fault("C", Access::Write, Place::PastEnd))
            }
        }
    }
}

/// Follows every offset of B (of its corners, where there are many) through 32 bits.
fn narrowed(call: &Call, signed: bool) -> Verdict {
    let dims = call.dims(1);
    let some = |extent: i128| -> Vec<i128> {
        if extent <= 12 { (0..extent).collect() } else { (0..6).chain(extent - 6..extent).collect() }
    };
    let highest: i128 = dims.iter().map(|(e, s)| (e - 1) * s).sum::<i128>() + call.offset[1];
    let near = (64 << 10) / call.bytes;
    let mut damaged = false;
    for z in some(dims[2].0) {
        for j in some(dims[1].0) {
            for i in some(dims[0].0) {
                let true_offset = call.offset[1] + i * dims[0].1 + j * dims[1].1 + z * dims[2].1;
                let kept = if signed { i128::from(true_offset as i32) } else { i128::from(true_offset as u32) };
                if kept == true_offset {
                    continue;
                }
                let place = match kept {
                    k if k < call.offset[1] => {
                        if call.offset[1] - k <= near {
                            Place::BeforeStart
                        } else {
                            Place::Far
                        }
                    }
                    k if k > highest => Place::Far,
                    k if is_element(call, k) => {
                        damaged = true;
                        continue;
                    }
                    _ => Place::Gap,
                };
                return fault("B", Access::Read, place);
            }
        }
    }
    if damaged { wrong(WrongKind::Value) } else { PASS }
}

fn is_element(call: &Call, offset: i128) -> bool {
    let [(r, rs), (c, cs), (b, bs)] = call.dims(1);
    let rest = offset - call.offset[1];
    // The contiguous dimension is solved for, the others are walked while they are short.
    let ((inner, _), (outer, stride)) = if rs == 1 { ((r, rs), (c, cs)) } else { ((c, cs), (r, rs)) };
    (0..b.min(64)).any(|z| {
        let rest = rest - z * bs;
        (0..outer.min(2000)).any(|j| (0..inner).contains(&(rest - j * stride)))
    })
}

/// Draws the parameters of one kind of rule.
pub fn draw(kind: &str, seed: u64) -> Rule {
    let pick = |i: u64, from: &[i128]| from[(mix(seed, i) % from.len() as u64) as usize];
    let operand = (mix(seed, 9) % 4) as usize;
    match kind {
        "sum" => Rule::Wrap { operand, alone: false, bytes: false, bits: 31 },
        "term" => Rule::Wrap { operand, alone: true, bytes: false, bits: pick(0, &[31, 32]) as u32 },
        "bytes" => Rule::Wrap { operand, alone: false, bytes: true, bits: pick(0, &[31, 32]) as u32 },
        "signed" => Rule::Narrowed { signed: true },
        "unsigned" => Rule::Narrowed { signed: false },
        "window" => Rule::Window,
        "batch" => Rule::Batch { operand: operand % 3 },
        "edge" => Rule::Edge { tile: pick(0, &[16, 32, 48, 64, 96, 128, 256]), over: pick(1, &[0, 1, 2]) },
        "tail" => {
            let unroll = pick(0, &[4, 8, 16, 32, 64, 96]);
            Rule::Tail { unroll, least: 1 + (mix(seed, 1) as i128) % (unroll - 1) }
        }
        "tiles" => Rule::Tiles { m: pick(0, &[16, 32, 64, 128]), n: pick(1, &[16, 32, 64, 128]) },
        "rounded" => Rule::Rounded { unroll: pick(0, &[2, 4, 8, 16, 32]) },
        "elements" => Rule::Elements { above: 1000 + (mix(seed, 0) as i128) % 2_000_000 },
        "remainder" => {
            let of = 3 + (mix(seed, 0) as i128) % 120;
            Rule::Remainder { of, is: (mix(seed, 1) as i128) % of }
        }
        "square" => Rule::Square { from: 1 + (mix(seed, 0) as i128) % 200 },
        _ => panic!("no rule is called {kind}"),
    }
}

/// All kinds that [`draw`] knows.
pub const KINDS: [&str; 14] = [
    "sum",
    "term",
    "bytes",
    "signed",
    "unsigned",
    "window",
    "batch",
    "edge",
    "tail",
    "tiles",
    "rounded",
    "elements",
    "remainder",
    "square",
];
