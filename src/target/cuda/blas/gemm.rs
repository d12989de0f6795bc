//! The arguments of a product, taken from a case.

use super::types::{Scalar, Type};
use crate::problem::{Instance, gemm};
use crate::target::Bases;

/// `cublasOperation_t` of cublas_api.h.
const OPERATIONS: [(&str, u32, &str); 3] = [("N", 0, "CUBLAS_OP_N"), ("T", 1, "CUBLAS_OP_T"), ("C", 2, "CUBLAS_OP_C")];

/// One matrix of a product, as it is stored by columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Side {
    /// Address of its first element on the card.
    pub address: u64,
    pub rows: i64,
    pub columns: i64,
    /// Elements between two columns.
    pub leading: i64,
    /// Elements between two matrices of a batch; 0 where there is one.
    pub stride: i64,
    /// Bytes of an element.
    pub element_bytes: i64,
}

impl Side {
    /// The largest power of two up to 256 that divides the address.
    pub fn alignment(&self) -> u32 {
        1 << self.address.trailing_zeros().min(8)
    }

    /// Address of the first element of a matrix of the batch.
    pub fn at(&self, product: i64) -> u64 {
        self.address.wrapping_add_signed(product.wrapping_mul(self.stride).wrapping_mul(self.element_bytes))
    }
}

/// A product: D = alpha * op(A) * op(B) + beta * C.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gemm {
    pub of: &'static Type,
    /// op(A), op(B).
    pub operations: [u32; 2],
    pub m: i64,
    pub n: i64,
    pub k: i64,
    pub batch: i64,
    pub a: Side,
    pub b: Side,
    pub c: Side,
    /// `None`: the result goes to C.
    pub d: Option<Side>,
    pub alpha: Scalar,
    pub beta: Scalar,
}

impl Gemm {
    /// # Errors
    /// One sentence, where the libraries have no such type.
    pub fn new(instance: &Instance, bases: &dyn Bases) -> Result<Gemm, String> {
        let dtype = instance.word("dtype");
        let of = Type::find(&dtype).ok_or_else(|| format!("dtype={dtype}: the library has no such type"))?;
        let [m, n, k, batch] = ["m", "n", "k", "batch"].map(|name| instance.get(name));
        let operations = ["transA", "transB"].map(|name| operation(&instance.word(name)).0);
        let side = |operand: usize, rows: i64, columns: i64, leading: &str, stride: &str| {
            let view = instance.view(operand)?;
            let base = bases.base(operand, 0).expose_provenance() as u64;
            Some(Side {
                address: base.wrapping_add_signed(view.offset_of(0, &[0, 0, 0]) * view.element_bytes),
                rows,
                columns,
                leading: instance.get(leading),
                stride: if batch > 1 { instance.get(stride) } else { 0 },
                element_bytes: view.element_bytes,
            })
        };
        let stored =
            |operation: u32, rows: i64, columns: i64| if operation == 0 { (rows, columns) } else { (columns, rows) };
        let (rows_a, columns_a) = stored(operations[0], m, k);
        let (rows_b, columns_b) = stored(operations[1], k, n);
        let missing = || "the case lacks an operand of a product".to_owned();
        let factor = |name: &str| Scalar::new(instance.word(name).parse().unwrap_or(1), of.scale);
        Ok(Gemm {
            of,
            operations,
            m,
            n,
            k,
            batch,
            a: side(gemm::A, rows_a, columns_a, "lda", "strideA").ok_or_else(missing)?,
            b: side(gemm::B, rows_b, columns_b, "ldb", "strideB").ok_or_else(missing)?,
            c: side(gemm::C, m, n, "ldc", "strideC").ok_or_else(missing)?,
            d: side(gemm::D, m, n, "ldd", "strideD"),
            alpha: factor("alpha"),
            beta: factor("beta"),
        })
    }

