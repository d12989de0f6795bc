//! The gemm models: their kernel replayed access by access where that is short, their rule where it is not.

use super::case::{Param, Placement, Sizes, Values};
use super::memory::Memory;
use super::{Place, Rule, Signature, Verdict, i32_of};
use std::collections::HashMap;

const fn size(name: &'static str) -> Param {
    Param { name, choices: &[], least: 1, feature: false }
}
const fn stride(name: &'static str, least: i128) -> Param {
    Param { name, choices: &[], least, feature: false }
}
const fn choice(name: &'static str, choices: &'static [&'static str]) -> Param {
    Param { name, choices, least: 0, feature: true }
}
const fn counted(name: &'static str, least: i128) -> Param {
    Param { name, choices: &[], least, feature: true }
}

static SCHEMA: [Param; 21] = [
    choice("transA", &["N", "T"]),
    choice("transB", &["N", "T"]),
    size("m"),
    size("n"),
    size("k"),
    stride("lda", 1),
    stride("ldb", 1),
    stride("ldc", 1),
    choice("out", &["C", "D"]),
    stride("ldd", 1),
    counted("batch", 1),
    stride("strideA", 0),
    stride("strideB", 0),
    stride("strideC", 0),
    stride("strideD", 0),
    choice("dtype", &["f32", "f64", "f16", "bf16"]),
    choice("alpha", &["1", "-2"]),
    choice("beta", &["0", "1", "-1"]),
    counted("offA", 0),
    counted("offB", 0),
    counted("offC", 0),
];

/// A model of gemm.
#[derive(Debug, Clone)]
pub struct Gemm {
    pub name: String,
    /// A, B or C; C means the result, in C or in D.
    operand: char,
    tile: [i128; 2],
    unroll: i128,
    bits: u32,
}

/// A call by name.
struct Call {
    m: i128,
    n: i128,
    k: i128,
    batch: i128,
    trans: [bool; 2],
    ld: [i128; 4],
    stride: [i128; 4],
    off: [i128; 4],
    bytes: i128,
    separate: bool,
    beta: bool,
}

const A: usize = 0;
const B: usize = 1;
const C: usize = 2;
const D: usize = 3;
const NAMES: [&str; 4] = ["A", "B", "C", "D"];

impl Call {
    fn of(v: &Values) -> Call {
        let [ta, tb, m, n, k, lda, ldb, ldc, out, ldd, batch, sa, sb, sc, sd, dtype, _, beta, oa, ob, oc] = v.0[..]
        else {
            panic!("21 values");
        };
        Call {
            m,
            n,
            k,
            batch,
            trans: [ta == 1, tb == 1],
            ld: [lda, ldb, ldc, ldd],
            stride: [sa, sb, sc, sd],
            off: [oa, ob, oc, 0],
            bytes: [4, 8, 2, 2][dtype as usize],
            separate: out == 1,
            beta: beta != 0,
        }
    }

    fn result(&self) -> usize {
        if self.separate { D } else { C }
    }

    /// Extent and stride along the first and the second index and the batch: (i, l), (l, j), (i, j).
    fn dims(&self, operand: usize) -> [(i128, i128); 3] {
        let [first, second] = [[self.m, self.k], [self.k, self.n], [self.m, self.n], [self.m, self.n]][operand];
        let ld = self.ld[operand];
        let (s, t) = if operand < C && self.trans[operand] { (ld, 1) } else { (1, ld) };
        [(first, s), (second, t), (self.batch, self.stride[operand])]
    }

    /// The right offset, elements from the base pointer.
    fn at(&self, operand: usize, at: [i128; 3]) -> i128 {
        self.off[operand] + self.dims(operand).iter().zip(at).map(|((_, s), i)| i * s).sum::<i128>()
    }

    fn memory(&self, operand: usize, place: &Placement) -> Memory {
        Memory::new(self.bytes, self.off[operand], &self.dims(operand), place)
    }
}

fn up(x: i128, to: i128) -> i128 {
    (x + to - 1) / to * to
}

impl Gemm {
    /// Reads the settings from the name of the kernel: `sim:i32-sum/B/64x64x16`.
    pub fn of_kernel(kernel: &str) -> Gemm {
        let mut parts: Vec<&str> = kernel.strip_prefix("sim:").unwrap().split('/').collect();
        let sides: Vec<i128> = parts.pop().unwrap().split('x').map(|s| s.parse().unwrap()).collect();
        let find = |f: fn(&str) -> bool| parts[1..].iter().find(|p| f(p)).copied();
        let operand = find(|p| p.len() == 1 && "ABC".contains(p)).map_or('C', |p| p.chars().next().unwrap());
        let bits = find(|p| p.ends_with("bit")).map_or(64, |p| p.trim_end_matches("bit").parse().unwrap());
        Gemm { name: parts[0].to_owned(), operand, tile: [sides[0], sides[1]], unroll: sides[2], bits }
    }

    /// Offset, elements from the base pointer, at which the kernel looks for an element.
    fn offset(&self, call: &Call, operand: usize, at: [i128; 3]) -> i128 {
        let terms: Vec<i128> = call.dims(operand).iter().zip(at).map(|((_, s), i)| i * s).collect();
        let narrow = |i: usize, s: i128| i32_of(i32_of(at[i]) * i32_of(s));
        let dims = call.dims(operand);
        let wrong = match self.operand {
            'A' => operand == A,
            'B' => operand == B,
            _ => operand == call.result(),
        };
        let sum = match self.name.as_str() {
            "i32-sum" | "flaky" if wrong => i32_of((0..3).map(|i| narrow(i, dims[i].1)).sum()),
            "i32-term" if wrong => (0..3).map(|i| narrow(i, dims[i].1)).sum(),
            "batch-i32" if wrong => terms[0] + terms[1] + narrow(2, dims[2].1),
            _ => terms.iter().sum(),
        };
        call.off[operand] + sum
    }

    /// Models whose rule is a condition on the call, and what is seen.
    fn condition(&self, call: &Call) -> Option<(bool, &'static str)> {
        let tiles = |x: i128, t: i128| up(x, t) / t;
        let [tm, tn] = self.tile;
        Some(match self.name.as_str() {
            "u32-bytes-drop" => {
                let dims = call.dims(call.result());
                let highest = call.off[call.result()] + dims.iter().map(|(e, s)| (e - 1) * s).sum::<i128>();
                (highest * call.bytes >= 1 << self.bits, "memory")
            }
            "grid-u16" => (tiles(call.n, tn) >= 1 << 16, "memory"),
            "grid-negative" => {
                let padded = i32_of(i32_of(up(call.m, tm)) * i32_of(up(call.n, tn)));
                let blocks = i32_of(padded * i32_of(call.batch)) / (tm * tn);
                (blocks < tiles(call.m, tm) * tiles(call.n, tn) * call.batch, "memory")
            }
            // The least integer that 24 bits of significand do not hold is 2^24 + 1.
            "index-f32" => (call.n - 1 > 1 << 24, "memory"),
            "hang" => (tiles(call.k, self.unroll) >= 1 << 16, "hang"),
            "abort" => (i32_of(i32_of(call.ld[A]) * i32_of(call.k)) < 0, "crash"),
            _ => return None,
        })
    }

    /// Replays the kernel: work-groups one after another, first rows, then columns, then batches.
    fn replay(&self, call: &Call, place: &Placement) -> Result<(), Verdict> {
        let mut run = Run::new(call, place);
        let [tm, tn] = self.tile;
        for z in 0..call.batch {
            for j0 in (0..call.n).step_by(tn as usize) {
                for i0 in (0..call.m).step_by(tm as usize) {
                    self.group(call, &mut run, [i0, j0, z])?;
                }
            }
        }
        run.end(call)
    }

    fn group(&self, call: &Call, run: &mut Run, [i0, j0, z]: [i128; 3]) -> Result<(), Verdict> {
        let [tm, tn] = self.tile;
        let (rows, columns) = (tm.min(call.m - i0), tn.min(call.n - j0));
        let over = |model: &str, operand: char| self.name == model && self.operand == operand;
        let down = if over("edge-overread", 'A') { tm } else { rows };
        let along = if over("edge-overread", 'B') { tn } else { columns };
        let mut seen = Seen::Right;
        for l0 in (0..call.k).step_by(self.unroll as usize) {
            let depth = self.unroll.min(call.k - l0);
            let of_a = if over("k-overread", 'A') { self.unroll } else { depth };
            let of_b = if over("k-overread", 'B') { self.unroll } else { depth };
            let [(_, row), (_, column), _] = call.dims(A);
            for (x, y) in lanes(row <= column, down, of_a) {
                let at = [i0 + x, l0 + y, z];
                let value = run.read(A, self.offset(call, A, at), call.at(A, at))?;
                seen = seen.worse(if x < rows && y < depth { value } else { Seen::Right });
            }
            let [(_, row), (_, column), _] = call.dims(B);
            for (x, y) in lanes(column <= row, along, of_b) {
                let at = [l0 + y, j0 + x, z];
                let value = run.read(B, self.offset(call, B, at), call.at(B, at))?;
                seen = seen.worse(if x < columns && y < depth { value } else { Seen::Right });
            }
        }
        let stored = if self.name == "edge-overwrite" { tn } else { columns };
        for j in 0..stored {
            for i in 0..rows {
                let at = [i0 + i, j0 + j, z];
                let mut value = if j < columns { seen } else { Seen::Wrong };
                if call.beta && j < columns {
                    value = value.worse(run.read(C, call.at(C, at), call.at(C, at))?);
                }
                let result = call.result();
                run.write(self.offset(call, result, at), call.at(result, at), value)?;
            }
        }
        Ok(())
    }
}

/// Lanes along m or n (first) and along k, the one with the smaller stride innermost.
fn lanes(free_inside: bool, free: i128, steps: i128) -> Vec<(i128, i128)> {
    if free_inside {
        (0..steps).flat_map(|y| (0..free).map(move |x| (x, y))).collect()
    } else {
        (0..free).flat_map(|x| (0..steps).map(move |y| (x, y))).collect()
    }
}

/// What a value is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Seen {
    Right,
    /// Another element's: right by chance.
    Another,
    Wrong,
}

