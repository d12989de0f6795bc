//! Which function a case calls, and what the library's documentation asks of its arguments.

use crate::problem::{Instance, Knobs, Value};
use crate::target::cuda::blas::{Compute, Gemm, Side};

/// Knob: which function multiplies.
pub const CALL: &str = "call";
/// Knob: bits of its integers.
pub const API: &str = "api";
/// Most pointers of an array.
pub const MOST_POINTERS: i64 = 1 << 20;

/// A function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Plain,
    Strided,
    Pointers,
}

/// Values of the knob, the plainest first.
pub const CALLS: [(&str, Call); 3] = [("plain", Call::Plain), ("strided", Call::Strided), ("pointers", Call::Pointers)];

/// What a case calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    pub call: Call,
    /// Whether the entry point with 64-bit integers is called.
    pub long: bool,
}

impl Plan {
    /// The plan of a case. Several products have no plain call, and parameters that do not fit an `int` no short one: the
    /// next function takes their place.
    ///
    /// # Errors
    /// One sentence, where a knob has another value.
    pub fn of(instance: &Instance, gemm: &Gemm) -> Result<Plan, String> {
        let knob = |name: &str| instance.case.knobs.get(name);
        let call = match knob(CALL) {
            None => Call::Plain,
            Some(value) => {
                let word = value.to_string();
                CALLS
                    .iter()
                    .find(|c| c.0 == word)
                    .map(|c| c.1)
                    .ok_or_else(|| bad(CALL, value, "plain, strided, pointers"))?
            }
        };
        let long = match knob(API) {
            None | Some(Value::Int(32)) => false,
            Some(Value::Int(64)) => true,
            Some(other) => return Err(bad(API, other, "32, 64")),
        };
        let call = if call == Call::Plain && gemm.batch > 1 { Call::Strided } else { call };
        Ok(Plan { call, long: long || !gemm.fits_int() })
    }

    /// Name of the function.
    pub fn function(self) -> &'static str {
        match (self.call, self.long) {
            (Call::Plain, false) => "cublasGemmEx",
            (Call::Plain, true) => "cublasGemmEx_64",
            (Call::Strided, false) => "cublasGemmStridedBatchedEx",
            (Call::Strided, true) => "cublasGemmStridedBatchedEx_64",
            (Call::Pointers, false) => "cublasGemmBatchedEx",
            (Call::Pointers, true) => "cublasGemmBatchedEx_64",
        }
    }

    /// The knobs that name this plan.
    pub fn resolved(self) -> Knobs {
        let word = CALLS.iter().find(|c| c.1 == self.call).map_or("plain", |c| c.0);
        Knobs::from([
            (CALL.to_owned(), Value::from(word)),
            (API.to_owned(), Value::Int(if self.long { 64 } else { 32 })),
        ])
    }

    /// What the documentation of the function asks for and the function may not check.
    ///
    /// # Errors
    /// One sentence, where the case is not valid.
    pub fn check(self, gemm: &Gemm) -> Result<(), String> {
        let function = self.function();
        // The documentation of cublasGemmEx has CUBLAS_COMPUTE_32I only with A and B aligned to 4 bytes and lda and ldb multiples
        // of 4.
        if gemm.of.compute == Compute::I32 {
            for (name, side) in [("A", gemm.a), ("B", gemm.b)] {
                if !is_aligned(side, gemm.batch, 4) || side.leading % 4 != 0 {
                    return Err(format!(
                        "{function} asks for {name} aligned to 4 bytes and its leading dimension a multiple of 4 where it sums in integers"
                    ));
                }
            }
        }
        if self.call != Call::Pointers {
            return Ok(());
        }
        if gemm.batch > MOST_POINTERS {
            return Err(format!("batch={}: at most {MOST_POINTERS} pointers are listed", gemm.batch));
        }
        // The documentation of cublasGemmBatchedEx asks for pointers aligned to 16 bytes where 8 divides k and to 4 where 2 does,
        // where the multipliers for matrices are used: misaligned accesses are the caller's fault otherwise.
        let bytes = match gemm.k {
            k if k % 8 == 0 => 16,
            // It says nothing of other k; with pointers at odd elements of two bytes, calls with k = 1 end in a misaligned access.
            _ => 4,
        };
        let matrix = !["f32", "f64", "c64", "c128"].contains(&gemm.of.dtype);
        for (name, side) in [("A", gemm.a), ("B", gemm.b), ("C", gemm.c)] {
            if matrix && !is_aligned(side, gemm.batch, bytes) {
                return Err(format!("{function} asks for {name} aligned to {bytes} bytes where k={}", gemm.k));
            }
        }
        Ok(())
    }
}

