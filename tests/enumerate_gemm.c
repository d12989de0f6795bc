/* Enumerates every small GEMM call with one huge leading dimension that faults in a CBLAS library with
 * 32-bit ints, and prints the 1-minimal ones. Shares nothing with shrinkfault: it is its judge.
 *   cc -std=c11 -O1 -Wall -Wextra -o enumerate_gemm tests/enumerate_gemm.c -ldl
 *   ./enumerate_gemm LIBRARY s|d [end|start] [LIMIT]
 * Column-major, m*n*k <= LIMIT (default 5), alpha 1, beta 0. Each operand lies alone in 1 TiB of unmapped
 * addresses, 512 GiB from its edge, flush to the end (start) of its last (first) page; only pages that hold
 * elements are mapped. Each call runs in a child. Signature: operand, access, place. A case is 1-minimal if
 * no decrease of one parameter to any smaller legal value keeps the signature (a transpose can be dropped);
 * for a leading dimension: the packed value, the candidates, the exact boundary between two of them.
 * Contents are zeros: wrong answers are not looked for, and an offset that lands on a mapped page is not
 * seen. A read in a gap between columns is legal in BLAS; it is listed all the same. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, TA = 0, TB, M, N, K, LDA, LDB, LDC, PARAMETERS };
enum { CLEAN, FAULT, CRASH, HANG, ILLEGAL };
#define TIB (1ll << 40)
typedef struct { long long p[PARAMETERS]; } Case;
typedef struct { int kind, operand, write, place; long long displacement; /* elements; of a crash: the signal */ } Outcome;
typedef struct { Case c; Outcome o; } Found;
typedef void Sgemm(int, int, int, int, int, int, float, const void *, int, const void *, int, float, void *, int);
typedef void Dgemm(int, int, int, int, int, int, double, const void *, int, const void *, int, double, void *, int);

static void *function;
static char *slots;
static int is_double, at_start, element;
static struct Report { volatile int signal, write, mapped; volatile uintptr_t address; } *report;
static long runs, faults, crashes, hangs, found_count;
static Found found[4096];
static long long values[512]; /* ascending candidates; the first stands for the packed value */
static const char *places[] = {"before-start", "past-end", "in-gap", "elsewhere"};

/* Stored rows and columns of operand 0 (A), 1 (B), 2 (C). */
static void shape(const Case *c, int operand, long long *rows, long long *cols) {
    const long long *p = c->p;
    long long r = operand == 1 ? p[K] : p[M], s = operand == 0 ? p[K] : p[N], swapped = operand < 2 && p[operand];
    *rows = swapped ? s : r, *cols = swapped ? r : s;
}

static char *place_operand(const Case *c, int operand, long long *bytes) {
    long long rows, cols;
    shape(c, operand, &rows, &cols), *bytes = ((cols - 1) * c->p[LDA + operand] + rows) * element;
    return slots + operand * TIB + TIB / 2 - (at_start ? 0 : *bytes);
}

static void on_signal(int number, siginfo_t *info, void *context) {
    report->signal = number;
    report->address = info->si_code == SI_KERNEL ? 0 : (uintptr_t)info->si_addr;
    report->write = ((ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] >> 1 & 1;
    _exit(0);
}

static void child(const Case *c) {
    const long long *p = c->p;
    long long bytes, rows, cols;
    char *at[3];
    for (int x = 0; x < 3; x++) {
        at[x] = place_operand(c, x, &bytes), shape(c, x, &rows, &cols);
        for (long long j = 0; j < cols; j++) {
            uintptr_t from = (uintptr_t)at[x] + j * p[LDA + x] * element, to = from + rows * element;
            for (uintptr_t page = from & -(uintptr_t)PAGE; page < to; page += PAGE)
                if (mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE)) _exit(1);
        }
    }
    report->mapped = 1;
    sigaltstack(&(stack_t){.ss_sp = malloc(65536), .ss_size = 65536}, NULL);
    const int *s = (int[]){SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, 0};
    for (struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK}; *s; s++)
        sigaction(*s, &action, NULL);
    alarm(2);
    int ta = 111 + p[TA], tb = 111 + p[TB]; /* CblasNoTrans, CblasTrans; 102 is CblasColMajor */
    if (is_double)
        ((Dgemm *)function)(102, ta, tb, p[M], p[N], p[K], 1, at[0], p[LDA], at[1], p[LDB], 0, at[2], p[LDC]);
    else
        ((Sgemm *)function)(102, ta, tb, p[M], p[N], p[K], 1, at[0], p[LDA], at[1], p[LDB], 0, at[2], p[LDC]);
    _exit(42);
}

static Outcome run(const Case *c) {
    Outcome o = {CLEAN, -1, 0, 3, 0};
    long long rows, cols, bytes;
    int status;
    for (int x = 0; x < 3; x++)
        if (shape(c, x, &rows, &cols), c->p[LDA + x] < rows) return o.kind = ILLEGAL, o;
    *report = (struct Report){0}, runs++;
    pid_t pid = fork();
    if (pid == 0) child(c);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !report->mapped) perror("setting up a case failed"), exit(3);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 42) return o;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return hangs++, o.kind = HANG, o;
    if (report->signal != SIGSEGV) /* another signal, or 0: the library called exit() */
        return crashes++, o.kind = CRASH, o.displacement = report->signal, o;
    o.kind = FAULT, o.write = report->write, faults++;
    char *address = (char *)report->address;
    if (address < slots || address >= slots + 3 * TIB) return o;
    char *start = place_operand(c, o.operand = (address - slots) / TIB, &bytes);
    o.place = address < start ? 0 : address >= start + bytes ? 1 : 2;
    o.displacement = (address - start) / element - ((address - start) % element < 0);
    return o;
}

