//! The routines: their arguments as a line of names, and the names of their functions by element type.

use super::invoke::{Arg, Number, Passed, Prototype, Returning};
use crate::problem::{Case, Dtype, Instance, Problem};
use std::ffi::c_int;

// The values of the enums in cblas.h.
pub const COLUMN_MAJOR: c_int = 102;
pub const NO_TRANS: c_int = 111;
pub const TRANS: c_int = 112;
const CONJ_TRANS: c_int = 113;
const UPPER: c_int = 121;
const LOWER: c_int = 122;
const NON_UNIT: c_int = 131;
const UNIT: c_int = 132;
const LEFT: c_int = 141;
const RIGHT: c_int = 142;

/// Which function of a routine a case calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variant {
    Plain,
    /// One operand is conjugated: gerc, dotc.
    Conj,
    /// Several products: gemm_batch_strided.
    Batch,
}

/// The prototype of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Void(Prototype),
    /// The caller writes the result to the operand r.
    Number(Returning),
    /// A number as above, a root: libraries round it in the last places.
    Root(Returning),
    Index,
}

/// One routine: the problem of that name, and the arguments of its functions in order.
#[derive(Debug, Clone, Copy)]
pub struct Routine {
    pub problem: &'static str,
    kind: Kind,
    args: &'static str,
}

const fn void(problem: &'static str, prototype: Prototype, args: &'static str) -> Routine {
    Routine { problem, kind: Kind::Void(prototype), args }
}

/// All routines, by problem.
const ROUTINES: [Routine; 18] = [
    void("gemm", Prototype::Gemm, "order transA transB m n k alpha A lda B ldb beta C ldc"),
    void("gemmt", Prototype::Gemmt, "order uplo transA transB n k alpha A lda B ldb beta C ldc"),
    void("symm", Prototype::Symm, "order side uplo m n alpha A lda B ldb beta C ldc"),
    void("syrk", Prototype::Syrk, "order uplo trans n k alpha A lda beta C ldc"),
    void("syr2k", Prototype::Symm, "order uplo trans n k alpha A lda B ldb beta C ldc"),
    void("trmm", Prototype::Trmm, "order side uplo trans diag m n alpha A lda B ldb"),
    void("trsm", Prototype::Trmm, "order side uplo trans diag m n alpha A lda B ldb"),
    void("gemv", Prototype::Gemv, "order trans m n alpha A lda x incx beta y incy"),
    void("ger", Prototype::Ger, "order m n alpha x incx y incy A lda"),
    void("axpy", Prototype::Axpy, "n alpha x incx y incy"),
    void("copy", Prototype::Copy, "n x incx y incy"),
    void("swap", Prototype::Copy, "n x incx y incy"),
    void("scal", Prototype::Scal, "n alpha x incx"),
    void("rot", Prototype::Rot, "n x incx y incy c s"),
    Routine { problem: "dot", kind: Kind::Number(Returning::Dot), args: "n x incx y incy" },
    Routine { problem: "asum", kind: Kind::Number(Returning::Asum), args: "n x incx" },
    Routine { problem: "nrm2", kind: Kind::Root(Returning::Asum), args: "n x incx" },
    Routine { problem: "iamax", kind: Kind::Index, args: "n x incx" },
];

const BATCH_STRIDED: &str = "order transA transB m n k alpha A lda strideA B ldb strideB beta C ldc strideC batch";

/// An element type as CBLAS sees it: `dtype` of the problem, letter of the function, how numbers are passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Type {
    pub dtype: &'static str,
    letter: &'static str,
    pub passed: Passed,
}

const fn of(dtype: &'static str, letter: &'static str, passed: Passed) -> Type {
    Type { dtype, letter, passed }
}

/// The types, those of mixed precision without a letter of their own.
pub const TYPES: [Type; 6] = [
    of("f32", "s", Passed::Single),
    of("f64", "d", Passed::Double),
    of("c64", "c", Passed::SingleComplex),
    of("c128", "z", Passed::DoubleComplex),
    of("bf16_f32", "", Passed::Single),
    of("f16_f32", "", Passed::Single),
];

