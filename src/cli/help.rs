//! Texts that `--help` ends with: parameters, meanings, exit codes.

pub const EXIT_CODES: &str = "\
Exit codes: 0 nothing new, 1 findings, 2 usage, 3 setup or self-test failed, 4 device unhealthy, 6 nothing ran, 70 a bug of
shrinkfault, 130 or 143 interrupted. `shrinkfault COMMAND --help` says what they mean for a command.";

pub const KEEP_HELP: &str = "\
Exit codes: 0 kept, or there already; 2 no finding, a different file has its name, or the folder cannot be written.";

pub const REGRESS_HELP: &str = "\
Outcomes: reproduced; moved (the line lies elsewhere now); different (fails in another way); fixed; back (filed as fixed,
fails again); not-comparable (passes, but another library, core type or kernel answered than the file names); skipped.

Exit codes: 0 every finding that ran is as filed (a newly fixed one is, too), or this shard is empty; 1 one moved, is
different or back; 2 usage, or a file holds no finding (the others are replayed all the same); 3 setup or self-test
failed; 4 device unhealthy; 5 none ran and one is not comparable; 6 nothing ran; 70 a bug of shrinkfault; 130 or 143
interrupted.";

pub const CHECK_HELP: &str = "\
A shape is past the line if every parameter of which the finding has a certified pair is at or past its first bad value;
before it if one is at or before its last good value and none is past its first bad one. Whatever else differs from the
minimal case, unless the finding says that it makes no difference, leaves it open. Parameters that a shape does not name
are completed as on the command line: defaults, packed leading dimensions.

Exit codes: 0 no shape is past the line, 1 one is, 2 usage or a shape that is none, 70 a bug of shrinkfault.";

pub const STATUS_HELP: &str = "\
Says whether the hunt runs, ended or was killed, what it is doing, its cases by verdict, its findings, when it will end, and
the command that goes on with it.

Exit codes: 0 said, 2 there was no hunt in the folder.";

pub const CORPUS_HELP: &str = "\
A case adds nothing to an earlier one of its problem that has the same magnitude (number of bits) of every operand's most
extreme offset, the same choices, such as transposes and the element type, the same knobs and placement, and the same
operands flush at a page edge. With --target or --lib the cases are run, and kernel, verdict and place of the damage have to
be the same, too; cases that are refused, skipped or hang are kept. Nothing is written without --write or --into.

Exit codes: 0 done, 2 usage, a file that holds no seed case, or a folder that cannot be written, 3 no worker can be started,
70 a bug of shrinkfault, 130 or 143 interrupted.";

pub const GEMM_HELP: &str = "\
Parameters: m n k, transA transB (N, T, or C: conjugate transpose), lda ldb ldc, out (C in place, or a separate D with
ldd), batch with strideA strideB strideC strideD, dtype (f32 f64 f16 bf16 c64 c128, and bf16_f32 f16_f32: factors of 16
bits, result f32; on a GPU also tf32, i8_i32, f8e4m3_bf16, f8e4m3_f32, f8e5m2_f8e4m3_bf16), alpha (1 or -2), beta (0, 1 or
-1), offA offB offC. All distances are in elements, sizes are at least 1.
A CBLAS has f32 f64 c64 c128, and what else it exports of bf16_f32, f16_f32 and batches, and out=C only; models have N and
T, f32 f64 f16 bf16.

On an NVIDIA GPU: --target cublaslt, --target cublas, or --target kernel:FILE.toml for a CUDA kernel of your own; docs/cuda.md.

A library is told by the target's name what picks its kernels: --target cblas,core=Haswell,threads=4 --lib PATH. core is
the library's own word for it (Haswell of OpenBLAS, zen3 of BLIS, AVX2 of MKL); a library that does not follow is an error.

Matrices are column-major, as in BLAS. A row-major caller computing C = A B (PyTorch, C arrays) calls it as
C' = B' A': its second factor is our A, its first factor is our B, its columns are our m, its rows our n.

Exit codes: 0 nothing new, 1 new findings, 2 usage, 3 setup or self-test failed or the disk is full, 4 device unhealthy,
6 nothing ran (all refused or skipped), 70 a bug of shrinkfault, 130 or 143 interrupted (--resume goes on).";

pub const BLAS_HELP: &str = "\
Needs a library: --lib PATH, or the first BLAS found in the usual folders. --target cblas,core=Haswell,threads=4 picks its
kernels, as for gemm. Routines are called through CBLAS, column-major, in the types s d c z.

Parameters: n, m and k are sizes; lda ldb ldc leading dimensions and incx incy increments, in elements; negx negy (true or
false) pass an increment as a negative number; trans transA transB are N, T or C, side L or R, uplo L or U, diag N or U;
dtype is f32, f64, c64 or c128, conj (true or false) picks gerc and dotc; alpha is 1 or -2, beta 0, 1 or -1; rot has c and s.
A routine that returns a number has an operand r for it. `--set` with a name that a routine does not have lists those it has.

Exit codes: 0 nothing new, 1 new findings, 2 usage, 3 setup or self-test failed or the disk is full, 4 device unhealthy,
6 nothing ran (all refused or skipped), 70 a bug of shrinkfault, 130 or 143 interrupted (--resume goes on).";

pub const ALLGATHER_HELP: &str = "\
Parameters: ranks, M rows and N columns per rank, strideIn and strideOut (distance between rows, elements), inplace,
dtype (f32 bf16 f16 f64). Row i of rank r becomes row r*M + i of every output. A plain count per rank is M=1, N=count.

Exit codes: 0 nothing new, 1 new findings, 2 usage, 3 setup or self-test failed or the disk is full, 4 device unhealthy,
6 nothing ran (all refused or skipped), 70 a bug of shrinkfault, 130 or 143 interrupted (--resume goes on).";

pub const FUZZ_HELP: &str = "\
The manifest describes parameters, constraints and operands, and names a program that reads cases as JSON lines from its
stdin and answers them on its stdout. docs/manifest.md shows how to write both; scripts/targets/ has an example in C and one
in Python. What the program's own memory lets it notice is up to the program, and the self-test says so.

A finding names its manifest, so `run FINDING` and `shrink FINDING` find the program again; --manifest PATH overrides it.

Exit codes: 0 nothing new, 1 new findings, 2 usage or a manifest that does not parse, 3 setup or self-test failed, the
program broke the protocol or the disk is full, 4 device unhealthy, 6 nothing ran (all refused or skipped), 70 a bug of
shrinkfault, 130 or 143 interrupted (--resume goes on).";

pub const RUN_HELP: &str = "\
The case is a finding, a corpus file, or parameters: gemm:m=4,n=9,k=3,ldb=2^31-1. Parameters that are not
named take their least value, strides are packed. --set overrides a parameter of a file.

A finding that fails only after other cases is run after them, in one process. With --repeat, run gives the verdict of the
first run that fails, and stops where the process ends; shrink looks for the fewest runs where one alone does not fail.

run --lib A --lib B --lib C runs the case --confirm times on each and names the first bad library and the first good one
after it. It exits with 1 where one is bad, else with 3 where one cannot be used.

Exit codes of run: 0 pass, 1 bad, 6 refused or skipped. Of shrink: 0 the case does not fail, 1 finding written. Of both:
2 usage, 3 setup or self-test failed, 4 device unhealthy, 70 a bug of shrinkfault, 130 or 143 interrupted.";
