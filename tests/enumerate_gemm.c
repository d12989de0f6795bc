/* Enumerates every small GEMM call with one or two huge leading dimensions that goes wrong in a CBLAS library with
 * 32-bit ints, and prints the 1-minimal ones. Shares nothing with shrinkfault: it is its judge.
 *   cc -std=c11 -O1 -Wall -Wextra -o enumerate_gemm tests/enumerate_gemm.c -ldl
 *   ./enumerate_gemm LIBRARY [NAME=VALUE]...
 * placement=end|start|end+PAD|end/ALIGN|end+PAD/ALIGN (start alike), limit=N (largest m*n*k, default 5); and the least
 * plain choices enumerated, with all plainer ones: transA=T transB=T dtype=f32|f64 alpha=1|-2 beta=0|1|-1.
 * Column-major. Each operand lies alone in 1 TiB of unmapped addresses, its last (first) byte, or that of its padding,
 * as close to an unmapped page as the alignment leaves it; only pages that hold elements or padding are mapped.
 * Signature: operand, access, place (before-start and past-end within 64 KiB, gap, far). A read in a gap between columns
 * is legal in BLAS: the page is mapped, full of NaN, and the call made again; only if the result is wrong it counts.
 * A wrong result does not say where; it has the signature of a fault on the same line of one leading dimension.
 * A case is 1-minimal if no decrease of one integer, to any smaller legal value, and no plainer choice keeps the
 * signature. On the line of a leading dimension: the packed value, the candidates, and every edge between two
 * neighbouring candidates that differ. Each shape has a process of its own, which survives faults by siglongjmp. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the order in which the parameters are declared; choices are positions in their lists. */
enum { TA, TB, M, N, K, LDA, LDB, LDC, DTYPE, ALPHA, BETA, PARAMETERS };
enum { CLEAN, LOCATED, WRONG, CRASH, HANG };
enum { PAGE = 4096, NEAR = 65536, GAP_PAGES = 64, MAPPED = 1024, POINTS = 4096 };
#define TIB (1ll << 40)
typedef struct { long long p[PARAMETERS]; } Case;
typedef struct { int kind, operand, write, place; long long displacement; /* elements; of a crash: the signal */ } Outcome;
typedef struct { long long value; Outcome o; } Point;
typedef struct { Point at[POINTS]; int count; } Line;
typedef struct { Case c; Outcome o; } Found;
typedef void Sgemm(int, int, int, int, int, int, float, const void *, int, const void *, int, float, void *, int);
typedef void Dgemm(int, int, int, int, int, int, double, const void *, int, const void *, int, double, void *, int);
static const char *names[] = {"transA", "transB", "m", "n", "k", "lda", "ldb", "ldc", "dtype", "alpha", "beta"};
static const char *words[PARAMETERS][3] = {[TA] = {"N", "T"}, [TB] = {"N", "T"}, [DTYPE] = {"f32", "f64"}, [ALPHA] = {"1", "-2"}, [BETA] = {"0", "1", "-1"}};
static const char *places[] = {"before-start", "past-end", "gap", "element", "far"};
static const int alphas[] = {1, -2}, betas[] = {0, 1, -1};

static void *functions[2];
static char *slots;
static int at_start;
static long long pad, align = 1, candidates[256], count;
static struct { long runs, bad, found_count, done; Case current; Found found[8192]; } *shared;
static char *mapped[MAPPED];
static int mapped_count;
static sigjmp_buf back;
static volatile int signal_number, signal_write;
static volatile uintptr_t signal_address;

/* Stored rows and columns of operand 0 (A), 1 (B), 2 (C). */
static void shape(const Case *c, int operand, long long *rows, long long *cols) {
    const long long *p = c->p;
    long long r = operand == 1 ? p[K] : p[M], s = operand == 0 ? p[K] : p[N], swapped = operand < 2 && p[operand];
    *rows = swapped ? s : r, *cols = swapped ? r : s;
}

static int width(const Case *c) { return c->p[DTYPE] ? 8 : 4; }