impl Type {
    fn is_complex(self) -> bool {
        Dtype::from_name(self.dtype).is_some_and(Dtype::is_complex)
    }
}

impl Routine {
    /// The routine of a problem.
    pub fn find(problem: &str) -> Option<Routine> {
        ROUTINES.into_iter().find(|r| r.problem == problem)
    }

    pub fn all() -> impl Iterator<Item = Routine> {
        ROUTINES.into_iter()
    }

    /// The names of all routines.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ROUTINES.iter().map(|r| r.problem)
    }

    /// Names of the function without `cblas_`, in the order in which they are tried; none where there is no such function.
    pub fn functions(&self, of: Type, variant: Variant) -> Vec<String> {
        let letter = of.letter;
        let plain = |name: &str| vec![format!("{letter}{name}")];
        let norm = |name: &str| match letter {
            "c" => vec![format!("sc{name}")],
            "z" => vec![format!("dz{name}")],
            _ => plain(name),
        };
        match (self.problem, of.dtype, variant) {
            // OpenBLAS, then MKL.
            ("gemm", "bf16_f32", Variant::Plain) => vec!["sbgemm".into(), "gemm_bf16bf16f32".into()],
            ("gemm", "f16_f32", Variant::Plain) => vec!["shgemm".into(), "gemm_f16f16f32".into()],
            (_, "bf16_f32" | "f16_f32", _) => vec![],
            ("gemm", _, Variant::Batch) => plain("gemm_batch_strided"),
            (_, _, Variant::Batch) => vec![],
            ("ger", _, Variant::Conj) if of.is_complex() => plain("gerc"),
            ("dot", _, Variant::Conj) if of.is_complex() => plain("dotc_sub"),
            (_, _, Variant::Conj) => vec![],
            ("ger", ..) if of.is_complex() => plain("geru"),
            ("dot", ..) if of.is_complex() => plain("dotu_sub"),
            ("rot", ..) if of.is_complex() => vec![],
            ("asum" | "nrm2", ..) => norm(self.problem),
            ("iamax", ..) => vec![format!("i{letter}amax")],
            (name, ..) => plain(name),
        }
    }

    /// The prototype of a function and its arguments, by name.
    pub fn prototype(&self, of: Type, variant: Variant) -> (Kind, Vec<&'static str>) {
        match variant {
            Variant::Batch => (Kind::Void(Prototype::GemmBatchStrided), BATCH_STRIDED.split(' ').collect()),
            _ if self.problem == "dot" && of.is_complex() => {
                (Kind::Void(Prototype::DotSub), self.args.split(' ').chain(["r"]).collect())
            }
            _ => (self.kind, self.args.split(' ').collect()),
        }
    }
}

/// The function that a case needs.
pub fn wanted(instance: &Instance) -> (Option<Type>, Variant) {
    let dtype = instance.word("dtype");
    let is = |param: &str, plain: i64| instance.problem.param(param).is_some_and(|p| instance.case.params[p] != plain);
    let variant = match (is("batch", 1), is("conj", 0)) {
        (true, _) => Variant::Batch,
        (_, true) => Variant::Conj,
        _ => Variant::Plain,
    };
    (TYPES.into_iter().find(|t| t.dtype == dtype), variant)
}