impl Seen {
    fn worse(self, other: Seen) -> Seen {
        self.max(other)
    }
}

/// The memory of one launch.
struct Run {
    memory: Vec<Memory>,
    result: usize,
    written: HashMap<i128, Seen>,
    /// Offsets of stores that hit no element.
    stray: Vec<i128>,
    /// A read inside an operand's span that only a page full of NaN answers.
    gap: Option<Signature>,
}

impl Run {
    fn new(call: &Call, place: &Placement) -> Run {
        let memory = (A..=D).map(|o| call.memory(o, place)).collect();
        Run { memory, result: call.result(), written: HashMap::new(), stray: vec![], gap: None }
    }

    fn read(&mut self, operand: usize, at: i128, right: i128) -> Result<Seen, Verdict> {
        let memory = &self.memory[operand];
        let inside = matches!(memory.place(at), Place::Gap | Place::Element);
        if !memory.is_mapped(at) {
            let signature = Signature::located(NAMES[operand], "read", memory.place(at));
            if !inside {
                return Err(Verdict::Bad(signature));
            }
            self.gap.get_or_insert(signature);
            return Ok(Seen::Wrong);
        }
        if at == right && memory.is_element(at) {
            let damaged = operand == self.result && self.written.get(&at).is_some_and(|s| *s != Seen::Right);
            return Ok(if damaged { Seen::Wrong } else { Seen::Right });
        }
        Ok(if memory.is_element(at) { Seen::Another } else { Seen::Wrong })
    }

