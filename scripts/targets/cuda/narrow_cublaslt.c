/* A libcublasLt with one narrowed offset: the sensitivity control of hunts on the real one.
 *
 *   gcc -shared -fPIC -O1 -I/usr/local/cuda/include -o libnarrow.so narrow_cublaslt.c -L/usr/local/cuda/lib64 -lcublasLt -ldl
 *   SHRINKFAULT_NARROW=0 shrinkfault gemm --target cublaslt --lib ./libnarrow.so
 *
 * Everything is the real library, which is linked, but cublasLtMatmul: where the offset of some column or batch entry of one
 * operand does not fit 31 bits, the product is made in two calls, and the second call gets a pointer whose offset was computed
 * in a signed 32-bit integer. SHRINKFAULT_NARROW picks which: its remainder by 4 the operand and what is counted (0 columns of
 * B, 1 columns of D and C, 2 batch entries of A, 3 batch entries of D and C), its remainder by 8 the unit (below 4 elements,
 * else bytes). */

#define _GNU_SOURCE
#include <cublasLt.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

typedef cublasStatus_t Matmul(cublasLtHandle_t, cublasLtMatmulDesc_t, const void *, const void *, cublasLtMatrixLayout_t,
                              const void *, cublasLtMatrixLayout_t, const void *, const void *, cublasLtMatrixLayout_t, void *,
                              cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t *, void *, size_t, cudaStream_t);

struct layout {
    uint64_t rows, cols;
    int64_t ld, stride;
    int32_t batch;
    uint32_t type;
};

static void get(cublasLtMatrixLayout_t from, cublasLtMatrixLayoutAttribute_t what, void *to, size_t bytes)
{
    size_t written;
    cublasLtMatrixLayoutGetAttribute(from, what, to, bytes, &written);
}

static struct layout read_layout(cublasLtMatrixLayout_t from)
{
    struct layout l;
    get(from, CUBLASLT_MATRIX_LAYOUT_ROWS, &l.rows, sizeof l.rows);
    get(from, CUBLASLT_MATRIX_LAYOUT_COLS, &l.cols, sizeof l.cols);
    get(from, CUBLASLT_MATRIX_LAYOUT_LD, &l.ld, sizeof l.ld);
    get(from, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &l.stride, sizeof l.stride);
    get(from, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &l.batch, sizeof l.batch);
    get(from, CUBLASLT_MATRIX_LAYOUT_TYPE, &l.type, sizeof l.type);
    return l;
}

static cublasLtMatrixLayout_t part(struct layout l)
{
    cublasLtMatrixLayout_t made;
    cublasLtMatrixLayoutCreate(&made, (cudaDataType_t)l.type, l.rows, l.cols, l.ld);
    cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &l.batch, sizeof l.batch);
    cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &l.stride, sizeof l.stride);
    return made;
}

static int64_t bytes_of(uint32_t type)
{
    switch (type) {
    case CUDA_R_8I: case CUDA_R_8F_E4M3: case CUDA_R_8F_E5M2: return 1;
    case CUDA_R_16F: case CUDA_R_16BF: return 2;
    case CUDA_R_64F: case CUDA_C_32F: return 8;
    case CUDA_C_64F: return 16;
    default: return 4;
    }
}

/* The first index whose offset does not fit, or the count where all do. */
static int64_t first_past(int64_t step, int64_t count, int64_t unit)
{
    if (step <= 0) return count;
    int64_t first = (INT64_C(0x7fffffff) / unit) / step + 1;
    return first < count ? first : count;
}

static char *moved(const void *base, int64_t index, int64_t step, uint32_t type, int64_t unit, int narrow)
{
    int64_t size = bytes_of(type), offset = index * step * unit;
    if (narrow) offset = (int32_t)(uint32_t)(uint64_t)offset;
    return (char *)base + offset * (size / unit);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *A,
                              cublasLtMatrixLayout_t Adesc, const void *B, cublasLtMatrixLayout_t Bdesc, const void *beta,
                              const void *C, cublasLtMatrixLayout_t Cdesc, void *D, cublasLtMatrixLayout_t Ddesc,
                              const cublasLtMatmulAlgo_t *algo, void *workspace, size_t size, cudaStream_t stream)
{
    static Matmul *real;
    if (!real) real = (Matmul *)dlsym(RTLD_NEXT, "cublasLtMatmul");
    const char *seed = getenv("SHRINKFAULT_NARROW");
    int pick = seed ? atoi(seed) % 8 : 0, kind = pick % 4, in_bytes = pick >= 4;
    struct layout a = read_layout(Adesc), b = read_layout(Bdesc), c = read_layout(Cdesc), d = read_layout(Ddesc);
    cublasOperation_t transb;
    size_t written;
    cublasLtMatmulDescGetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSB, &transb, sizeof transb, &written);
    int64_t ub = in_bytes ? bytes_of(b.type) : 1, ud = in_bytes ? bytes_of(d.type) : 1, ua = in_bytes ? bytes_of(a.type) : 1;
    int columns = kind < 2;
    int64_t count = columns ? (int64_t)d.cols : d.batch, at = count;
    int64_t b_column = transb == CUBLAS_OP_N ? b.ld : 1;
    switch (kind) {
    case 0: at = first_past(b_column, count, ub); break;
    case 1: at = first_past(d.ld, count, ud); break;
    case 2: at = first_past(a.stride, count, ua); break;
    case 3: at = first_past(d.stride, count, ud); break;
    }
    if (at >= count)
        return real(handle, desc, alpha, A, Adesc, B, Bdesc, beta, C, Cdesc, D, Ddesc, algo, workspace, size, stream);
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    for (int half = 0; half < 2 && status == CUBLAS_STATUS_SUCCESS; half++) {
        int64_t from = half ? at : 0, length = half ? count - at : at;
        struct layout pa = a, pb = b, pc = c, pd = d;
        const char *qa = A, *qb = B, *qc = C;
        char *qd = D;
        if (columns) {
            *(transb == CUBLAS_OP_N ? &pb.cols : &pb.rows) = (uint64_t)length;
            pc.cols = pd.cols = (uint64_t)length;
            qb = moved(B, from, b_column, b.type, ub, kind == 0);
            qc = moved(C, from, c.ld, c.type, ud, kind == 1);
            qd = moved(D, from, d.ld, d.type, ud, kind == 1);
        } else {
            pa.batch = pb.batch = pc.batch = pd.batch = (int32_t)length;
            qa = moved(A, from, a.stride, a.type, ua, kind == 2);
            qb = moved(B, from, b.stride, b.type, 1, 0);
            qc = moved(C, from, c.stride, c.type, ud, kind == 3);
            qd = moved(D, from, d.stride, d.type, ud, kind == 3);
        }
        cublasLtMatrixLayout_t la = part(pa), lb = part(pb), lc = part(pc), ld = part(pd);
        status = real(handle, desc, alpha, qa, la, qb, lb, beta, qc, lc, qd, ld, NULL, workspace, size, stream);
        cublasLtMatrixLayoutDestroy(la);
        cublasLtMatrixLayoutDestroy(lb);
        cublasLtMatrixLayoutDestroy(lc);
        cublasLtMatrixLayoutDestroy(ld);
    }
    return status;
}