/// Where an argument comes from.
#[derive(Debug, Clone)]
pub enum Slot {
    Order,
    /// A choice, and the value and name of the enum for each of its values.
    Enum {
        param: usize,
        values: Vec<(c_int, &'static str)>,
    },
    /// An integer, and the flag that negates it.
    Int {
        name: &'static str,
        param: usize,
        negated: Option<usize>,
    },
    /// A choice whose values are numbers.
    Number {
        param: usize,
        values: Vec<Number>,
    },
    Pointer {
        operand: usize,
    },
}

impl Slot {
    /// The slots of arguments of a problem; `None` where the problem has no such parameter or operand.
    pub fn all(problem: &Problem, args: &[&'static str]) -> Option<Vec<Slot>> {
        args.iter().map(|name| Slot::new(problem, name)).collect()
    }

    fn new(problem: &Problem, name: &'static str) -> Option<Slot> {
        if name == "order" {
            return Some(Slot::Order);
        }
        let Some(param) = problem.param(name) else {
            return problem.operand(name).map(|operand| Slot::Pointer { operand });
        };
        let texts = problem.params[param].texts();
        if texts.is_empty() {
            // incx and negx, incy and negy.
            let flag = name.strip_prefix("inc").map(|vector| format!("neg{vector}"));
            let negated = flag.and_then(|flag| problem.param(&flag));
            return Some(Slot::Int { name, param, negated });
        }
        if let Some(values) = texts.iter().map(|t| Some(Number::new(t.parse().ok()?))).collect() {
            return Some(Slot::Number { param, values });
        }
        let values = texts.iter().map(|t| word(name, t)).collect::<Option<_>>()?;
        Some(Slot::Enum { param, values })
    }

    /// The argument of a case; `base` gives the address of an operand's element of offset 0.
    pub fn arg(&self, instance: &Instance, base: impl Fn(usize) -> *mut u8) -> Arg {
        let value = |param: usize| instance.case.params[param];
        match self {
            Slot::Order => Arg::Enum(COLUMN_MAJOR),
            Slot::Enum { param, values } => Arg::Enum(values[value(*param) as usize].0),
            Slot::Int { param, negated, .. } => {
                let negative = negated.is_some_and(|flag| value(flag) != 0);
                Arg::Int(if negative { -value(*param) } else { value(*param) })
            }
            Slot::Number { param, values } => Arg::Number(values[value(*param) as usize]),
            Slot::Pointer { operand } => Arg::Pointer(base(*operand).wrapping_offset(offset(instance, *operand).1)),
        }
    }

    /// The argument as a word of C.
    pub fn text(&self, instance: &Instance, of: Type) -> String {
        let value = |param: usize| instance.case.params[param];
        match self {
            Slot::Order => "CblasColMajor".to_owned(),
            Slot::Enum { param, values } => values[value(*param) as usize].1.to_owned(),
            Slot::Int { param, negated, .. } => match negated {
                Some(flag) if value(*flag) != 0 => format!("-{}", value(*param)),
                _ => value(*param).to_string(),
            },
            Slot::Number { param, .. } => {
                let number = instance.problem.params[*param].show(value(*param));
                match of.passed {
                    Passed::Single | Passed::Double => number.to_string(),
                    Passed::SingleComplex => format!("(float[]){{{number}, 0}}"),
                    Passed::DoubleComplex => format!("(double[]){{{number}, 0}}"),
                }
            }
            Slot::Pointer { operand } => {
                let name = &instance.problem.operands[*operand].name;
                match (offset(instance, *operand).0, of.is_complex()) {
                    (0, _) if name == "r" => format!("&{name}"),
                    (0, _) => name.clone(),
                    // A pointer to a complex array is one to void, or to its real parts.
                    (elements, true) => format!("{name} + 2*{elements}"),
                    (elements, false) => format!("{name} + {elements}"),
                }
            }
        }
    }
}

/// Elements and bytes from an operand's element of offset 0 to the address that BLAS is given: that of its lowest element.
fn offset(instance: &Instance, operand: usize) -> (i64, isize) {
    instance.view(operand).map_or((0, 0), |v| (v.lowest(0), (v.lowest(0) * v.element_bytes) as isize))
}

fn word(param: &str, value: &str) -> Option<(c_int, &'static str)> {
    Some(match (param.trim_end_matches(['A', 'B']), value) {
        ("trans", "N") => (NO_TRANS, "CblasNoTrans"),
        ("trans", "T") => (TRANS, "CblasTrans"),
        ("trans", "C") => (CONJ_TRANS, "CblasConjTrans"),
        ("uplo", "U") => (UPPER, "CblasUpper"),
        ("uplo", "L") => (LOWER, "CblasLower"),
        ("diag", "N") => (NON_UNIT, "CblasNonUnit"),
        ("diag", "U") => (UNIT, "CblasUnit"),
        ("side", "L") => (LEFT, "CblasLeft"),
        ("side", "R") => (RIGHT, "CblasRight"),
        _ => return None,
    })
}

/// The call of a case as a line of C: `cblas_sgemm(CblasColMajor, CblasNoTrans, ...)`; a pointer that is not the start of its
/// array reads `A + 4`. `None` where CBLAS has no such call, or libraries have different names for it.
pub fn call_text(problem: &Problem, case: &Case) -> Option<String> {
    let routine = Routine::find(&problem.name)?;
    let instance = std::sync::Arc::new(problem.clone()).instance(case.clone()).ok()?;
    let (of, variant) = (wanted(&instance).0?, wanted(&instance).1);
    if writes_elsewhere(&instance) {
        return None;
    }
    let [function] = &routine.functions(of, variant)[..] else { return None };
    let (kind, args) = routine.prototype(of, variant);
    let args: Vec<String> = Slot::all(problem, &args)?.iter().map(|slot| slot.text(&instance, of)).collect();
    let result = if matches!(kind, Kind::Void(_)) { "" } else { "r = " };
    Some(format!("{result}cblas_{function}({})", args.join(", ")))
}

/// Whether the result of a gemm goes to an operand that CBLAS does not have.
pub fn writes_elsewhere(instance: &Instance) -> bool {
    instance.problem.param("out").is_some_and(|p| instance.case.params[p] != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{BUILTINS, Builtin, Knobs, Placement, Value};

    fn text(problem: &str, words: &[(&str, &str)]) -> Option<String> {
        let problem = Builtin::find(problem).unwrap().problem();
        let named = words.iter().map(|(n, v)| ((*n).to_owned(), Value::from_word(v))).collect();
        let params = problem.complete(&named).unwrap();
        call_text(&problem, &Case { params, knobs: Knobs::new(), placement: Placement::END })
    }

    #[test]
    fn a_case_reads_as_the_call_it_makes() {
        let gemm =
            [("m", "2"), ("n", "3"), ("k", "4"), ("transB", "T"), ("dtype", "f64"), ("offB", "5"), ("beta", "-1")];
        let expected = "cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, 2, 3, 4, 1, A, 2, B + 5, 3, -1, C, 2)";
        assert_eq!(text("gemm", &gemm).as_deref(), Some(expected));
        let axpy = [("n", "4"), ("incx", "3"), ("negx", "true"), ("dtype", "c64"), ("alpha", "-2")];
        assert_eq!(text("axpy", &axpy).as_deref(), Some("cblas_caxpy(4, (float[]){-2, 0}, x, -3, y, 1)"));
        let dot = |dtype: &'static str| [("n", "4"), ("dtype", dtype)];
        assert_eq!(text("dot", &dot("f32")).as_deref(), Some("r = cblas_sdot(4, x, 1, y, 1)"));
        assert_eq!(text("dot", &dot("c128")).as_deref(), Some("cblas_zdotu_sub(4, x, 1, y, 1, &r)"));
        let batch = [("m", "2"), ("n", "2"), ("k", "2"), ("batch", "3"), ("strideA", "4"), ("strideB", "0")];
        let expected = "cblas_sgemm_batch_strided(CblasColMajor, CblasNoTrans, CblasNoTrans, 2, 2, 2, 1, A, 2, 4, B, 2, 0, 0, C, \
                        2, 4, 3)";
        assert_eq!(text("gemm", &batch).as_deref(), Some(expected));
    }

    #[test]
    fn what_cblas_has_no_call_for_has_no_text() {
        for words in [("dtype", "bf16"), ("dtype", "bf16_f32"), ("out", "D")] {
            assert_eq!(text("gemm", &[words]), None);
        }
        assert_eq!(text("allgather", &[]), None);
    }

    #[test]
    fn every_problem_with_an_element_type_of_blas_has_all_its_arguments() {
        for routine in ROUTINES {
            let problem = Builtin::find(routine.problem).unwrap().problem();
            for of in TYPES {
                for variant in [Variant::Plain, Variant::Conj, Variant::Batch] {
                    if !routine.functions(of, variant).is_empty() {
                        let (_, args) = routine.prototype(of, variant);
                        assert_eq!(Slot::all(&problem, &args).unwrap().len(), args.len(), "{}", routine.problem);
                    }
                }
            }
        }
        assert_eq!(ROUTINES.len() + 1, BUILTINS.len());
    }
}
