//! The problems that come with the program.

use super::blas::level1;
use super::contents::Contents;
use super::{Instance, Problem, allgather, blas, gemm};
use std::sync::Arc;

/// A problem with the values its cases run on.
#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    pub name: &'static str,
    /// What it computes, in one line.
    pub about: &'static str,
    build: Build,
    pub contents: fn(&Instance, u64) -> Box<dyn Contents>,
    /// Largest work of a case in a hunt, on a library and on a model: such a case takes a few milliseconds. Above it a
    /// library skips, and of a model some work-groups run, which is all that offsets need.
    pub hunt_work: (u64, u64),
}

/// All built-in problems: GEMM, the collectives, and the other routines of BLAS by level, the highest first.
pub const BUILTINS: [Builtin; 19] = [
    Builtin {
        name: "gemm",
        about: "D = alpha op(A) op(B) + beta C, one or a strided batch",
        build: gemm::problem,
        contents: gemm::contents,
        hunt_work: (1 << 21, 1 << 20),
    },
    // Without the first and the last tile a case tells nothing: 64 x 128 elements pushed to 64 ranks, twice, are 2^20.
    Builtin {
        name: "allgather",
        about: "every rank's rows end up on every rank",
        build: allgather::problem,
        contents: allgather::contents,
        hunt_work: (1 << 22, 1 << 22),
    },
    routine("gemmt", "one triangle of C = alpha op(A) op(B) + beta C", blas::gemmt, blas::gemmt_contents),
    routine("symm", "C = alpha A B + beta C or alpha B A + beta C, A symmetric", blas::symm, blas::symm_contents),
    routine("syrk", "one triangle of C = alpha op(A) op(A)^T + beta C", blas::syrk, blas::syrk_contents),
    routine(
        "syr2k",
        "one triangle of C = alpha (op(A) op(B)^T + op(B) op(A)^T) + beta C",
        blas::syr2k,
        blas::syr2k_contents,
    ),
    routine("trmm", "B = alpha op(A) B or alpha B op(A), A triangular", blas::trmm, blas::trmm_contents),
    routine(
        "trsm",
        "B = the X of op(A) X = alpha B or X op(A) = alpha B, A triangular",
        blas::trsm,
        blas::trsm_contents,
    ),
    routine("gemv", "y = alpha op(A) x + beta y", blas::gemv, blas::gemv_contents),
    routine("ger", "A = A + alpha x y^T, or with the conjugate of y", blas::ger, blas::ger_contents),
    routine("axpy", "y = alpha x + y", level1::axpy, level1::axpy_contents),
    routine("copy", "y = x", level1::copy, level1::copy_contents),
    routine("swap", "x and y change places", level1::swap, level1::swap_contents),
    routine("scal", "x = alpha x", level1::scal, level1::scal_contents),
    routine("rot", "x, y = c x + s y, c y - s x", level1::rot, level1::rot_contents),
    routine("dot", "r = sum of x y, or with the conjugate of x", level1::dot, level1::dot_contents),
    routine("asum", "r = sum of |x|", level1::asum, level1::asum_contents),
    routine("nrm2", "r = Euclidean norm of x", level1::nrm2, level1::nrm2_contents),
    routine("iamax", "r = index of the largest |x|", level1::iamax, level1::iamax_contents),
];

type Build = fn() -> Result<Problem, super::expr::ParseError>;

/// A routine that only libraries have, no model.
const fn routine(
    name: &'static str,
    about: &'static str,
    build: Build,
    contents: fn(&Instance, u64) -> Box<dyn Contents>,
) -> Builtin {
    Builtin { name, about, build, contents, hunt_work: (1 << 21, 1 << 21) }
}

impl Builtin {
    pub fn find(name: &str) -> Option<Builtin> {
        BUILTINS.into_iter().find(|b| b.name == name)
    }

    /// The description.
    ///
    /// # Panics
    /// Where the text of a built-in description does not parse: a test builds each of them.
    pub fn problem(&self) -> Arc<Problem> {
        match (self.build)() {
            Ok(p) => Arc::new(p),
            Err(e) => panic!("built-in problem {}: {e}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_problem_parses_and_has_a_plainest_case() {
        for b in BUILTINS {
            let p = b.problem();
            assert_eq!(p.name, b.name);
            let plain = p.plainest().unwrap();
            assert_eq!(p.work(&plain), 1);
        }
    }
}
