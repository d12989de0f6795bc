//! The call of a case as a line of C.

use crate::problem::Instance;
use crate::target::cuda::blas::{Gemm, Side};
use crate::target::cuda::text::{factor, pointer};

/// `cublasLtMatmul(lt, desc(CUBLAS_OP_N, ...), &alpha, A, layout(CUDA_R_32F, rows, columns, ld), ...)`: descriptions and layouts
/// stand as the arguments of what creates them.
pub fn call_text(instance: &Instance, gemm: &Gemm) -> String {
    let [a, b] = gemm.operation_names();
    let of = gemm.of;
    let layout = |side: &Side, name: &str| {
        let batch =
            if gemm.batch > 1 { format!(", batch {}, stride {}", gemm.batch, side.stride) } else { String::new() };
        format!("layout({name}, {}, {}, {}{batch})", side.rows, side.columns, side.leading)
    };
    let (desc, d) = (format!("desc({a}, {b}, {}, {})", of.compute.name(), of.scale.name()), gemm.result());
    format!(
        "cublasLtMatmul(lt, {desc}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, &algo, workspace, workspace_bytes, 0)",
        factor(instance, "alpha"),
        pointer(instance, "A"),
        layout(&gemm.a, of.a.name()),
        pointer(instance, "B"),
        layout(&gemm.b, of.b.name()),
        factor(instance, "beta"),
        pointer(instance, "C"),
        layout(&gemm.c, of.c.name()),
        pointer(instance, if gemm.d.is_some() { "D" } else { "C" }),
        layout(&d, of.c.name()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::cuda::blas::testing::{gemm, instance};

    #[test]
    fn a_case_reads_as_the_call_it_makes() {
        let words =
            [("m", "2"), ("n", "3"), ("k", "4"), ("transA", "T"), ("out", "D"), ("offC", "5"), ("dtype", "bf16_f32")];
        let expected = "cublasLtMatmul(lt, desc(CUBLAS_OP_T, CUBLAS_OP_N, CUBLAS_COMPUTE_32F, CUDA_R_32F), &(float){1}, A, \
                        layout(CUDA_R_16BF, 4, 2, 4), B, layout(CUDA_R_16BF, 4, 3, 4), &(float){0}, C + 5, \
                        layout(CUDA_R_32F, 2, 3, 2), D, layout(CUDA_R_32F, 2, 3, 2), &algo, workspace, workspace_bytes, 0)";
        assert_eq!(call_text(&instance(&words), &gemm(&words)), expected);
        let batch = [("batch", "2"), ("strideA", "0"), ("strideC", "7")];
        let text = call_text(&instance(&batch), &gemm(&batch));
        assert!(text.contains("layout(CUDA_R_32F, 1, 1, 1, batch 2, stride 0)"), "{text}");
        assert!(text.contains("layout(CUDA_R_32F, 1, 1, 1, batch 2, stride 7)"), "{text}");
    }
}
