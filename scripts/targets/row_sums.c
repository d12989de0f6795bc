// A kernel under shrinkfault, with a planted defect: it keeps the offset of a row in 32 bits.
// Build it beside this file, then hunt:
//   cc -O1 -o scripts/targets/row_sums scripts/targets/row_sums.c
//   shrinkfault fuzz scripts/targets/row_sums.toml
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

static const size_t ARENA = (size_t)1 << 40, PAGE = 4096; // addresses; only the pages of a case are mapped
static char *arena;
static long long id;

// The kernel: y[r] = sum over c of A[r * lda + c].
static void row_sums(const float *A, float *y, int64_t rows, int64_t cols, int64_t lda) {
    for (int64_t r = 0; r < rows; r++) {
        int32_t offset = (int32_t)(r * lda); // the defect
        float sum = 0;
        for (int64_t c = 0; c < cols; c++) sum += A[offset + c];
        y[r] = sum;
    }
}

// Says where the access went; then the same access kills the process.
static void on_fault(int sig, siginfo_t *info, void *context) {
    const char *access = "";
#ifdef __x86_64__
    access = ((ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] & 2 ? ",\"access\":\"w\"" : ",\"access\":\"r\"";
#endif
    char line[160];
    int n = snprintf(line, sizeof line, "{\"id\":%lld,\"evidence\":{\"address\":\"%p\"%s}}\n", id, info->si_addr, access);
    if (write(1, line, n) != n) _exit(1);
    signal(sig, SIG_DFL);
}

// Maps the pages of `bytes` bytes, or gives them back.
static void pages(char *at, size_t bytes, int prot) {
    char *first = (char *)((uintptr_t)at & ~(PAGE - 1));
    size_t length = (size_t)(at + bytes - first + PAGE - 1) & ~(PAGE - 1);
    if (mmap(first, length, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) exit(3);
}

static long long number(const char *line, const char *key) {
    const char *at = strstr(line, key);
    return at ? strtoll(at + strlen(key), NULL, 10) : 0;
}

int main(void) {
    arena = mmap(NULL, ARENA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (arena == MAP_FAILED) return 3;
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    printf("{\"shrinkfault\":1}\n");
    fflush(stdout);
    static char line[1 << 16];
    while (fgets(line, sizeof line, stdin)) {
        id = number(line, "\"id\":");
        int64_t rows = number(line, "\"rows\":"), cols = number(line, "\"cols\":"), lda = number(line, "\"lda\":");
        // Both operands end where an unmapped page begins, and lie 512 GiB apart.
        float *A = (float *)(arena + ARENA / 4 * 3) - ((rows - 1) * lda + cols), *y = (float *)(arena + ARENA / 4) - rows;
        for (int64_t r = 0; r < rows; r++) pages((char *)(A + r * lda), cols * sizeof *A, PROT_READ | PROT_WRITE);
        pages((char *)y, rows * sizeof *y, PROT_READ | PROT_WRITE);
        for (int64_t r = 0; r < rows; r++) for (int64_t c = 0; c < cols; c++) A[r * lda + c] = (r * 7 + c * 3) % 5 + 1;
        printf("{\"id\":%lld,\"launch\":{\"A\":\"%p\",\"y\":\"%p\"}}\n", id, (void *)A, (void *)y);
        fflush(stdout);
        row_sums(A, y, rows, cols, lda);
        int64_t wrong = 0, first = 0;
        for (int64_t r = rows - 1; r >= 0; r--) {
            float sum = 0;
            for (int64_t c = 0; c < cols; c++) sum += (r * 7 + c * 3) % 5 + 1;
            if (y[r] != sum) wrong++, first = r;
        }
        if (wrong)
            printf("{\"id\":%lld,\"verdict\":\"wrong\",\"operand\":\"y\",\"first\":[%lld],\"count\":%lld,\"compared\":%lld}\n", id, (long long)first, (long long)wrong, (long long)rows);
        else
            printf("{\"id\":%lld,\"verdict\":\"pass\"}\n", id);
        fflush(stdout);
        for (int64_t r = 0; r < rows; r++) pages((char *)(A + r * lda), cols * sizeof *A, PROT_NONE);
        pages((char *)y, rows * sizeof *y, PROT_NONE);
    }
    return 0;
}
