/* A BLAS in small whose offsets into B wrap at 32 bits. Where WRAPPING_BLAS_BREAKS names a file, the first wrap makes that
   file, and from then on every call faults: a device that goes bad. */
#include <stdio.h>
#include <stdlib.h>

/* Calls that find out the width of integers when the library is loaded. */
enum { FIRST = 3 };

static int is_broken(int wraps) {
    static int calls;
    const char *file = getenv("WRAPPING_BLAS_BREAKS");
    if (!file || ++calls <= FIRST)
        return 0;
    FILE *mark = fopen(file, wraps ? "w" : "r");
    if (mark)
        fclose(mark);
    return mark != NULL;
}

#define GEMM(name, real)                                                                                                   \
    void name(int order, int ta, int tb, int m, int n, int k, real alpha, const real *a, int lda, const real *b, int ldb,  \
              real beta, real *c, int ldc) {                                                                               \
        int by_column = order == 102, at = ta != 111, bt = tb != 111;                                                      \
        long far = (long)((bt ? k : n) - 1) * ldb;                                                                         \
        if (!by_column)                                                                                                    \
            abort();                                                                                                       \
        if (m > 0 && n > 0 && k > 0 && is_broken(far > 0x7fffffffL))                                                       \
            *(volatile char *)8 = 0;                                                                                       \
        for (int j = 0; j < n; j++)                                                                                        \
            for (int i = 0; i < m; i++) {                                                                                  \
                real sum = 0;                                                                                              \
                for (int l = 0; l < k; l++) {                                                                              \
                    int offset = (int)((unsigned)(bt ? l : j) * (unsigned)ldb + (unsigned)(bt ? j : l));                   \
                    sum += a[at ? (long)i * lda + l : (long)l * lda + i] * b[offset];                                      \
                }                                                                                                          \
                real *to = c + (long)j * ldc + i;                                                                          \
                *to = alpha * sum + (beta == 0 ? 0 : beta * *to);                                                          \
            }                                                                                                              \
    }

GEMM(cblas_sgemm, float)
GEMM(cblas_dgemm, double)
