//! Element types of a product as cuBLAS and cublasLt name them.

/// `cudaDataType_t` of library_types.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum DataType {
    R32F = 0,
    R64F = 1,
    R16F = 2,
    R8I = 3,
    C32F = 4,
    C64F = 5,
    R32I = 10,
    R16BF = 14,
    R8FE4M3 = 28,
    R8FE5M2 = 29,
}

use DataType::*;

impl DataType {
    /// Its name in library_types.h.
    pub fn name(self) -> &'static str {
        match self {
            R32F => "CUDA_R_32F",
            R64F => "CUDA_R_64F",
            R16F => "CUDA_R_16F",
            R8I => "CUDA_R_8I",
            C32F => "CUDA_C_32F",
            C64F => "CUDA_C_64F",
            R32I => "CUDA_R_32I",
            R16BF => "CUDA_R_16BF",
            R8FE4M3 => "CUDA_R_8F_E4M3",
            R8FE5M2 => "CUDA_R_8F_E5M2",
        }
    }
}

/// How the products are summed: `cublasComputeType_t` of cublas_api.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Compute {
    F32 = 68,
    F64 = 70,
    I32 = 72,
    FastTf32 = 77,
}

impl Compute {
    /// Its name in cublas_api.h.
    pub fn name(self) -> &'static str {
        match self {
            Compute::F32 => "CUBLAS_COMPUTE_32F",
            Compute::F64 => "CUBLAS_COMPUTE_64F",
            Compute::I32 => "CUBLAS_COMPUTE_32I",
            Compute::FastTf32 => "CUBLAS_COMPUTE_32F_FAST_TF32",
        }
    }
}

/// A value of the parameter `dtype` of gemm, as the libraries see it.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Type {
    pub dtype: &'static str,
    pub a: DataType,
    pub b: DataType,
    /// C and D.
    pub c: DataType,
    pub compute: Compute,
    /// alpha and beta.
    pub scale: DataType,
    /// Only cublasLt has it.
    pub only_lt: bool,
}

const fn of(dtype: &'static str, a: DataType, c: DataType, compute: Compute, scale: DataType) -> Type {
    Type { dtype, a, b: a, c, compute, scale, only_lt: false }
}

const fn eight(dtype: &'static str, a: DataType, b: DataType, c: DataType) -> Type {
    Type { dtype, a, b, c, compute: Compute::F32, scale: R32F, only_lt: true }
}

/// Every type that cases ask for. The supported combinations are those of the tables of cublasGemmEx and cublasLtMatmul in the
/// documentation of cuBLAS.
pub const TYPES: &[Type] = &[
    of("f32", R32F, R32F, Compute::F32, R32F),
    of("f64", R64F, R64F, Compute::F64, R64F),
    of("f16", R16F, R16F, Compute::F32, R32F),
    of("bf16", R16BF, R16BF, Compute::F32, R32F),
    of("c64", C32F, C32F, Compute::F32, C32F),
    of("c128", C64F, C64F, Compute::F64, C64F),
    of("bf16_f32", R16BF, R32F, Compute::F32, R32F),
    of("f16_f32", R16F, R32F, Compute::F32, R32F),
    of("tf32", R32F, R32F, Compute::FastTf32, R32F),
    of("i8_i32", R8I, R32I, Compute::I32, R32I),
    eight("f8e4m3_bf16", R8FE4M3, R8FE4M3, R16BF),
    eight("f8e4m3_f32", R8FE4M3, R8FE4M3, R32F),
    eight("f8e5m2_f8e4m3_bf16", R8FE5M2, R8FE4M3, R16BF),
];

impl Type {
    /// The type of a value of `dtype`.
    pub fn find(dtype: &str) -> Option<&'static Type> {
        TYPES.iter().find(|t| t.dtype == dtype)
    }
}

/// A factor in the memory of the host, as the libraries read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct Scalar([u8; 16]);

impl Scalar {
    /// A whole number in a type of factors.
    pub fn new(value: i32, of: DataType) -> Scalar {
        let mut bytes = [0; 16];
        match of {
            R64F | C64F => bytes[..8].copy_from_slice(&f64::from(value).to_ne_bytes()),
            R32I => bytes[..4].copy_from_slice(&value.to_ne_bytes()),
            _ => bytes[..4].copy_from_slice(&(value as f32).to_ne_bytes()),
        }
        Scalar(bytes)
    }

    pub fn pointer(&self) -> *const std::ffi::c_void {
        self.0.as_ptr().cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Dtype, ElementType, gemm};

    /// The element type of memory that holds a type of the libraries.
    fn stored(of: DataType) -> Dtype {
        match of {
            R32F => Dtype::F32,
            R64F => Dtype::F64,
            R16F => Dtype::F16,
            R16BF => Dtype::Bf16,
            R8I => Dtype::I8,
            R32I => Dtype::I32,
            C32F => Dtype::C64,
            C64F => Dtype::C128,
            R8FE4M3 => Dtype::F8e4m3,
            R8FE5M2 => Dtype::F8e5m2,
        }
    }

    #[test]
    fn every_dtype_of_gemm_has_a_type_whose_elements_are_those_of_the_operands() {
        let problem = gemm::problem().unwrap();
        let dtype = problem.param("dtype").unwrap();
        let texts = problem.params[dtype].texts();
        assert_eq!(texts.len(), TYPES.len());
        for (index, text) in texts.iter().enumerate() {
            let of = Type::find(text).unwrap();
            for (operand, wanted) in [(gemm::A, of.a), (gemm::B, of.b), (gemm::C, of.c), (gemm::D, of.c)] {
                let ElementType::Param { types, .. } = &problem.operands[operand].element else { panic!("a choice") };
                assert_eq!(types[index], stored(wanted), "{text}, operand {operand}");
            }
        }
    }

    #[test]
    fn factors_have_the_type_that_the_computation_asks_for() {
        let bytes = |dtype: &str| Scalar::new(-2, Type::find(dtype).unwrap().scale).0;
        assert_eq!(bytes("f64")[..8], (-2.0_f64).to_ne_bytes());
        assert_eq!(bytes("c128")[..8], (-2.0_f64).to_ne_bytes());
        assert_eq!(bytes("c128")[8..], [0; 8]);
        assert_eq!(bytes("i8_i32")[..4], (-2_i32).to_ne_bytes());
        for single in ["f32", "f16", "bf16", "tf32", "c64", "f8e4m3_bf16"] {
            assert_eq!(bytes(single)[..4], (-2.0_f32).to_ne_bytes());
            assert_eq!(bytes(single)[4..8], [0; 4]);
        }
    }

    #[test]
    fn sixteen_bits_are_summed_in_32_and_tf32_is_asked_for() {
        assert_eq!(Type::find("f16").unwrap().compute, Compute::F32);
        assert_eq!(Type::find("tf32").unwrap().compute.name(), "CUBLAS_COMPUTE_32F_FAST_TF32");
        assert_eq!(Type::find("i8_i32").unwrap().compute.name(), "CUBLAS_COMPUTE_32I");
        assert!(TYPES.iter().all(|t| t.only_lt == t.dtype.starts_with("f8")));
    }
}
