#!/usr/bin/env python3
"""Writes a C program that makes the call of a finding on a BLAS, with every operand against unmapped pages.

    scripts/make_reproducer.py regressions/GROUP/NAME.toml > regressions/GROUP/NAME.c

The program shares nothing with shrinkfault: it loads the library, makes the one call, and says what happened. Which elements a
routine touches is written down here once more, from the documentation of BLAS. Findings of other problems, and those that need
other calls before, are refused: write those by hand.
"""

import sys
import textwrap
import tomllib

# Rows of a triangular op(A) of ones sum to 1, 2, 3 ... from one end, and so do columns: what element i, j of op(A) * B or
# B * op(A) holds for a B of ones, as (at 0, 0; more per row; more per column).
SUMS = (
    "right ? lower ? n : 1 : lower ? 1 : m",
    "right ? 0 : lower ? 1 : -1",
    "right ? lower ? -1 : 1 : 0",
)
TRIANGULAR = {"A": ("right ? n : m", "right ? n : m", "1", "lda", "1"), "B": ("m", "n", "1", "ldb", "1")}

# Arguments in the order of cblas.h; operands as (rows, columns, step of a row, step of a column) and the value of every
# element before the call, which may be such a triple; written operands with the value after it. All as C expressions.
ROUTINES = {
    "gemm": (
        "order transA transB m n k alpha A lda B ldb beta C ldc",
        {
            "A": ("ta ? k : m", "ta ? m : k", "1", "lda", "1"),
            "B": ("tb ? n : k", "tb ? k : n", "1", "ldb", "1"),
            "C": ("m", "n", "1", "ldc", "1"),
        },
        {"C": "alpha * k + beta"},
    ),
    "syrk": (
        "order uplo trans n k alpha A lda beta C ldc",
        {"A": ("ta ? k : n", "ta ? n : k", "1", "lda", "1"), "C": ("n", "n", "1", "ldc", "1")},
        {"C": "alpha * k + beta"},
    ),
    "syr2k": (
        "order uplo trans n k alpha A lda B ldb beta C ldc",
        {
            "A": ("ta ? k : n", "ta ? n : k", "1", "lda", "1"),
            "B": ("ta ? k : n", "ta ? n : k", "1", "ldb", "1"),
            "C": ("n", "n", "1", "ldc", "1"),
        },
        {"C": "2 * alpha * k + beta"},
    ),
    "gemmt": (
        "order uplo transA transB n k alpha A lda B ldb beta C ldc",
        {
            "A": ("ta ? k : n", "ta ? n : k", "1", "lda", "1"),
            "B": ("tb ? n : k", "tb ? k : n", "1", "ldb", "1"),
            "C": ("n", "n", "1", "ldc", "1"),
        },
        {"C": "alpha * k + beta"},
    ),
    "symm": (
        "order side uplo m n alpha A lda B ldb beta C ldc",
        {
            "A": ("right ? n : m", "right ? n : m", "1", "lda", "1"),
            "B": ("m", "n", "1", "ldb", "1"),
            "C": ("m", "n", "1", "ldc", "1"),
        },
        {"C": "alpha * (right ? n : m) + beta"},
    ),
    "trmm": (
        "order side uplo trans diag m n alpha A lda B ldb",
        TRIANGULAR,
        {"B": tuple(f"alpha * ({sum})" for sum in SUMS)},
    ),
    "trsm": (
        "order side uplo trans diag m n alpha A lda B ldb",
        {**TRIANGULAR, "B": (*TRIANGULAR["B"][:4], SUMS)},
        {"B": "alpha"},
    ),
    "gemv": (
        "order trans m n alpha A lda x incx beta y incy",
        {
            "A": ("m", "n", "1", "lda", "1"),
            "x": ("ta ? m : n", "1", "incx", "0", "1"),
            "y": ("ta ? n : m", "1", "incy", "0", "1"),
        },
        {"y": "alpha * (ta ? m : n) + beta"},
    ),
    "ger": (
        "order m n alpha x incx y incy A lda",
        {"x": ("m", "1", "incx", "0", "1"), "y": ("n", "1", "incy", "0", "1"), "A": ("m", "n", "1", "lda", "1")},
        {"A": "1 + alpha"},
    ),
    "axpy": (
        "n alpha x incx y incy",
        {"x": ("n", "1", "incx", "0", "1"), "y": ("n", "1", "incy", "0", "1")},
        {"y": "alpha + 1"},
    ),
    "copy": (
        "n x incx y incy",
        {"x": ("n", "1", "incx", "0", "1"), "y": ("n", "1", "incy", "0", "2")},
        {"y": "1"},
    ),
    "swap": (
        "n x incx y incy",
        {"x": ("n", "1", "incx", "0", "1"), "y": ("n", "1", "incy", "0", "2")},
        {"x": "2", "y": "1"},
    ),
    "scal": ("n alpha x incx", {"x": ("n", "1", "incx", "0", "1")}, {"x": "alpha"}),
    "rot": (
        "n x incx y incy c s",
        {"x": ("n", "1", "incx", "0", "1"), "y": ("n", "1", "incy", "0", "2")},
        {"x": "c + 2 * s", "y": "2 * c - s"},
    ),
    "dot": (
        "n x incx y incy",
        {"x": ("n", "1", "incx", "0", "1"), "y": ("n", "1", "incy", "0", "1")},
        {"": "n"},
    ),
    "asum": ("n x incx", {"x": ("n", "1", "incx", "0", "1")}, {"": "n"}),
    "nrm2": ("n x incx", {"x": ("n", "1", "incx", "0", "1")}, {"": "sqrt(n)"}),
    "iamax": ("n x incx", {"x": ("n", "1", "incx", "0", "1")}, {"": "0"}),
}
TYPES = {
    "f32": ("s", "float", 1),
    "f64": ("d", "double", 1),
    "c64": ("c", "float", 2),
    "c128": ("z", "double", 2),
    "bf16_f32": ("", "float", 1),
    "f16_f32": ("", "float", 1),
}
# How factors of 16 bits write 1.
ONE_IN_16_BITS = {"bf16_f32": "0x3f80", "f16_f32": "0x3c00"}
# Operands of which one triangle is referenced, and what the other one holds: of what is read, something that must not be used;
# of what is written, something that must stay.
NAN = "0.0 / 0.0"
HALVES = {
    "symm": ("A", NAN),
    "trmm": ("A", NAN),
    "trsm": ("A", NAN),
    "syrk": ("C", "1"),
    "syr2k": ("C", "1"),
    "gemmt": ("C", "1"),
}
BATCHED = "order transA transB m n k alpha A lda strideA B ldb strideB beta C ldc strideC batch"
ENUMS = {
    "trans": {"N": 111, "T": 112, "C": 113},
    "uplo": {"U": 121, "L": 122},
    "side": {"L": 141, "R": 142},
    "diag": {"N": 131, "U": 132},
}
BODY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

