// gemm on cublaslt writes the first byte past the end of D
// As filed: cublasLt 13.1.0 on NVIDIA H200.
// Build and run: nvcc -o reproduce cublaslt-gemm-d-write-past-end-d5c4bf.cu -lcublas -lcublasLt && ./reproduce
//
// The operands have the sizes that the documentation of cublasLtMatmul asks for:
// A 1 x 1, leading dimension 1073741824; B 1 x 2, leading dimension 1;
// C and the result 1 x 2, leading dimensions 2 and 1.

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
    float *A = operand<float>("A", 1, 1, 1073741824LL, 1);
    float *B = operand<float>("B", 1, 2, 1LL, 1);
    float *C = operand<float>("C", 1, 2, 2LL, 1);
    // The result, and 64 elements behind it: what is no element of it holds 7.
    float *D = operand<float>("D", 1 + 64, 2, 1 + 64LL, 7);
    const long long size = (2 - 1) * 1LL + 1 + (1 ? 64 : 0);
    if (1) fill<<<64, 256>>>(D, size, 1, size, 7);
    float alpha = 1, beta = 0;
    if (cudaDeviceSynchronize() != cudaSuccess) return 2;
    cublasLtHandle_t handle;
    cublasLtCreate(&handle);
    cublasOperation_t ta = CUBLAS_OP_N, tb = CUBLAS_OP_N;
    cublasLtMatmulDesc_t product;
    cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &ta, sizeof ta);
    cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSB, &tb, sizeof tb);
    cublasLtMatrixLayout_t a, b, c, d;
    cublasLtMatrixLayoutCreate(&a, CUDA_R_32F, 1, 1, 1073741824LL);
    cublasLtMatrixLayoutCreate(&b, CUDA_R_32F, 1, 2, 1LL);
    cublasLtMatrixLayoutCreate(&c, CUDA_R_32F, 1, 2, 2LL);
    cublasLtMatrixLayoutCreate(&d, CUDA_R_32F, 1, 2, 1LL);
    size_t workspace_bytes = 33554432;
    void *workspace;
    cudaMalloc(&workspace, workspace_bytes + 256);
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulPreferenceCreate(&preference);
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes, sizeof workspace_bytes);
    cublasLtMatmulHeuristicResult_t proposals[8];
    int count = 0;
    cublasLtMatmulAlgoGetHeuristic(handle, product, a, b, c, d, preference, 8, proposals, &count);
    cublasStatus_t status = CUBLAS_STATUS_NOT_SUPPORTED;
    // The first proposal that ends in an error is the one that is meant; others may be right.
    for (int i = 0; i < count; i++) {
        status = cublasLtMatmul(handle, product, &alpha, A, a, B, b, &beta, C, c, D, d, &proposals[i].algo, workspace, workspace_bytes, 0);
        int id = -1;
        size_t written;
        cublasLtMatmulAlgoConfigGetAttribute(&proposals[i].algo, CUBLASLT_ALGO_CONFIG_ID, &id, sizeof id, &written);
        printf("proposal %d, algorithm %d: %s\n", i, id, cudaGetErrorString(cudaDeviceSynchronize()));
        if (cudaPeekAtLastError() != cudaSuccess || 0 != 0) break;
        float last;
        cudaMemcpy(&last, D + (1 - 1) + (2 - 1) * 1LL, sizeof last, cudaMemcpyDeviceToHost);
        if ((float)last != 1) break;
    }
    cudaError_t error = cudaDeviceSynchronize();
    printf("status %d; %s\n", (int)status, cudaGetErrorString(error));
    if (status != CUBLAS_STATUS_SUCCESS) return 2;
    if (error != cudaSuccess) return 1;
    long long wrong = 0, strays = 0;
    for (long long i = 0; i < 1LL * 2; i++) {
        float d;
        cudaMemcpy(&d, D + i % 1 + i / 1 * 1LL, sizeof d, cudaMemcpyDeviceToHost);
        if ((float)d != 1) wrong++;
    }
    for (long long i = 0; 1 && i < size; i++) {
        float d;
        if (i % 1 < 1 && i / 1 < 2) continue;
        cudaMemcpy(&d, D + i, sizeof d, cudaMemcpyDeviceToHost);
        if ((float)d != 7) strays++;
    }
    printf("%lld of %lld elements of the result are wrong, %lld others were changed\n", wrong, 1LL * 2, strays);
    return wrong > 0 || strays > 0;
}