static char *place_operand(const Case *c, int operand, long long *bytes) {
    long long rows, cols, to = align > width(c) ? align : width(c);
    shape(c, operand, &rows, &cols), *bytes = ((cols - 1) * c->p[LDA + operand] + rows) * width(c);
    intptr_t edge = (intptr_t)(slots + operand * TIB + TIB / 2);
    return (char *)(at_start ? (edge + pad + to - 1) & -to : (edge - pad - *bytes) & -to);
}

static int map(char *from, char *end) {
    for (char *page = (char *)((uintptr_t)from & -(uintptr_t)PAGE); page < end; page += PAGE) {
        int known = 0;
        for (int i = mapped_count - 1; i >= 0 && !known; i--) known = mapped[i] == page;
        if (known) continue;
        if (mapped_count == MAPPED) return 0;
        if (mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != page) _exit(1);
        memset(page, 0xff, PAGE); /* NaN in both element types */
        mapped[mapped_count++] = page;
    }
    return 1;
}

static char *element(const Case *c, char *base, int operand, long long row, long long col) {
    return base + (row + col * c->p[LDA + operand]) * width(c);
}

/* Different in every element, and small enough that all sums are exact. */
static long long content(int operand, long long row, long long col) { return (operand + 2) * (1 + row + 13 * col) % 101 + 1; }

static void put(const Case *c, char *at, long long value) {
    if (c->p[DTYPE]) *(double *)at = value;
    else *(float *)at = value;
}

