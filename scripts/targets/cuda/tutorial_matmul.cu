// The addressing of the matrix multiplication in Triton's tutorial: every offset is 32 bits wide, rows of A wrap modulo M.
// Signed overflow is written as unsigned, which is what the machine does.

#include <cuda_bf16.h>

static __device__ int offset(int row, int row_stride, int column)
{
    return (int)((unsigned)row * (unsigned)row_stride + (unsigned)column);
}

extern "C" __global__ void matmul(const __nv_bfloat16 *a, const __nv_bfloat16 *b, __nv_bfloat16 *c, int M, int N, int K,
                                  int stride_am, int stride_bn, int stride_cn)
{
    int row = (blockIdx.x * TILE + threadIdx.x) % M;
    int column = (blockIdx.y * TILE + threadIdx.y) % N;
    float sum = 0;
    for (int k = 0; k < K; k++)
        sum += __bfloat162float(a[offset(row, stride_am, k)]) * __bfloat162float(b[offset(column, stride_bn, k)]);
    if (blockIdx.x * TILE + threadIdx.x < M && blockIdx.y * TILE + threadIdx.y < N)
        c[offset(column, stride_cn, row)] = __float2bfloat16(sum);
}
