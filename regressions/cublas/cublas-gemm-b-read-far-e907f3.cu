// gemm on cublas reads 2147483647 elements (8589934588 bytes) below the base of B
// As filed: cuBLAS 13.1.0 on NVIDIA H200.
// Build and run: nvcc -o reproduce cublas-gemm-b-read-far-e907f3.cu -lcublas -lcublasLt && ./reproduce
//
// The operands have the sizes that the documentation of cublasGemmEx asks for:
// A 4 x 2, leading dimension 4; B 1 x 4, leading dimension 715827883; C 2 x 1, leading dimension 2.

#include <cstdio>
#include <cstdlib>
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <typename T> __global__ void fill(T *p, long long rows, long long columns, long long leading, float value)
{
    for (long long i = threadIdx.x + (long long)blockIdx.x * blockDim.x; i < rows * columns; i += (long long)gridDim.x * blockDim.x)
        p[i % rows + i / rows * leading] = (T)value;
}

template <typename T> static T *operand(const char *name, long long rows, long long columns, long long leading, float value)
{
    T *p;
    size_t bytes = ((columns - 1) * leading + rows) * sizeof(T);
    if (cudaMalloc(&p, bytes) != cudaSuccess) {
        printf("no memory for the %zu bytes of %s\n", bytes, name);
        exit(2);
    }
    fill<<<64, 256>>>(p, rows, columns, leading, value);
    printf("%s: %p to %p\n", name, (void *)p, (void *)((char *)p + bytes));
    return p;
}

int main()
{
    float *A = operand<float>("A", 4, 2, 4LL, 1);
    float *B = operand<float>("B", 1, 4, 715827883LL, 1);
    float *C = operand<float>("C", 2, 1, 2LL, 1);
    float alpha = 1, beta = 0;
    if (cudaDeviceSynchronize() != cudaSuccess) return 2;
    cublasHandle_t handle;
    cublasCreate(&handle);
    cublasStatus_t status = cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_T, 2, 1, 4, &alpha, A, CUDA_R_32F, 4, B, CUDA_R_32F, 715827883, &beta, C,
                                         CUDA_R_32F, 2, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    cudaError_t error = cudaDeviceSynchronize();
    printf("status %d; %s\n", (int)status, cudaGetErrorString(error));
    if (status != CUBLAS_STATUS_SUCCESS) return 2;
    if (error != cudaSuccess) return 1;
    long long wrong = 0;
    for (long long i = 0; i < 2LL * 1; i++) {
        float c;
        cudaMemcpy(&c, C + i % 2 + i / 2 * 2LL, sizeof c, cudaMemcpyDeviceToHost);
        if ((float)c != 4) wrong++;
    }
    printf("%lld of %lld elements of C are wrong\n", wrong, 2LL * 1);
    return wrong > 0;
}
