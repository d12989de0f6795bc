// A plain matrix multiplication in f32 with one planted defect, named by DEFECT, and 64-bit offsets everywhere else.

typedef long long i64;
typedef unsigned long long u64;

#define NONE 0
#define WRAP_B 1          // offset of B in elements, signed 32 bits
#define WRAP_C_BYTES 2    // offset of C in bytes, unsigned 32 bits
#define WRAP_BATCH_A 3    // batch offset of A in elements, signed 32 bits
#define VECTOR_A 4        // reads A four elements at a time, past the end of a last group
#define BEFORE_C 5        // writes one element before C
#define PAST_C 6          // writes a whole tile of 8 rows, past the end of C
#define UNWRITTEN 7       // leaves the rows past the last whole tile of 8 unwritten
#define VALUE 8           // forgets the last k where k is odd and above 32
#define HANG 9            // never returns where n is a multiple of 48

extern "C" __global__ void gemm(const float *A, const float *B, float *C, i64 m, i64 n, i64 k, i64 a_row, i64 a_column,
                                i64 b_row, i64 b_column, i64 ldc, i64 stride_a, i64 stride_b, i64 stride_c, float alpha,
                                float beta)
{
    i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    i64 j = blockIdx.y, z = blockIdx.z;
#if DEFECT == HANG
    if (n % 48 == 0)
        while (((volatile float *)C)[0] != 12345.0f) {}
#endif
#if DEFECT == UNWRITTEN
    if (i >= m / 8 * 8) return;
#endif
#if DEFECT == WRAP_BATCH_A
    A += (int)((unsigned)z * (unsigned)stride_a);
#else
    A += z * stride_a;
#endif
    B += z * stride_b;
    C += z * stride_c;
    if (i < m) {
        float sum = 0;
        i64 last = k;
#if DEFECT == VALUE
        if (k > 32 && k % 2 == 1) last = k - 1;
#endif
        for (i64 l = 0; l < last; l++) {
#if DEFECT == WRAP_B
            float b = B[(int)((unsigned)l * (unsigned)b_row + (unsigned)j * (unsigned)b_column)];
#else
            float b = B[l * b_row + j * b_column];
#endif
            sum += A[i * a_row + l * a_column] * b;
        }
#if DEFECT == VECTOR_A
        // The last group of four along the rows of A.
        if (a_row == 1)
            for (i64 r = m; r < (m + 3) / 4 * 4; r++)
                if (((volatile const float *)A)[r + (k - 1) * a_column] == 12345.0f) sum += 1;
#endif
        i64 at = i + j * ldc;
        float old = beta == 0 ? 0 : beta * C[at];
#if DEFECT == WRAP_C_BYTES
        *(float *)((char *)C + (unsigned)((unsigned)at * 4u)) = alpha * sum + old;
#else
        C[at] = alpha * sum + old;
#endif
#if DEFECT == BEFORE_C
        if (i == 0 && j == 0 && z == 0 && m > 1) C[-1] = 0;
#endif
    }
#if DEFECT == PAST_C
    else if (i < (m + 7) / 8 * 8 && j == n - 1 && z == gridDim.z - 1)
        C[i + j * ldc] = 0;
#endif
}