static void on_signal(int number, siginfo_t *info, void *context) {
    signal_number = number, signal_address = info->si_code == SI_KERNEL ? 0 : (uintptr_t)info->si_addr;
    signal_write = ((ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] >> 1 & 1;
    siglongjmp(back, 1);
}

static Outcome locate(const Case *c, char *address, int write) {
    long long bytes, rows, cols;
    Outcome o = {LOCATED, -1, write, 4, 0};
    if (address < slots || address >= slots + 3 * TIB) return o;
    char *start = place_operand(c, o.operand = (address - slots) / TIB, &bytes);
    long long from = address - start;
    shape(c, o.operand, &rows, &cols);
    o.displacement = from / width(c) - (from % width(c) < 0);
    if (from < 0) o.place = -from <= NEAR ? 0 : 4;
    else if (from >= bytes) o.place = from - bytes < NEAR ? 1 : 4;
    else o.place = from / width(c) % c->p[LDA + o.operand] < rows ? 3 : 2;
    return o;
}

static void call(const Case *c, char **at) {
    const long long *p = c->p;
    int ta = 111 + p[TA], tb = 111 + p[TB], alpha = alphas[p[ALPHA]], beta = betas[p[BETA]]; /* 111 is CblasNoTrans, 102 CblasColMajor */
    if (p[DTYPE]) ((Dgemm *)functions[1])(102, ta, tb, p[M], p[N], p[K], alpha, at[0], p[LDA], at[1], p[LDB], beta, at[2], p[LDC]);
    else ((Sgemm *)functions[0])(102, ta, tb, p[M], p[N], p[K], alpha, at[0], p[LDA], at[1], p[LDB], beta, at[2], p[LDC]);
}

static int results_are_right(const Case *c, char *base) {
    const long long *p = c->p;
    for (long long j = 0; j < p[N]; j++)
        for (long long i = 0; i < p[M]; i++) {
            long long sum = 0;
            for (long long l = 0; l < p[K]; l++)
                sum += content(0, p[TA] ? l : i, p[TA] ? i : l) * content(1, p[TB] ? j : l, p[TB] ? l : j);
            sum = alphas[p[ALPHA]] * sum + betas[p[BETA]] * content(2, i, j);
            char *at = element(c, base, 2, i, j);
            if ((p[DTYPE] ? *(double *)at : *(float *)at) != sum) return 0;
        }
    return 1;
}

/* One call, with the pages that are mapped already and its own; the pages stay mapped. */
static Outcome once(const Case *c) {
    long long bytes, rows, cols;
    char *at[3];
    for (int x = 0; x < 3; x++) {
        at[x] = place_operand(c, x, &bytes), shape(c, x, &rows, &cols);
        map(at_start ? at[x] - pad : at[x] + bytes, at_start ? at[x] : at[x] + bytes + pad);
        for (long long j = 0; j < cols; j++) map(element(c, at[x], x, 0, j), element(c, at[x], x, rows, j));
        for (long long j = 0; j < cols; j++)
            for (long long i = 0; i < rows && (x < 2 || c->p[BETA]); i++) put(c, element(c, at[x], x, i, j), content(x, i, j));
    }
    shared->runs++;
    if (sigsetjmp(back, 1)) {
        alarm(0);
        if (signal_number == SIGSEGV || signal_number == SIGBUS) return locate(c, (char *)signal_address, signal_write);
        return (Outcome){signal_number == SIGALRM ? HANG : CRASH, -1, 0, 4, signal_number};
    }
    alarm(2), call(c, at), alarm(0);
    if (!results_are_right(c, at[2])) return (Outcome){WRONG, -1, 0, 4, 0};
    for (int x = 0; x < 3; x++)
        for (long long j = (shape(c, x, &rows, &cols), 0); j < cols; j++) memset(element(c, at[x], x, 0, j), 0xff, rows * width(c));
    for (int i = 0; i < mapped_count; i++)
        for (unsigned char *b = (unsigned char *)mapped[i]; b < (unsigned char *)mapped[i] + PAGE; b++)
            if (*b != 0xff) return locate(c, (char *)b, 1);
    return (Outcome){CLEAN, -1, 0, 4, 0};
}

static Outcome run(const Case *c) {
    Outcome first = {CLEAN, -1, 0, 4, 0}, now = {CLEAN, -1, 0, 4, 0};
    shared->current = *c;
    for (int gaps = 0; gaps <= GAP_PAGES; gaps++) {
        for (int i = 0; i < mapped_count; i++) memset(mapped[i], 0xff, PAGE);
        now = once(c);
        if (gaps == 0) first = now;
        if (now.kind != LOCATED || now.write || now.place != 2 || gaps == GAP_PAGES) break;
        if (!map((char *)signal_address, (char *)signal_address + 1)) break;
    }
    for (int i = 0; i < mapped_count; i++)
        mmap(mapped[i], PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    mapped_count = 0;
    if (now.kind == WRONG && first.kind == LOCATED) now = first;
    shared->bad += now.kind != CLEAN;
    return now;
}

static int legal(const Case *c) {
    long long rows, cols;
    for (int x = 0; x < 3; x++)
        if (shape(c, x, &rows, &cols), c->p[LDA + x] < rows) return 0;
    return 1;
}

static int same(Outcome a, Outcome b) {
    if (a.kind != b.kind) return 0;
    return a.kind != LOCATED || (a.operand == b.operand && a.write == b.write && a.place == b.place);
}

/* Fewer features, less work, fewer bits, then the values in the order they are declared. */
static int before(const Case *a, const Case *b) {
    long long key[2][3 + PARAMETERS] = {{0}};
    int i = 0;
    for (const Case *c = a; i < 2; c = b, i++) {
        for (int q = 0; q < PARAMETERS; q++) key[i][0] += words[q][0] && c->p[q], key[i][2] += c->p[q] ? 64 - __builtin_clzll(c->p[q]) : 0;
        key[i][1] = c->p[M] * c->p[N] * c->p[K];
        memcpy(key[i] + 3, c->p, sizeof c->p);
    }
    for (i = 0; i < 2 + PARAMETERS && key[0][i] == key[1][i];) i++;
    return key[0][i] < key[1][i];
}

static Point probe(Case c, int q, long long value) { return c.p[q] = value, (Point){value, run(&c)}; }

/* Both sides of every edge between two different points; a third kind in the middle has two edges. */
static void edges(Line *line, const Case *c, int q, Point low, Point high) {
    while (high.value - low.value > 1) {
        Point middle = probe(*c, q, low.value + (high.value - low.value) / 2);
        if (same(middle.o, low.o)) low = middle;
        else if (same(middle.o, high.o)) high = middle;
        else edges(line, c, q, low, middle), low = middle;
    }
    if (line->count < POINTS) line->at[line->count++] = high;
}

/* The outcomes along one leading dimension, lowest first: the packed value, candidates, edges. */
static void scan(Line *line, Case c, int q) {
    long long rows, cols;
    shape(&c, q - LDA, &rows, &cols);
    Point last = probe(c, q, rows);
    line->at[0] = last, line->count = 1;
    for (int i = 0; i < count && cols > 1; i++) {
        if (candidates[i] <= rows) continue;
        Point next = probe(c, q, candidates[i]);
        if (!same(last.o, next.o)) edges(line, &c, q, last, next);
        last = next;
    }
}

/* The least value on the line with the signature; a wrong result has it where some fault of the line has. */
static long long least_on(const Line *line, Outcome o) {
    int located = 0;
    for (int i = 0; i < line->count; i++) located |= same(line->at[i].o, o);
    for (int i = 0; i < line->count; i++)
        if (same(line->at[i].o, o) || (located && o.kind == LOCATED && line->at[i].o.kind == WRONG)) return line->at[i].value;
    return -1;
}

static int minimal(const Case *c, Outcome o) {
    static Line line;
    for (int q = TA; q < PARAMETERS; q++)
        for (long long v = words[q][0] ? 0 : 1; (q < LDA || q > LDC) && v < c->p[q]; v++) {
            Case smaller = *c;
            smaller.p[q] = v;
            if (legal(&smaller) && same(run(&smaller), o)) return 0;
        }
    for (int q = LDA; q <= LDC; q++)
        if (scan(&line, *c, q), line.count > 1 && least_on(&line, o) != c->p[q]) return 0;
    return 1;
}

static void keep(const Case *c, Outcome o) {
    for (long i = 0; i < shared->found_count; i++)
        if (!memcmp(&shared->found[i].c, c, sizeof *c) && same(shared->found[i].o, o)) return;
    if (minimal(c, o) && shared->found_count < 8192) shared->found[shared->found_count++] = (Found){*c, o};
}

/* Every signature on the line of one leading dimension at its least value; and at each of these values, the lines of the
 * other two: what has another signature there is brought to its least on the first line again. */
static void enumerate(Case c, int q, int others) {
    Line *line = malloc(sizeof *line), *again = malloc(sizeof *again);
    scan(line, c, q);
    for (int i = 0; i < line->count; i++) {
        Outcome o = line->at[i].o;
        int is_new = o.kind != CLEAN && (o.kind != WRONG || least_on(line, o) == line->at[i].value);
        for (int j = 0; j < i && is_new; j++) is_new = !same(line->at[j].o, o);
        if (!is_new) continue;
        Case least = c;
        least.p[q] = least_on(line, o), keep(&least, o);
        for (int r = LDA; others && r <= LDC; r++) {
            if (r == q) continue;
            least.p[q] = line->at[i].value, scan(again, least, r);
            for (int j = 1; j < again->count; j++) {
                if (again->at[j].o.kind != LOCATED || same(again->at[j].o, o) || least_on(again, again->at[j].o) != again->at[j].value) continue;
                least.p[r] = again->at[j].value, enumerate(least, q, 0), least.p[r] = c.p[r];
            }
        }
    }
    free(line), free(again);
}

static void enumerate_shape(Case c) {
    const int *s = (int[]){SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM, 0};
    sigaltstack(&(stack_t){.ss_sp = malloc(65536), .ss_size = 65536}, NULL);
    for (struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK}; *s; s++) sigaction(*s, &action, NULL);
    long long rows, cols;
    for (int x = 0; x < 3; x++) shape(&c, x, &rows, &cols), c.p[LDA + x] = rows;
    for (int x = 0; x < 3; x++)
        if (shape(&c, x, &rows, &cols), cols > 1 || x == 0) enumerate(c, LDA + x, 1);
    shared->done = 1;
    _exit(0);
}

static int read_option(const char *option, Case *most, int *limit) {
    char *equals = strchr(option, '=');
    if (!equals) return 0;
    if (!strncmp(option, "limit=", 6)) return (*limit = atoi(equals + 1)) > 0;
    if (!strncmp(option, "placement=", 10)) {
        const char *plus = strchr(equals, '+'), *slash = strchr(equals, '/');
        at_start = !strncmp(equals + 1, "start", 5), pad = plus ? atoll(plus + 1) : 0, align = slash ? atoll(slash + 1) : 1;
        return at_start || !strncmp(equals + 1, "end", 3);
    }
    for (int q = 0; q < PARAMETERS; q++)
        for (int v = 0; v < 3 && words[q][v] && !strncmp(option, names[q], equals - option) && !names[q][equals - option]; v++)
            if (!strcmp(equals + 1, words[q][v])) return most->p[q] = v, 1;
    return 0;
}

static int ascending(const void *a, const void *b) { return (*(const long long *)a > *(const long long *)b) - (*(const long long *)a < *(const long long *)b); }

static void print(const Found *f, int least) {
    const Outcome o = f->o;
    printf("signature operand=%s access=%s place=%s minimal", o.operand < 0 ? "none" : (char *[]){"A", "B", "C"}[o.operand],
           o.kind != LOCATED ? "none" : o.write ? "write" : "read",
           o.kind == LOCATED ? places[o.place] : o.kind == WRONG ? "wrong" : o.kind == HANG ? "hang" : "crash");
    for (int q = 0; q < PARAMETERS; q++)
        if (words[q][0]) printf(" %s=%s", names[q], words[q][f->c.p[q]]);
        else printf(" %s=%lld", names[q], f->c.p[q]);
    printf(" displacement_elements=%lld least=%s\n", o.displacement, least ? "yes" : "no");
}

int main(int argc, char **argv) {
    int limit = 5, status;
    Case c = {{0}}, most = {.p = {[TA] = 1, [TB] = 1}};
    for (int i = 2; i < argc; i++)
        if (!read_option(argv[i], &most, &limit)) return fprintf(stderr, "'%s' is no option\n", argv[i]), 2;
    if (argc < 2) return fprintf(stderr, "usage: %s LIBRARY [NAME=VALUE]...\n", argv[0]), 2;
    setenv("OPENBLAS_NUM_THREADS", "1", 1), setenv("BLIS_NUM_THREADS", "1", 1);
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    for (int d = 0; d < 2; d++)
        if (!library || !(functions[d] = dlsym(library, d ? "cblas_dgemm" : "cblas_sgemm"))) return fprintf(stderr, "%s\n", dlerror()), 3;
    slots = mmap(NULL, 3 * TIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (slots == MAP_FAILED || (void *)shared == MAP_FAILED) return perror("mmap"), 3;
    for (int power = 4; power < 28; power += 2) candidates[count++] = 1ll << power;
    for (int power = 28; power <= 32; power++)
        for (int divisor = 1; divisor <= limit; divisor++)
            for (int d = -1; d <= 1; d++)
                if ((1ll << power) / divisor + d <= INT32_MAX && count < 256) candidates[count++] = (1ll << power) / divisor + d;
    qsort(candidates, count, sizeof *candidates, ascending);
    long long *p = c.p;
#define FOR(q, from, condition) for (p[q] = from; condition; p[q]++)
    FOR(BETA, 0, p[BETA] <= most.p[BETA]) FOR(ALPHA, 0, p[ALPHA] <= most.p[ALPHA]) FOR(DTYPE, 0, p[DTYPE] <= most.p[DTYPE])
    FOR(TA, 0, p[TA] <= most.p[TA]) FOR(TB, 0, p[TB] <= most.p[TB])
    FOR(M, 1, p[M] <= limit) FOR(N, 1, p[M] * p[N] <= limit) FOR(K, 1, p[M] * p[N] * p[K] <= limit) {
        shared->done = 0;
        pid_t pid = fork();
        if (pid == 0) enumerate_shape(c);
        if (pid < 0 || waitpid(pid, &status, 0) != pid) return perror("fork"), 3;
        if (shared->done) continue;
        p = shared->current.p;
        return fprintf(stderr, "the library ended the process: m=%lld n=%lld k=%lld lda=%lld ldb=%lld ldc=%lld\n", p[M], p[N], p[K], p[LDA], p[LDB], p[LDC]), 3;
    }
    for (long i = 0; i < shared->found_count; i++) {
        int least = 1;
        for (long j = 0; j < shared->found_count; j++)
            least &= !(same(shared->found[j].o, shared->found[i].o) && before(&shared->found[j].c, &shared->found[i].c));
        print(&shared->found[i], least);
    }
    printf("summary minimal=%ld runs=%ld bad=%ld\n", shared->found_count, shared->runs, shared->bad);
    return 0;
}