typedef @REAL@ real;
enum { PARTS = @PARTS@, OPERANDS = @COUNT@ };
static const int64_t slot = 1ll << 40;
static char *slots, *base[OPERANDS], names[] = "@NAMES@";
static const int64_t size[OPERANDS] = {@SIZES@}; /* bytes of an element */

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
   matrices as `count` says, `stride` apart; in slot number x. The @EDGE@.
   Gives the address that BLAS takes: that of the lowest element. */
static real *place(int x, int64_t rows, int64_t columns, int64_t step, int64_t ld, int64_t count, int64_t stride, fill f) {
    int64_t bytes = size[x], low = step < 0 ? (rows - 1) * step : 0;
    int64_t high = (step < 0 ? 0 : (rows - 1) * step) + (columns - 1) * ld + (count - 1) * stride;
    char *at = slots + x * slot + slot / 2 @AT@;
    for (int64_t z = 0; z < count; z++)
        for (int64_t j = 0; j < columns; j++)
            for (int64_t i = 0; i < rows; i++) {
                char *element = at + (i * step + j * ld + z * stride - low) * bytes;
                for (char *byte = element; byte < element + bytes; byte += bytes - 1)
                    mprotect((void *)((uintptr_t)byte & -(uintptr_t)4096), 4096, PROT_READ | PROT_WRITE);
                @STORE@
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
@CORE@    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    @RETURNS@ (*call)(@PROTOTYPE@) = library ? (@RETURNS@ (*)(@PROTOTYPE@))dlsym(library, argc > 2 ? argv[2] : "@FUNCTION@") : NULL;
    if (!call) return fprintf(stderr, "usage: %s LIBRARY [SYMBOL]\n%s\n", argv[0], argc > 1 ? dlerror() : ""), 2;
    slots = mmap(NULL, OPERANDS * slot, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (slots == MAP_FAILED) return perror("mmap"), 2;
    sigaction(SIGSEGV, &(struct sigaction){.sa_sigaction = fault, .sa_flags = SA_SIGINFO}, NULL);
@SETUP@
    int64_t bad = @CHECK@;
    if (bad) return printf("no fault, but elements that are wrong: %lld\n", (long long)bad), 1;
    printf("no fault, and the right result\n");
    return 0;
}
"""


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    finding = tomllib.load(open(sys.argv[1], "rb"))
    if "minimal" not in finding:
        sys.exit(f"{sys.argv[1]} is no finding; shrink it first")
    if "history" in finding:
        sys.exit(f"{sys.argv[1]} fails only after other calls: there is no recipe for that")
    params, problem = finding["minimal"]["params"], finding["problem"]
    mixed = params["dtype"] in ONE_IN_16_BITS
    if problem not in ROUTINES or params["dtype"] not in TYPES or mixed and problem != "gemm":
        sys.exit(f"{sys.argv[1]}: no recipe for {problem} with dtype={params['dtype']}")
    order, operands, results = ROUTINES[problem]
    batched = params.get("batch", 1) != 1
    if batched:
        order = BATCHED
    letter, real, parts = TYPES[params["dtype"]]
    integer = "int64_t" if any(v == "64" or v.startswith("64 ") for k, v in environment(finding).items() if k == "int width") else "int"
    names = list(operands)

    values, prototype, arguments = [], [], []
    for name in order.split():
        negated = params.get("neg" + name.removeprefix("inc")) if name.startswith("inc") else False
        if name == "order":
            prototype.append("int"), arguments.append("102 /* column-major */")
        elif name.rstrip("AB") in ENUMS:
            flag = {"trans": "ta", "transA": "ta", "transB": "tb", "side": "right"}.get(name)
            if flag and (problem, name) not in (("trmm", "trans"), ("trsm", "trans")):  # `lower` there
                values.append(f"const int {flag} = {int(params[name] not in ('N', 'L'))};")
            prototype.append("int"), arguments.append(f"{ENUMS[name.rstrip('AB')][params[name]]} /* {name}={params[name]} */")
        elif name in operands:
            prototype.append("real *"), arguments.append(name)
        elif name in ("alpha", "beta", "c", "s"):
            values.append(f"const real {name} = {params[name]};")
            by_value = parts == 1 or name in ("c", "s")
            prototype.append("real" if by_value else "const real *")
            arguments.append(name if by_value else f"(real[]){{{name}, 0}}")
        else:
            values.append(f"const {integer} {name} = {'-' if negated else ''}{params[name]};")
            prototype.append(integer), arguments.append(name)
    function, returns, number = f"cblas_{letter}{problem}{'_batch_strided' if batched else ''}", "void", ""
    if problem == "ger" and parts == 2:
        function = f"cblas_{letter}ger{'c' if params.get('conj') else 'u'}"
    if problem in ("asum", "nrm2", "iamax"):
        function = f"cblas_{letter if parts == 1 else {'c': 'sc', 'z': 'dz'}[letter]}{problem}"
        returns, number = "real", "real r = "
    if problem == "iamax":
        function, returns, number = f"cblas_i{letter}amax", "size_t", "size_t r = "
    if problem == "dot":
        returns, number = "real", "real r = "
        if parts == 2:
            function, returns, number = f"cblas_{letter}dot{'c' if params.get('conj') else 'u'}_sub", "void", ""
            values.append("real r[2] = {0, 0};")
            prototype.append("real *"), arguments.append("r")

    if mixed:  # Libraries do not agree on the name.
        function = finding["call"].partition("(")[0]
    # The library may decorate its symbols: "CBLAS (scipy_cblas_sgemm64_)".
    exported = environment(finding).get("interface", "").partition("(")[2].rstrip(")")
    if "cblas_sgemm" in exported:
        function = exported.replace("cblas_sgemm", function)

    setup = list(values)
    matrices = lambda name: f"batch, stride{name}" if batched else "1, 0"
    if problem in ("trmm", "trsm"):
        lower = (params["uplo"] == "L") == (params["trans"] == "N")
        setup.append(f"__attribute__((unused)) const int lower = {int(lower)}; /* op(A) */")
    half, other = HALVES.get(problem, (None, None))

    def fill(name, value):
        at, row, column = value if isinstance(value, tuple) else (value, "0", "0")
        if name != half:
            return f"(fill){{{at}, {row}, {column}, 0, 0, 0}}"
        unit = int(params.get("diag") == "U")
        return f"(fill){{{at}, {row}, {column}, {other}, '{params['uplo']}', {unit}}}"

    for x, (name, (rows, columns, step, ld, value)) in enumerate(operands.items()):
        if name == names[-1] and params.get("beta") == "0":
            value = NAN
        setup.append(f"real *{name} = place({x}, {rows}, {columns}, {step}, {ld}, {matrices(name)}, {fill(name, value)});")
    setup.append(f"{number}call({', '.join(arguments)});")
    checks = []
    for name, value in results.items():
        if name:
            rows, columns, step, ld, _ = operands[name]
            checks.append(f"wrong({names.index(name)}, {rows}, {columns}, {step}, {ld}, {matrices(name)}, {fill(name, value)})")
        elif problem == "nrm2":
            unit = "__FLT_EPSILON__" if real == "float" else "__DBL_EPSILON__"
            setup.append(f"const long double ratio = (long double)r * r / n, near = 4 * (long double){unit}; /* 2 last places of r */")
            checks.append("!(ratio > 1 - near && ratio < 1 + near)")
        else:
            checks.append(f"{'r[0]' if problem == 'dot' and parts == 2 else 'r'} != {value}")
    store = "((real *)element)[0] = held(f, i, j);"
    if mixed:
        store = f"if (size[x] == 2) *(uint16_t *)element = {ONE_IN_16_BITS[params['dtype']]}; /* 1 */\n                else {store}"
    sizes = ["2" if mixed and name != "C" else "PARTS * sizeof(real)" for name in names]
    start = finding["minimal"]["placement"].startswith("start")
    body = BODY
    for mark, text in {
        "REAL": real, "PARTS": str(parts), "COUNT": str(len(names)), "NAMES": "".join(names),
        "SIZES": ", ".join(sizes), "STORE": store, "FUNCTION": function,
        "EDGE": "lowest element begins where a page begins" if start else "highest element ends where a page ends",
        "AT": "" if start else "- (high - low + 1) * bytes",
        "RETURNS": returns, "PROTOTYPE": ", ".join(prototype), "SETUP": textwrap.indent("\n".join(setup), "    "),
        "CHECK": " + ".join(checks), "CORE": core_type(finding),
    }.items():
        body = body.replace(f"@{mark}@", text)
    print(comment(finding, sys.argv[1]) + body, end="")


def core_type(finding):
    """A line that forces the kernels of the finding, where its target does."""
    settings = finding["target"].partition("@")[0].split(",")
    core = next((word.removeprefix("core=") for word in settings if word.startswith("core=")), None)
    variable = {"OpenBLAS": "OPENBLAS_CORETYPE", "MKL": "MKL_ENABLE_INSTRUCTIONS"}.get(environment(finding).get("name"))
    return f'    setenv("{variable}", "{core}", 1);\n' if core and variable else ""


def environment(finding):
    """What the finding says of its library."""
    target = finding.get("environment", {}).get("target", {})
    return {k: str(v) for k, v in (target.items() if isinstance(target, dict) else target)}


def library(said):
    """Brand and version, as far as the library says them."""
    brand, version = said.get("name", "BLAS of no known brand"), said.get("version", "unknown")
    if version == "unknown":
        return brand
    return version if version.startswith(brand) else f"{brand} {version}"


def comment(finding, path):
    said = environment(finding)
    core = f", core type {said['core']}" if said.get("core", "unknown") != "unknown" else ""
    name = path.rsplit("/", 1)[-1].removesuffix(".toml")
    pairs = ", ".join(
        f"{w['param']} = {w['last_good']['value']}" for w in finding.get("witness", []) if w.get("certified") and "last_good" in w
    )
    text = (
        f"{library(said)}{core}: {finding['title']}. The call is {finding['call']}"
        f"{f'; it is good with {pairs} (one of these at a time)' if pairs else ''}. All arguments are legal and fit the library's integers, and every operand lies"
        " alone in 1 TiB of addresses of which only the pages of its elements are mapped."
    )
    lines = "\n".join(f" * {line}" for line in textwrap.wrap(" ".join(text.split()), 118))
    bits = "64" if said.get("int width", "32").startswith("64") else "32"
    symbol = f"SYMBOL is the name of the function where a library decorates it; its integers must have {bits} bits."
    return f"/*{lines[2:]}\n *\n *   cc -o repro {name}.c -ldl && ./repro LIBRARY [SYMBOL]\n *\n * {symbol}\n * Exit status: 0 right, 1 fault or wrong. */"


if __name__ == "__main__":
    main()
