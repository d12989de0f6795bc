// gemm on cublas leaves 1 of 1 elements of C unwritten
// As filed: cuBLAS 13.1.0 on NVIDIA H200.
// Build and run: nvcc -o reproduce cublas-gemm-memory-c2c5a7.cu -lcublas -lcublasLt && ./reproduce
//
// The operands have the sizes that the documentation of cublasGemmEx asks for:
// A 1 x 1, leading dimension 1; B 1 x 1, leading dimension 2147483648;
// C and the result 1 x 1, leading dimensions 1 and 1.

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
    float *A = operand<float>("A", 1, 1, 1LL, 1);
    float *B = operand<float>("B", 1, 1, 2147483648LL, 1);
    float *C = operand<float>("C", 1, 1, 1LL, 1);
    // The result, and 64 elements behind it: what is no element of it holds 7.
    float *D = C;
    const long long size = (1 - 1) * 1LL + 1 + (0 ? 64 : 0);
    if (0) fill<<<64, 256>>>(D, size, 1, size, 7);
    float alpha = 1, beta = 0;
    if (cudaDeviceSynchronize() != cudaSuccess) return 2;
    cublasHandle_t handle;
    cublasCreate(&handle);
    cublasStatus_t status = cublasGemmEx_64(handle, CUBLAS_OP_C, CUBLAS_OP_N, 1, 1, 1, &alpha, A, CUDA_R_32F, 1, B, CUDA_R_32F, 2147483648, &beta, C,
                                         CUDA_R_32F, 1, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    cudaError_t error = cudaDeviceSynchronize();
    printf("status %d; %s\n", (int)status, cudaGetErrorString(error));
    if (status != CUBLAS_STATUS_SUCCESS) return 2;
    if (error != cudaSuccess) return 1;
    long long wrong = 0, strays = 0;
    for (long long i = 0; i < 1LL * 1; i++) {
        float d;
        cudaMemcpy(&d, D + i % 1 + i / 1 * 1LL, sizeof d, cudaMemcpyDeviceToHost);
        if ((float)d != 1) wrong++;
    }
    for (long long i = 0; 0 && i < size; i++) {
        float d;
        if (i % 1 < 1 && i / 1 < 1) continue;
        cudaMemcpy(&d, D + i, sizeof d, cudaMemcpyDeviceToHost);
        if ((float)d != 7) strays++;
    }
    printf("%lld of %lld elements of the result are wrong, %lld others were changed\n", wrong, 1LL * 1, strays);
    return wrong > 0 || strays > 0;
}