    fn write(&mut self, at: i128, right: i128, value: Seen) -> Result<(), Verdict> {
        let memory = &self.memory[self.result];
        if !memory.is_mapped(at) {
            return Err(Verdict::Bad(Signature::located(NAMES[self.result], "write", memory.place(at))));
        }
        if memory.is_element(at) {
            let value = if at == right { value } else { value.worse(Seen::Another) };
            self.written.insert(at, value);
        } else {
            self.stray.push(at);
        }
        Ok(())
    }

    fn end(self, call: &Call) -> Result<(), Verdict> {
        let memory = &self.memory[self.result];
        // The lowest changed byte says where.
        if let Some(lowest) = self.stray.iter().min() {
            return Err(Verdict::Bad(Signature::located(NAMES[self.result], "write", memory.place(*lowest))));
        }
        let dims = call.dims(self.result);
        let count: i128 = dims.iter().map(|(e, _)| e).product();
        let missing = (self.written.len() as i128) < count;
        let worst = self.written.values().copied().max().unwrap_or(Seen::Right);
        match (missing, worst, self.gap) {
            (true, ..) | (_, Seen::Wrong, None) => Err(Verdict::Bad(Signature::bare("memory"))),
            (_, Seen::Wrong, Some(gap)) => Err(Verdict::Bad(gap)),
            (_, Seen::Another, _) => Err(Verdict::ByContents),
            (_, Seen::Right, _) => Ok(()),
        }
    }
}