fn bad(name: &str, value: &Value, known: &str) -> String {
    format!("{name}={value} is not one of {known}")
}

/// Whether every matrix of a batch is aligned.
fn is_aligned(side: Side, batch: i64, bytes: i64) -> bool {
    let address = side.address as i64;
    address % bytes == 0 && (batch == 1 || side.stride.wrapping_mul(side.element_bytes) % bytes == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::cuda::blas::testing::{gemm, instance};

    fn plan(words: &[(&str, &str)], knobs: &[(&str, Value)]) -> Result<Plan, String> {
        let mut instance = instance(words);
        instance.case.knobs = knobs.iter().map(|(n, v)| ((*n).to_owned(), v.clone())).collect();
        Plan::of(&instance, &gemm(words))
    }

    fn function(words: &[(&str, &str)], knobs: &[(&str, Value)]) -> &'static str {
        plan(words, knobs).unwrap().function()
    }

    #[test]
    fn the_entry_point_follows_from_batch_width_and_knobs() {
        let (batch, long) = (("batch", "2"), ("ldb", "2147483648"));
        let (strided, pointers) = ((CALL, Value::from("strided")), (CALL, Value::from("pointers")));
        assert_eq!(function(&[], &[]), "cublasGemmEx");
        assert_eq!(function(&[], &[(API, 64.into())]), "cublasGemmEx_64");
        assert_eq!(function(&[long], &[(API, 32.into())]), "cublasGemmEx_64");
        assert_eq!(function(&[batch], &[]), "cublasGemmStridedBatchedEx");
        assert_eq!(function(&[], std::slice::from_ref(&strided)), "cublasGemmStridedBatchedEx");
        assert_eq!(function(&[batch, long], &[strided]), "cublasGemmStridedBatchedEx_64");
        assert_eq!(function(&[batch], std::slice::from_ref(&pointers)), "cublasGemmBatchedEx");
        assert_eq!(function(&[], &[pointers, (API, 64.into())]), "cublasGemmBatchedEx_64");
    }

    #[test]
    fn what_is_resolved_is_the_plan_again() {
        for words in [&[("batch", "2")][..], &[("lda", "4294967296")], &[]] {
            let first = plan(words, &[]).unwrap();
            let knobs: Vec<(&str, Value)> =
                vec![(CALL, first.resolved()[CALL].clone()), (API, first.resolved()[API].clone())];
            assert_eq!(plan(words, &knobs), Ok(first));
        }
    }

    #[test]
    fn another_value_of_a_knob_is_one_sentence() {
        for bad in [(CALL, Value::from("fast")), (API, 16.into()), (API, "x".into())] {
            let why = plan(&[], std::slice::from_ref(&bad)).unwrap_err();
            assert!(why.starts_with(bad.0) && !why.contains('\n'), "{why}");
        }
    }

    #[test]
    fn integers_need_pointers_and_leading_dimensions_of_4_bytes() {
        let check = |words: &[(&str, &str)]| Plan { call: Call::Plain, long: false }.check(&gemm(words));
        let packed = [("dtype", "i8_i32"), ("m", "4"), ("k", "4")];
        assert_eq!(check(&packed), Ok(()));
        assert!(check(&[&packed[..], &[("offA", "2")]].concat()).is_err());
        assert!(check(&[&packed[..], &[("ldb", "5")]].concat()).is_err());
        assert_eq!(check(&[("dtype", "f32"), ("offA", "1"), ("lda", "5")]), Ok(()));
    }

    #[test]
    fn arrays_of_pointers_need_them_aligned_as_k_is() {
        let check = |words: &[(&str, &str)]| Plan { call: Call::Pointers, long: false }.check(&gemm(words));
        let (half, off) = (("dtype", "f16"), ("offB", "2"));
        assert!(check(&[half, off, ("k", "8")]).unwrap_err().contains("16 bytes"));
        assert_eq!(check(&[half, off, ("k", "6")]), Ok(()));
        assert_eq!(check(&[half, off, ("k", "5")]), Ok(()));
        assert!(check(&[half, ("offB", "1"), ("k", "5")]).unwrap_err().contains("4 bytes"));
        assert!(check(&[half, ("k", "8"), ("batch", "2"), ("strideA", "9")]).is_err());
        assert_eq!(check(&[("dtype", "f64"), ("offB", "1"), ("k", "8")]), Ok(()));
        assert!(check(&[("batch", "1048577")]).unwrap_err().contains("1048576"));
    }
}