static int same(Outcome a, Outcome b) {
    int signal = a.kind != CRASH || a.displacement == b.displacement;
    return signal && a.kind == b.kind && a.operand == b.operand && a.write == b.write && a.place == b.place;
}

/* Fewer transposes, less work, fewer bits, then the values in the order they are declared. */
static int before(const Case *a, const Case *b) {
    long long key[2][3 + PARAMETERS] = {{0}};
    int i = 0;
    for (const Case *c = a; i < 2; c = b, i++) {
        key[i][0] = c->p[TA] + c->p[TB], key[i][1] = c->p[M] * c->p[N] * c->p[K];
        for (int q = M; q < PARAMETERS; q++) key[i][2] += 64 - __builtin_clzll(c->p[q]);
        memcpy(key[i] + 3, c->p, sizeof c->p);
    }
    for (i = 0; i < 2 + PARAMETERS && key[0][i] == key[1][i];) i++;
    return key[0][i] < key[1][i];
}

/* The large leading dimension is at its least already; the other two are packed. */
static int minimal(const Case *c, Outcome o) {
    for (int q = TA; q <= K; q++)
        for (long long v = q < M ? 0 : 1; v < c->p[q]; v++) {
            Case smaller = *c;
            smaller.p[q] = v;
            if (same(run(&smaller), o)) return 0;
        }
    return 1;
}

static int ascending(const void *a, const void *b) { return *(const long long *)a - *(const long long *)b; }

/* For each signature along one leading dimension: the least value that has it, then the other parameters. */
static void scan(Case c, int q, int count) {
    static Outcome seen[512];
    values[0] = c.p[q];
    for (int i = 0; i < count; i++) {
        c.p[q] = values[i];
        seen[i] = run(&c);
        int is_new = seen[i].kind != CLEAN && (i || q == LDA); /* the packed case comes up in three scans */
        for (int j = 0; j < i && is_new; j++) is_new = !same(seen[j], seen[i]);
        if (!is_new) continue;
        Found f = {c, seen[i]};
        for (long long pass = values[i ? i - 1 : 0]; f.c.p[q] - pass > 1;) {
            c.p[q] = pass + (f.c.p[q] - pass) / 2;
            Outcome o = run(&c);
            if (same(o, f.o)) f = (Found){c, o};
            else pass = c.p[q];
        }
        if (minimal(&f.c, f.o) && found_count < 4096) found[found_count++] = f;
    }
}

int main(int argc, char **argv) {
    if (argc < 3) return fprintf(stderr, "usage: %s LIBRARY s|d [end|start] [LIMIT]\n", argv[0]), 2;
    is_double = *argv[2] == 'd', element = is_double ? 8 : 4, at_start = argc > 3 && !strcmp(argv[3], "start");
    int limit = argc > 4 ? atoi(argv[4]) : 5, count = 1;
    setenv("OPENBLAS_NUM_THREADS", "1", 1), setenv("BLIS_NUM_THREADS", "1", 1);
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    function = library ? dlsym(library, is_double ? "cblas_dgemm" : "cblas_sgemm") : NULL;
    if (!function) return fprintf(stderr, "%s\n", dlerror()), 3;
    slots = mmap(NULL, 3 * TIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    report = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (slots == MAP_FAILED || (void *)report == MAP_FAILED) return perror("mmap"), 3;
    for (int power = 26; power <= 32; power++)
        for (int c = 1; c <= 12; c++)
            for (int d = -1; d <= 2; d++)
                if ((1ll << power) / c + d <= INT32_MAX) values[count++] = (1ll << power) / c + d;
    qsort(values, count, sizeof *values, ascending);
    for (int t = 0; t < 4; t++)
        for (int m = 1; m <= limit; m++)
            for (int n = 1; m * n <= limit; n++)
                for (int k = 1; m * n * k <= limit; k++) {
                    Case c = {{t >> 1, t & 1, m, n, k, 0, 0, 0}};
                    long long rows, cols[3];
                    for (int x = 0; x < 3; x++) shape(&c, x, &rows, &cols[x]), c.p[LDA + x] = rows;
                    for (int x = 0; x < 3; x++) scan(c, LDA + x, cols[x] > 1 ? count : 1);
                }
    for (long i = 0; i < found_count; i++) {
        Outcome o = found[i].o;
        long long *p = found[i].c.p, least = 1;
        for (long j = 0; j < found_count; j++) least &= !(same(found[j].o, o) && before(&found[j].c, &found[i].c));
        printf("signature operand=%s access=%s place=%s ", o.operand < 0 ? "none" : (char *[]){"A", "B", "C"}[o.operand],
               o.kind != FAULT ? "none" : o.write ? "w" : "r", o.kind == FAULT ? places[o.place] : o.kind == HANG ? "hang" : "crash");
        printf("minimal m=%lld n=%lld k=%lld transA=%c transB=%c lda=%lld ldb=%lld ldc=%lld %s=%lld least=%s\n", p[M], p[N],
               p[K], "NT"[p[TA]], "NT"[p[TB]], p[LDA], p[LDB], p[LDC],
               o.kind == CRASH ? "signal" : "displacement_elements", o.displacement, least ? "yes" : "no");
    }
    printf("summary minimal=%ld runs=%ld faults=%ld crashes=%ld hangs=%ld\n", found_count, runs, faults, crashes, hangs);
    return 0;
}
