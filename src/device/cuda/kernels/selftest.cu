// Kernels of the self-test: a reference product, and one bad access.

typedef unsigned char u8;
typedef unsigned int u32;
typedef long long i64;

struct Product {
    i64 m, n, k, batch;
    i64 a[3], b[3], c[3];    // strides in elements, per dimension of the operand
    float alpha, beta;
    u32 leaves_last;         // the last element of C stays unwritten
    u32 spoils_first;        // the first element of C is 1 too large
};

extern "C" __global__ void product(const float *A, const float *B, float *C, const Product p)
{
    i64 total = p.m * p.n * p.batch;
    for (i64 at = (i64)blockIdx.x * blockDim.x + threadIdx.x; at < total; at += (i64)gridDim.x * blockDim.x) {
        i64 i = at % p.m, j = at / p.m % p.n, z = at / (p.m * p.n);
        if (p.leaves_last && at == total - 1) continue;
        float sum = 0;
        for (i64 l = 0; l < p.k; l++)
            sum += A[i * p.a[0] + l * p.a[1] + z * p.a[2]] * B[l * p.b[0] + j * p.b[1] + z * p.b[2]];
        float *c = C + (i * p.c[0] + j * p.c[1] + z * p.c[2]);
        *c = p.alpha * sum + (p.beta == 0 ? 0 : p.beta * *c) + (p.spoils_first && at == 0 ? 1 : 0);
    }
}

// 0: reads the byte; 1: writes 1 there; 2: writes 0 there.
extern "C" __global__ void touch(volatile u8 *address, u32 how, u8 *sink)
{
    if (how == 0) *sink = *address;
    else *address = how == 1 ? 1 : 0;
}

extern "C" __global__ void hang(volatile u32 *never)
{
    while (*never == 0) {}
}
