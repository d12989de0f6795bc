/* BLIS 0.9.0 (Debian 12, libblis4-pthread), haswell kernels: sgemm with m = 2, n = 2, k = 1 and beta = 1 reads past the last element of C.
 *
 *   cc -o repro blis-gemm-c-read-past-end-4cb73a.c -ldl && ./repro /usr/lib/x86_64-linux-gnu/blis-pthread/libblis.so.4
 *
 * C has 2 x 2 floats and ends where a page ends; the next page is not mapped. Every argument is legal: the reference
 * BLAS reads and writes C(1:m, 1:n) and nothing else. Exit status: 0 no fault, 1 fault. */
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
    printf("%s %ld bytes past the end of C\n", write ? "write" : "read", (long)((char *)info->si_addr - end));
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

    float a[2] = {1, 2}, b[2] = {3, 4}, *c = (float *)end - 4;
    for (int i = 0; i < 4; i++) c[i] = 1;
    /* 102 column-major, 111 not transposed */
    call(102, 111, 111, 2, 2, 1, 1, a, 2, b, 1, 1, c, 2);
    printf("no fault; C = %g %g %g %g, expected 4 7 5 9\n", c[0], c[1], c[2], c[3]);
    return 0;
}
