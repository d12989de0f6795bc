// gemm on cublas writes 2147483647 elements (8589934588 bytes) below the base of C
// As filed: cuBLAS 13.1.0 on NVIDIA H200.
// Build and run: nvcc -o reproduce cublas-gemm-c-write-far-ec5559.cu -lcublas -lcublasLt && ./reproduce
//
// The operands have the sizes that the documentation of cublasGemmEx asks for:
// A 1 x 2, leading dimension 1; B 2 x 4, leading dimension 2;
// C and the result 1 x 4, leading dimensions 715827883 and 715827883.

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
    float *A = operand<float>("A", 1, 2, 1LL, 1);
    float *B = operand<float>("B", 2, 4, 2LL, 1);
    float *C = operand<float>("C", 1, 4, 715827883LL, 1);
    // The result, and 64 elements behind it: what is no element of it holds 7.
    float *D = C;
    const long long size = (4 - 1) * 715827883LL + 1 + (0 ? 64 : 0);
    if (0) fill<<<64, 256>>>(D, size, 1, size, 7);
    float alpha = 1, beta = 0;
    if (cudaDeviceSynchronize() != cudaSuccess) return 2;
    cublasHandle_t handle;
    cublasCreate(&handle);
    cublasStatus_t status = cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 4, 2, &alpha, A, CUDA_R_32F, 1, B, CUDA_R_32F, 2, &beta, C,
                                         CUDA_R_32F, 715827883, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    cudaError_t error = cudaDeviceSynchronize();
    printf("status %d; %s\n", (int)status, cudaGetErrorString(error));
    if (status != CUBLAS_STATUS_SUCCESS) return 2;
    if (error != cudaSuccess) return 1;
    long long wrong = 0, strays = 0;
    for (long long i = 0; i < 1LL * 4; i++) {
        float d;
        cudaMemcpy(&d, D + i % 1 + i / 1 * 715827883LL, sizeof d, cudaMemcpyDeviceToHost);
        if ((float)d != 2) wrong++;
    }
    for (long long i = 0; 0 && i < size; i++) {
        float d;
        if (i % 715827883 < 1 && i / 715827883 < 4) continue;
        cudaMemcpy(&d, D + i, sizeof d, cudaMemcpyDeviceToHost);
        if ((float)d != 7) strays++;
    }
    printf("%lld of %lld elements of the result are wrong, %lld others were changed\n", wrong, 1LL * 4, strays);
    return wrong > 0 || strays > 0;
}
