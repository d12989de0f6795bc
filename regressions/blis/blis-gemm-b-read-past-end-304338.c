/* BLIS 0.9.0 (Debian 12, libblis4-pthread), haswell kernels: sgemm with A transposed, m = 16, n = 4, k = 1 and lda = 2 reads
 * past the last element of B.
 *
 *   cc -o repro blis-gemm-b-read-past-end-304338.c -ldl && ./repro /usr/lib/x86_64-linux-gnu/blis-pthread/libblis.so.4
 *
 * B has 1 x 4 floats and ends where a page ends; the next page is not mapped. Every argument is legal: the reference
 * BLAS reads B(1:k, 1:n) and nothing else. Exit status: 0 no fault, 1 fault. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

typedef void sgemm(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
static char *end;

static void fault(int number, siginfo_t *info, void *context) {
    (void)number;
    int write = ((ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] >> 1 & 1; /* x86-64 */
    printf("%s %ld bytes past the end of B\n", write ? "write" : "read", (long)((char *)info->si_addr - end));
    fflush(stdout);
    _exit(1);
}

int main(int argc, char **argv) {
    void *library = dlopen(argc > 1 ? argv[1] : "libblis.so.4", RTLD_NOW);
    sgemm *call = library ? (sgemm *)dlsym(library, "cblas_sgemm") : NULL;
    if (!call) return fprintf(stderr, "%s\n", dlerror()), 2;
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    end = pages + 4096;
    mprotect(end, 4096, PROT_NONE);
    sigaction(SIGSEGV, &(struct sigaction){.sa_sigaction = fault, .sa_flags = SA_SIGINFO}, NULL);

    float a[32], *b = (float *)end - 4, c[64];
    for (int i = 0; i < 32; i++) a[i] = i / 2;
    for (int j = 0; j < 4; j++) b[j] = 1 + j;
    /* 102 column-major, 112 transposed, 111 not transposed */
    call(102, 112, 111, 16, 4, 1, 1, a, 2, b, 1, 0, c, 16);
    printf("no fault; C(16, 4) = %g, expected 60\n", c[63]);
    return 0;
}