impl Rule for Gemm {
    fn schema(&self) -> &'static [Param] {
        &SCHEMA
    }

    fn is_active(&self, param: usize, v: &Values) -> bool {
        let get = |name| v.0[SCHEMA.iter().position(|p| p.name == name).unwrap()];
        match SCHEMA[param].name {
            "ldd" => get("out") == 1,
            "strideA" | "strideB" | "strideC" => get("batch") > 1,
            "strideD" => get("batch") > 1 && get("out") == 1,
            _ => true,
        }
    }

    fn least(&self, param: usize, v: &Values) -> i128 {
        let call = Call::of(v);
        match SCHEMA[param].name {
            "lda" => [call.m, call.k][usize::from(call.trans[A])],
            "ldb" => [call.k, call.n][usize::from(call.trans[B])],
            "ldc" | "ldd" => call.m,
            "strideC" => (call.n - 1) * call.ld[C] + call.m,
            "strideD" => (call.n - 1) * call.ld[D] + call.m,
            _ => SCHEMA[param].least,
        }
    }

    fn work(&self, v: &Values) -> i128 {
        let c = Call::of(v);
        c.m * c.n * c.k * c.batch
    }

    fn verdict(&self, v: &Values, place: &Placement) -> Verdict {
        let call = Call::of(v);
        match self.condition(&call) {
            Some((true, family)) => Verdict::Bad(Signature::bare(family)),
            Some((false, _)) => Verdict::Pass,
            None => self.replay(&call, place).err().unwrap_or(Verdict::Pass),
        }
    }

    fn large_sizes(&self) -> Vec<Sizes> {
        let [tm, tn] = self.tile;
        let one = |name, values: Vec<i128>| values.into_iter().map(|x| vec![(name, x)]).collect::<Vec<Sizes>>();
        match self.name.as_str() {
            "grid-u16" => one("n", ((tn << 16) - 2 * tn..=(tn << 16) + 1).collect()),
            // Sides of the padded result whose product is 2^31, from one row of tiles to one column.
            "grid-negative" => {
                let tiles = (1i128 << 31).div_euclid(tm * tn) + 1;
                let pair = |a: i128, b: i128| vec![("m", (a - 1) * tm + 1), ("n", (b - 1) * tn + 1)];
                let sides = (1..=64).chain([96, 128, 192, 256, 1 << 10, 1 << 14]);
                let least = move |a: i128| (tiles / a - 2..=tiles / a + 1).filter(|b| *b > 0).map(move |b| (a, b));
                sides.flat_map(least).flat_map(|(a, b)| [pair(a, b), pair(b, a)]).collect()
            }
            "index-f32" => one("n", ((1 << 24) - 4..(1 << 24) + 8).collect()),
            "hang" => {
                let k = self.unroll << 16;
                one("k", (k - 2 * self.unroll..=k + 1).collect())
            }
            _ => vec![],
        }
    }

    fn is_overrun(&self) -> bool {
        ["edge-overread", "k-overread", "edge-overwrite"].contains(&self.name.as_str())
    }
}
