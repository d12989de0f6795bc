/* A BLAS in small whose failures depend on what its process did before; HISTORY_BLAS says how. A failure writes far before B.
   after   every call after one with m >= 3 and k >= 6
   third   the third call and every later one
   again   a call with the m, n and k of the call before it, if n >= 2
   twin    a call that is the one before it in every number
   random  three calls of ten, at random, whatever ran before
   both    as after, and every call with n >= 5 by itself, far before C
   alone   as after, and every call with n >= 5 by itself */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Calls that find out the width of integers when the library is loaded. */
enum { FIRST = 3 };

static int is(const char *what) {
    const char *wanted = getenv("HISTORY_BLAS");
    return wanted && !strcmp(wanted, what);
}

static int fails(const int *call, size_t bytes) {
    static int calls, poisoned, last[11];
    int m = call[0], n = call[1], k = call[2];
    if (++calls <= FIRST)
        return 0;
    unsigned char dice[2];
    int now = is("third") && calls >= FIRST + 3;
    now |= (is("after") || is("both") || is("alone")) && poisoned;
    now |= is("alone") && n >= 5;
    if (is("both") && n >= 5)
        now = 2;
    now |= is("again") && n >= 2 && last[0] == m && last[1] == n && last[2] == k;
    now |= is("twin") && !memcmp(last, call, bytes);
    now |= is("random") && getrandom(dice, 2, 0) == 2 && (dice[0] << 8 | dice[1]) % 10 < 3;
    poisoned |= m >= 3 && k >= 6;
    memcpy(last, call, bytes);
    return now;
}

#define GEMM(name, real)                                                                                                   \
    void name(int order, int ta, int tb, int m, int n, int k, real alpha, const real *a, int lda, const real *b, int ldb,  \
              real beta, real *c, int ldc) {                                                                               \
        int by_column = order == 102, at = ta != 111, bt = tb != 111;                                                      \
        if (!by_column)                                                                                                    \
            abort();                                                                                                       \
        int call[11] = {m, n, k, ta, tb, lda, ldb, ldc, (int)sizeof *a, (int)alpha, (int)beta};                            \
        int failure = fails(call, sizeof call);                                                                            \
        if (failure == 2)                                                                                                  \
            *((volatile char *)c - (1L << 33)) = 0;                                                                        \
        if (failure)                                                                                                \
            *((volatile char *)b - (1L << 33)) = 0;                                                                        \
        for (long j = 0; j < n; j++)                                                                                       \
            for (long i = 0; i < m; i++) {                                                                                 \
                real sum = 0;                                                                                              \
                for (long l = 0; l < k; l++)                                                                               \
                    sum += a[at ? i * lda + l : l * lda + i] * b[bt ? l * ldb + j : j * ldb + l];                          \
                real *to = c + j * ldc + i;                                                                                \
                *to = alpha * sum + (beta == 0 ? 0 : beta * *to);                                                          \
            }                                                                                                              \
    }

GEMM(cblas_sgemm, float)
GEMM(cblas_dgemm, double)
