/* GSL 2.7.1 (Debian 12, libgslcblas0): cblas_sgemm with m = 1, n = 3, k = 1, beta = 0 and ldc = 2^30 writes 2^31 elements
 * before C; ldc = 2^30 - 1 is good. The offset 2 * ldc is 2^31, one more than a signed 32-bit integer holds.
 *
 *   cc -o repro gslcblas-gemm-c-write-far-2d5825.c -ldl && ./repro /usr/lib/x86_64-linux-gnu/libgslcblas.so.0
 *
 * Every operand lies alone in 256 GiB of addresses of which only the pages that hold its elements are mapped, and ends
 * where a page ends. All arguments are legal and fit 32 bits, and no element lies outside its operand's memory.
 * Exit status: 0 no fault, 1 fault. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

typedef float real;
typedef void gemm(int, int, int, int, int, int, real, const real *, int, const real *, int, real, real *, int);
enum { M = 1, N = 3, K = 1, LDA = 1, LDB = 1, LDC = 1 << 30 };
static char *base[3], *slots;
static const int64_t slot = 1ll << 38;

/* rows x columns elements, ld apart, in slot number x; all are 1. */
static real *place(int x, int64_t rows, int64_t columns, int64_t ld) {
    real *at = (real *)(slots + x * slot + slot / 2) - ((columns - 1) * ld + rows);
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++) {
            uintptr_t page = (uintptr_t)&at[i + j * ld] & -(uintptr_t)4096;
            mprotect((void *)page, 4096, PROT_READ | PROT_WRITE);
            at[i + j * ld] = 1;
        }
    return base[x] = (char *)at, at;
}

static void fault(int number, siginfo_t *info, void *context) {
    (void)number;
    int write = ((ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] >> 1 & 1; /* x86-64 */
    int64_t x = ((char *)info->si_addr - slots) / slot, from = x >= 0 && x < 3 ? (char *)info->si_addr - base[x] : 0;
    if (x >= 0 && x < 3) printf("%s %lld elements from the base of %c\n", write ? "write" : "read", (long long)(from / (int64_t)sizeof(real)), "ABC"[x]);
    else printf("%s near no operand\n", write ? "write" : "read");
    fflush(stdout);
    _exit(1);
}

int main(int argc, char **argv) {
    void *library = dlopen(argc > 1 ? argv[1] : "libgslcblas.so.0", RTLD_NOW);
    gemm *call = library ? (gemm *)dlsym(library, "cblas_sgemm") : NULL;
    if (!call) return fprintf(stderr, "%s\n", dlerror()), 2;
    slots = mmap(NULL, 3 * slot, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (slots == MAP_FAILED) return perror("mmap"), 2;
    sigaction(SIGSEGV, &(struct sigaction){.sa_sigaction = fault, .sa_flags = SA_SIGINFO}, NULL);
    real *a = place(0, M, K, LDA), *b = place(1, K, N, LDB), *c = place(2, M, N, LDC);
    /* 102 column-major, 111 not transposed, 112 transposed; alpha 1, beta 0 */
    call(102, 111, 111, M, N, K, 1, a, LDA, b, LDB, 0, c, LDC);
    for (int64_t j = 0; j < N; j++)
        if (c[j * LDC] != K + 0) return printf("no fault, but a wrong result in column %lld\n", (long long)j), 1;
    printf("no fault, and the right result\n");
    return 0;
}
