//! The call of a case as a line of C.

use super::plan::{Call, Plan};
use crate::problem::Instance;
use crate::target::cuda::blas::{DataType, Gemm, Side};
use crate::target::cuda::text::{factor, pointer};

/// `cublasGemmEx(handle, CUBLAS_OP_N, ...)`; arrays of pointers are named by their matrices.
pub fn call_text(instance: &Instance, gemm: &Gemm) -> Option<String> {
    let plan = Plan::of(instance, gemm).ok()?;
    if gemm.d.is_some() {
        return None;
    }
    let matrix = |name: &str, of: DataType, side: &Side| {
        let name = if plan.call == Call::Pointers { format!("{name}array") } else { pointer(instance, name) };
        let stride = if plan.call == Call::Strided { format!(", {}", side.stride) } else { String::new() };
        format!("{name}, {}, {}{stride}", of.name(), side.leading)
    };
    let batch = if plan.call == Call::Plain { String::new() } else { format!("{}, ", gemm.batch) };
    let ([ta, tb], of) = (gemm.operation_names(), gemm.of);
    Some(format!(
        "{}(handle, {ta}, {tb}, {}, {}, {}, {}, {}, {}, {}, {}, {batch}{}, CUBLAS_GEMM_DEFAULT)",
        plan.function(),
        gemm.m,
        gemm.n,
        gemm.k,
        factor(instance, "alpha"),
        matrix("A", of.a, &gemm.a),
        matrix("B", of.b, &gemm.b),
        factor(instance, "beta"),
        matrix("C", of.c, &gemm.c),
        of.compute.name(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Value;
    use crate::target::cuda::blas::testing::{gemm, instance};

    #[test]
    fn a_case_reads_as_the_call_it_makes() {
        let words =
            [("m", "2"), ("n", "3"), ("k", "4"), ("transB", "T"), ("offB", "5"), ("beta", "-1"), ("dtype", "f64")];
        let expected = "cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_T, 2, 3, 4, &(double){1}, A, CUDA_R_64F, 2, B + 5, \
                        CUDA_R_64F, 3, &(double){-1}, C, CUDA_R_64F, 2, CUBLAS_COMPUTE_64F, CUBLAS_GEMM_DEFAULT)";
        assert_eq!(call_text(&instance(&words), &gemm(&words)).as_deref(), Some(expected));
        let batch = [("batch", "3"), ("strideA", "4"), ("dtype", "tf32")];
        let expected = "cublasGemmStridedBatchedEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &(float){1}, A, CUDA_R_32F, 1, 4, \
                        B, CUDA_R_32F, 1, 0, &(float){0}, C, CUDA_R_32F, 1, 1, 3, CUBLAS_COMPUTE_32F_FAST_TF32, \
                        CUBLAS_GEMM_DEFAULT)";
        assert_eq!(call_text(&instance(&batch), &gemm(&batch)).as_deref(), Some(expected));
        let mut pointers = instance(&batch);
        pointers.case.knobs.insert("call".into(), Value::from("pointers"));
        let text = call_text(&pointers, &gemm(&batch)).unwrap();
        assert!(text.starts_with("cublasGemmBatchedEx(") && text.contains("Aarray, CUDA_R_32F, 1, Barray"), "{text}");
        assert!(text.contains("Carray, CUDA_R_32F, 1, 3, CUBLAS_COMPUTE_32F_FAST_TF32"), "{text}");
    }

    #[test]
    fn there_is_no_call_with_a_separate_result() {
        assert_eq!(call_text(&instance(&[("out", "D")]), &gemm(&[("out", "D")])), None);
    }
}
