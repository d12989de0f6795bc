//! The list of models: names, planted defects, what each can be set to.

use super::gemm::models::Operand;
use super::gemm::models::Operand::{A, B, C};

/// What a gemm model gets wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GemmKind {
    Clean,
    I32Sum,
    I32Term,
    BatchI32,
    BytesDrop,
    EdgeOverread,
    KOverread,
    EdgeOverwrite,
    GridU16,
    GridNegative,
    IndexF32,
    Hang,
    Abort,
    Flaky,
}

/// Which kernel a model runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Gemm(GemmKind),
    /// Tiles split over programs by number, or by the rank they go to; offsets in 64 bits or in 32.
    AllGather {
        partitioned: bool,
        wide: bool,
    },
}

/// A model, as `shrinkfault targets` lists it.
#[derive(Debug, PartialEq)]
pub struct ModelInfo {
    pub name: &'static str,
    pub problem: &'static str,
    /// The planted defect in one line.
    pub defect: &'static str,
    /// No defect is planted: the control.
    pub clean: bool,
    pub kind: Kind,
    /// Values of `operand`, the default first; empty where it is no setting of the model.
    pub operands: &'static [Operand],
    /// Values of `bits`, the default first.
    pub bits: &'static [u32],
}

const fn gemm(
    kind: GemmKind,
    name: &'static str,
    operands: &'static [Operand],
    bits: &'static [u32],
    defect: &'static str,
) -> ModelInfo {
    let clean = matches!(kind, GemmKind::Clean);
    ModelInfo { name, problem: "gemm", defect, clean, kind: Kind::Gemm(kind), operands, bits }
}

const fn allgather(name: &'static str, partitioned: bool, wide: bool, defect: &'static str) -> ModelInfo {
    let kind = Kind::AllGather { partitioned, wide };
    ModelInfo { name, problem: "allgather", defect, clean: wide, kind, operands: &[], bits: &[] }
}

/// The models of gemm; the first is the default.
static GEMM: [ModelInfo; 14] = [
    gemm(GemmKind::I32Sum, "i32-sum", &[B, A, C], &[], "the element offset of one operand is summed in 32 bits"),
    gemm(
        GemmKind::I32Term,
        "i32-term",
        &[B, A, C],
        &[],
        "each stride term of one operand is narrowed to 32 bits alone",
    ),
    gemm(GemmKind::BatchI32, "batch-i32", &[C, A, B], &[], "batch index times batch stride of one operand has 32 bits"),
    gemm(
        GemmKind::BytesDrop,
        "u32-bytes-drop",
        &[],
        &[32, 31],
        "stores at byte offsets of 2^bits and above are dropped",
    ),
    gemm(GemmKind::EdgeOverread, "edge-overread", &[B, A], &[], "the edge tile of A or B is loaded without a mask"),
    gemm(GemmKind::KOverread, "k-overread", &[A, B], &[], "the K tail of A or B is loaded without a mask"),
    gemm(GemmKind::EdgeOverwrite, "edge-overwrite", &[], &[], "the edge tile is stored without a mask along n"),
    gemm(GemmKind::GridU16, "grid-u16", &[], &[], "the number of tiles along n has 16 bits: the rest is not run"),
    gemm(
        GemmKind::GridNegative,
        "grid-negative",
        &[],
        &[],
        "the rounded-up size has 32 bits: few or no work-groups run",
    ),
    gemm(GemmKind::IndexF32, "index-f32", &[], &[], "the column index of stores is carried in f32"),
    gemm(GemmKind::Hang, "hang", &[], &[], "the counter of K blocks has 16 bits: 65,536 blocks never end"),
    gemm(GemmKind::Abort, "abort", &[], &[], "the launcher asserts that lda * k in 32 bits is not negative"),
    gemm(GemmKind::Flaky, "flaky", &[B, A, C], &[], "as i32-sum, but only in a part of the launches"),
    gemm(GemmKind::Clean, "clean", &[], &[], "none: offsets in 64 bits, every edge masked"),
];

const WRAP: &str = "row and offset are computed in 32 bits before the pointer moves to the peer";
const NO_WRAP: &str = "none: row and offset in 64 bits";

/// The models of allgather; the first is the default.
static ALLGATHER: [ModelInfo; 4] = [
    allgather("persistent-i32", false, false, WRAP),
    allgather("partitioned-i32", true, false, WRAP),
    allgather("persistent-i64", false, true, NO_WRAP),
    allgather("partitioned-i64", true, true, NO_WRAP),
];

/// The models of a problem, the default first; empty where the problem has none.
pub fn models(problem: &str) -> &'static [ModelInfo] {
    match problem {
        "gemm" => &GEMM,
        "allgather" => &ALLGATHER,
        _ => &[],
    }
}

/// The model called `name`, or the default where the name is empty.
pub fn find(problem: &str, name: &str) -> Result<&'static ModelInfo, String> {
    let list = models(problem);
    let names = || list.iter().map(|m| m.name).collect::<Vec<_>>().join(", ");
    let Some(first) = list.first() else {
        return Err(format!("there is no sim model of {problem}; use gemm or allgather, or another target"));
    };
    if name.is_empty() {
        return Ok(first);
    }
    list.iter()
        .find(|m| m.name == name)
        .ok_or_else(|| format!("there is no sim model '{name}' of {problem}; choose one of {}", names()))
}
