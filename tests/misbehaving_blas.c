/* A BLAS in small that writes far before B for m >= 3 and n >= 5, and does to its process what MISBEHAVING_BLAS says:
   fork     a child of it holds every descriptor open
   handler  a SIGSEGV handler of its own ends the process as if nothing had happened
   stray    writes a line to every descriptor it finds
   hang     the first process that makes the file MISBEHAVING_BLAS_MARK waits for ever in its second case */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Calls that find out the width of integers when the library is loaded. */
enum { FIRST = 3 };

static int is(const char *what) {
    const char *wanted = getenv("MISBEHAVING_BLAS");
    return wanted && !strcmp(wanted, what);
}

static void leave(int signal) {
    (void)signal;
    _exit(0);
}

__attribute__((constructor)) static void loaded(void) {
    if (is("handler"))
        signal(SIGSEGV, leave);
    if (is("fork") && fork() == 0) {
        sleep(20);
        _exit(0);
    }
}

static void misbehave(void) {
    static int calls;
    if (++calls <= FIRST)
        return;
    if (is("stray"))
        for (int fd = 3; fd < 64; fd++)
            if (write(fd, "stray\n", 6) < 0)
                continue;
    const char *mark = getenv("MISBEHAVING_BLAS_MARK");
    if (is("hang") && calls == FIRST + 2 && mark && open(mark, O_CREAT | O_EXCL | O_WRONLY, 0644) >= 0)
        for (;;)
            pause();
}

#define GEMM(name, real)                                                                                                   \
    void name(int order, int ta, int tb, int m, int n, int k, real alpha, const real *a, int lda, const real *b, int ldb,  \
              real beta, real *c, int ldc) {                                                                               \
        int by_column = order == 102, at = ta != 111, bt = tb != 111;                                                      \
        if (!by_column)                                                                                                    \
            abort();                                                                                                       \
        misbehave();                                                                                                       \
        if (m >= 3 && n >= 5)                                                                                              \
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
