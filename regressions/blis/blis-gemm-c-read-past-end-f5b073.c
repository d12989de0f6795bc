/* BLIS 0.9.0, core type haswell: gemm on libblis.so.4 reads the first byte past the end of C. The call is
 * cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, 2, 2, 257, 1, A, 2, B, 257, 0, C, 2); it is good with m = 1, n
 * = 1, k = 256 (one of these at a time). All arguments are legal and fit the library's integers, and every operand lies
 * alone in 1 TiB of addresses of which only the pages of its elements are mapped.
 *
 *   cc -o repro blis-gemm-c-read-past-end-f5b073.c -ldl && ./repro LIBRARY [SYMBOL]
 *
 * SYMBOL is the name of the function where a library decorates it; its integers must have 32 bits.
 * Exit status: 0 right, 1 fault or wrong. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

typedef float real;
enum { PARTS = 1, OPERANDS = 3 };
static const int64_t slot = 1ll << 40;
static char *slots, *base[OPERANDS], names[] = "ABC";
static const int64_t size[OPERANDS] = {PARTS * sizeof(real), PARTS * sizeof(real), PARTS * sizeof(real)}; /* bytes of an element */

/* What the elements of a matrix hold: that in row i and column j at + i * row + j * column. Of a triangular one ('U' or 'L')
   the other triangle, and a unit diagonal, hold `other`. */
typedef struct {
    real at, row, column, other;
    char triangle;
    int unit;
} fill;

static real held(fill f, int64_t i, int64_t j) {
    int inside = !f.triangle || (f.triangle == 'U' ? i <= j : i >= j);
    return inside && !(f.unit && i == j) ? f.at + i * f.row + j * f.column : f.other;
}

/* rows x columns elements, a row `step` (which may be negative) and a column `ld` elements from the next, and as many
   matrices as `count` says, `stride` apart; in slot number x. The highest element ends where a page ends.
   Gives the address that BLAS takes: that of the lowest element. */
static real *place(int x, int64_t rows, int64_t columns, int64_t step, int64_t ld, int64_t count, int64_t stride, fill f) {
    int64_t bytes = size[x], low = step < 0 ? (rows - 1) * step : 0;
    int64_t high = (step < 0 ? 0 : (rows - 1) * step) + (columns - 1) * ld + (count - 1) * stride;
    char *at = slots + x * slot + slot / 2 - (high - low + 1) * bytes;
    for (int64_t z = 0; z < count; z++)
        for (int64_t j = 0; j < columns; j++)
            for (int64_t i = 0; i < rows; i++) {
                char *element = at + (i * step + j * ld + z * stride - low) * bytes;
                for (char *byte = element; byte < element + bytes; byte += bytes - 1)
                    mprotect((void *)((uintptr_t)byte & -(uintptr_t)4096), 4096, PROT_READ | PROT_WRITE);
                ((real *)element)[0] = held(f, i, j);
            }
    (void)high;
    return (real *)(base[x] = at);
}

/* Elements that do not hold what they should. */
__attribute__((unused)) static int64_t wrong(int x, int64_t rows, int64_t columns, int64_t step, int64_t ld, int64_t count,
                                             int64_t stride, fill f) {
    int64_t bytes = size[x], low = step < 0 ? (rows - 1) * step : 0, found = 0;
    for (int64_t z = 0; z < count; z++)
        for (int64_t j = 0; j < columns; j++)
            for (int64_t i = 0; i < rows; i++) {
                real *element = (real *)(base[x] + (i * step + j * ld + z * stride - low) * bytes);
                found += element[0] != held(f, i, j) || (PARTS == 2 && element[PARTS - 1] != 0);
            }
    return found;
}

static void fault(int number, siginfo_t *info, void *context) {
    (void)number;
    int write = ((ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] >> 1 & 1; /* x86-64 */
    int64_t x = ((char *)info->si_addr - slots) / slot;
    if (x >= 0 && x < OPERANDS)
        printf("%s %lld bytes from the base of %c\n", write ? "write" : "read", (long long)((char *)info->si_addr - base[x]), names[x]);
    else
        printf("%s near no operand\n", write ? "write" : "read");
    fflush(stdout);
    _exit(1);
}

int main(int argc, char **argv) {
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    void (*call)(int, int, int, int, int, int, real, real *, int, real *, int, real, real *, int) = library ? (void (*)(int, int, int, int, int, int, real, real *, int, real *, int, real, real *, int))dlsym(library, argc > 2 ? argv[2] : "cblas_sgemm") : NULL;
    if (!call) return fprintf(stderr, "usage: %s LIBRARY [SYMBOL]\n%s\n", argv[0], argc > 1 ? dlerror() : ""), 2;
    slots = mmap(NULL, OPERANDS * slot, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (slots == MAP_FAILED) return perror("mmap"), 2;
    sigaction(SIGSEGV, &(struct sigaction){.sa_sigaction = fault, .sa_flags = SA_SIGINFO}, NULL);
    const int ta = 0;
    const int tb = 0;
    const int m = 2;
    const int n = 2;
    const int k = 257;
    const real alpha = 1;
    const int lda = 2;
    const int ldb = 257;
    const real beta = 0;
    const int ldc = 2;
    real *A = place(0, ta ? k : m, ta ? m : k, 1, lda, 1, 0, (fill){1, 0, 0, 0, 0, 0});
    real *B = place(1, tb ? n : k, tb ? k : n, 1, ldb, 1, 0, (fill){1, 0, 0, 0, 0, 0});
    real *C = place(2, m, n, 1, ldc, 1, 0, (fill){0.0 / 0.0, 0, 0, 0, 0, 0});
    call(102 /* column-major */, 111 /* transA=N */, 111 /* transB=N */, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
    int64_t bad = wrong(2, m, n, 1, ldc, 1, 0, (fill){alpha * k + beta, 0, 0, 0, 0, 0});
    if (bad) return printf("no fault, but elements that are wrong: %lld\n", (long long)bad), 1;
    printf("no fault, and the right result\n");
    return 0;
}