    /// Where the result goes.
    pub fn result(&self) -> Side {
        self.d.unwrap_or(self.c)
    }

    /// Whether every parameter fits a C `int`.
    pub fn fits_int(&self) -> bool {
        let sides = [self.a.leading, self.b.leading, self.c.leading, self.m, self.n, self.k, self.batch];
        sides.iter().all(|x| i32::try_from(*x).is_ok())
    }

    /// Names of op(A) and op(B) in cublas_api.h.
    pub fn operation_names(&self) -> [&'static str; 2] {
        self.operations.map(|code| OPERATIONS[code as usize].2)
    }
}

/// The code of an operation and its name.
fn operation(word: &str) -> (u32, &'static str) {
    OPERATIONS.iter().find(|o| o.0 == word).map_or((0, OPERATIONS[0].2), |o| (o.1, o.2))
}

#[cfg(test)]
pub mod testing {
    use super::*;
    use crate::problem::{Builtin, Case, Instance, Knobs, Placement, Value};
    use std::sync::Arc;

    /// Operands at multiples of 2^40.
    pub struct Far;

    impl Bases for Far {
        fn base(&self, operand: usize, _copy: u32) -> *mut u8 {
            std::ptr::without_provenance_mut((operand + 1) << 40)
        }
    }

    pub fn instance(words: &[(&str, &str)]) -> Instance {
        let problem = Builtin::find("gemm").unwrap().problem();
        let named = words.iter().map(|(n, v)| ((*n).to_owned(), Value::from_word(v))).collect();
        let params = problem.complete(&named).unwrap();
        let case = Case { params, knobs: Knobs::new(), placement: Placement::END };
        Arc::new(problem).instance(case).unwrap()
    }

    pub fn gemm(words: &[(&str, &str)]) -> Gemm {
        Gemm::new(&instance(words), &Far).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::testing::gemm;
    use super::*;

    #[test]
    fn matrices_are_described_as_they_are_stored() {
        let g = gemm(&[("m", "3"), ("n", "5"), ("k", "7"), ("transA", "T"), ("transB", "C"), ("dtype", "c64")]);
        assert_eq!((g.a.rows, g.a.columns, g.a.leading), (7, 3, 7));
        assert_eq!((g.b.rows, g.b.columns, g.b.leading), (5, 7, 5));
        assert_eq!((g.c.rows, g.c.columns, g.c.leading, g.d), (3, 5, 3, None));
        assert_eq!(g.operation_names(), ["CUBLAS_OP_T", "CUBLAS_OP_C"]);
        assert_eq!(g.result(), g.c);
    }

    #[test]
    fn pointers_are_those_of_the_first_elements_and_their_alignment_is_the_real_one() {
        let g = gemm(&[("m", "4"), ("offA", "3"), ("offB", "32"), ("offC", "1"), ("dtype", "f16"), ("out", "D")]);
        assert_eq!(g.a.address, (1 << 40) + 6);
        assert_eq!((g.a.alignment(), g.b.alignment(), g.c.alignment()), (2, 64, 2));
        assert_eq!(g.result().address, 4 << 40);
        assert_eq!(g.result().alignment(), 256);
    }

    #[test]
    fn strides_of_a_batch_are_in_elements_and_addresses_in_bytes() {
        let words = [("m", "2"), ("n", "2"), ("batch", "3"), ("strideA", "0"), ("strideB", "9"), ("dtype", "f64")];
        let g = gemm(&words);
        assert_eq!((g.a.at(2), g.b.at(2)), (1 << 40, (2 << 40) + 144));
        assert_eq!(g.c.at(1), (3 << 40) + 32);
    }

    #[test]
    fn one_long_parameter_is_enough_to_need_64_bits() {
        assert!(gemm(&[("lda", "2147483647")]).fits_int());
        for name in ["lda", "ldb", "ldc"] {
            assert!(!gemm(&[(name, "2147483648")]).fits_int(), "{name}");
        }
    }
}
