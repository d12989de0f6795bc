#!/usr/bin/env python3
"""Writes a CUDA program that makes the call of a finding on cuBLAS or cublasLt.

    scripts/make_cuda_reproducer.py regressions/GROUP/NAME.toml > regressions/GROUP/NAME.cu
    nvcc -o reproduce NAME.cu -lcublas -lcublasLt && ./reproduce

The program shares nothing with shrinkfault. Operands are plain allocations of the size that the documentation asks for, one after
another, so an access far from its operand meets no memory; the result lies in a larger one, all of which is compared afterwards.
Findings with batches or of 8-bit types are refused: write those by hand.
"""

import sys
import tomllib

TYPES = {
    # C++ type, cudaDataType_t of A and B, of C, compute type, C++ type of alpha and its cudaDataType_t.
    "f32": ("float", "float", "CUDA_R_32F", "CUDA_R_32F", "CUBLAS_COMPUTE_32F", "float", "CUDA_R_32F"),
    "tf32": ("float", "float", "CUDA_R_32F", "CUDA_R_32F", "CUBLAS_COMPUTE_32F_FAST_TF32", "float", "CUDA_R_32F"),
    "f64": ("double", "double", "CUDA_R_64F", "CUDA_R_64F", "CUBLAS_COMPUTE_64F", "double", "CUDA_R_64F"),
    "f16": ("__half", "__half", "CUDA_R_16F", "CUDA_R_16F", "CUBLAS_COMPUTE_32F", "float", "CUDA_R_32F"),
    "bf16": ("__nv_bfloat16", "__nv_bfloat16", "CUDA_R_16BF", "CUDA_R_16BF", "CUBLAS_COMPUTE_32F", "float", "CUDA_R_32F"),
    "f16_f32": ("__half", "float", "CUDA_R_16F", "CUDA_R_32F", "CUBLAS_COMPUTE_32F", "float", "CUDA_R_32F"),
    "bf16_f32": ("__nv_bfloat16", "float", "CUDA_R_16BF", "CUDA_R_32F", "CUBLAS_COMPUTE_32F", "float", "CUDA_R_32F"),
}

PROGRAM = """\
// {title}
// As filed: {environment}.
// Build and run: nvcc -o reproduce {name}.cu -lcublas -lcublasLt && ./reproduce
//
// The operands have the sizes that the documentation of {function} asks for:
// A {arows} x {acolumns}, leading dimension {lda}; B {brows} x {bcolumns}, leading dimension {ldb};
// C and the result {m} x {n}, leading dimensions {ldc} and {ldd}.

#include <cstdio>
#include <cstdlib>
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <typename T> __global__ void fill(T *p, long long rows, long long columns, long long leading, float value)
{{
    for (long long i = threadIdx.x + (long long)blockIdx.x * blockDim.x; i < rows * columns; i += (long long)gridDim.x * blockDim.x)
        p[i % rows + i / rows * leading] = (T)value;
}}

template <typename T> static T *operand(const char *name, long long rows, long long columns, long long leading, float value)
{{
    T *p;
    size_t bytes = ((columns - 1) * leading + rows) * sizeof(T);
    if (cudaMalloc(&p, bytes) != cudaSuccess) {{
        printf("no memory for the %zu bytes of %s\\n", bytes, name);
        exit(2);
    }}
    fill<<<64, 256>>>(p, rows, columns, leading, value);
    printf("%s: %p to %p\\n", name, (void *)p, (void *)((char *)p + bytes));
    return p;
}}

int main()
{{
    {ctype} *A = operand<{ctype}>("A", {arows}, {acolumns}, {lda}LL, 1);
    {ctype} *B = operand<{ctype}>("B", {brows}, {bcolumns}, {ldb}LL, 1);
    {dtype} *C = operand<{dtype}>("C", {m}, {n}, {ldc}LL, 1);
    // The result, and {margin} elements behind it: what is no element of it holds 7.
    {dtype} *D = {result};
    const long long size = ({n} - 1) * {ldd}LL + {m} + ({separate} ? {margin} : 0);
    if ({separate}) fill<<<64, 256>>>(D, size, 1, size, 7);
    {scalar} alpha = {alpha}, beta = {beta};
    if (cudaDeviceSynchronize() != cudaSuccess) return 2;
{call}
    cudaError_t error = cudaDeviceSynchronize();
    printf("status %d; %s\\n", (int)status, cudaGetErrorString(error));
    if (status != CUBLAS_STATUS_SUCCESS) return 2;
    if (error != cudaSuccess) return 1;
    long long wrong = 0, strays = 0;
    for (long long i = 0; i < {m}LL * {n}; i++) {{
        {dtype} d;
        cudaMemcpy(&d, D + i % {m} + i / {m} * {ldd}LL, sizeof d, cudaMemcpyDeviceToHost);
        if ((float)d != {expected}) wrong++;
    }}
    for (long long i = 0; {separate} && i < size; i++) {{
        {dtype} d;
        if (i % {ldd} < {m} && i / {ldd} < {n}) continue;
        cudaMemcpy(&d, D + i, sizeof d, cudaMemcpyDeviceToHost);
        if ((float)d != 7) strays++;
    }}
    printf("%lld of %lld elements of the result are wrong, %lld others were changed\\n", wrong, {m}LL * {n}, strays);
    return wrong > 0 || strays > 0;
}}
"""

CUBLAS = """\
    cublasHandle_t handle;
    cublasCreate(&handle);
    cublasStatus_t status = cublasGemmEx{long}(handle, {opa}, {opb}, {m}, {n}, {k}, &alpha, A, {atype}, {lda}, B, {atype}, {ldb}, &beta, C,
                                         {ctypeid}, {ldc}, {compute}, CUBLAS_GEMM_DEFAULT);"""

CUBLASLT = """\
    cublasLtHandle_t handle;
    cublasLtCreate(&handle);
    cublasOperation_t ta = {opa}, tb = {opb};
    cublasLtMatmulDesc_t product;
    cublasLtMatmulDescCreate(&product, {compute}, {scaletype});
    cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &ta, sizeof ta);
    cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSB, &tb, sizeof tb);
    cublasLtMatrixLayout_t a, b, c, d;
    cublasLtMatrixLayoutCreate(&a, {atype}, {arows}, {acolumns}, {lda}LL);
    cublasLtMatrixLayoutCreate(&b, {atype}, {brows}, {bcolumns}, {ldb}LL);
    cublasLtMatrixLayoutCreate(&c, {ctypeid}, {m}, {n}, {ldc}LL);
    cublasLtMatrixLayoutCreate(&d, {ctypeid}, {m}, {n}, {ldd}LL);
    size_t workspace_bytes = {workspace};
    void *workspace;
    cudaMalloc(&workspace, workspace_bytes + 256);
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulPreferenceCreate(&preference);
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes, sizeof workspace_bytes);
    cublasLtMatmulHeuristicResult_t proposals[8];
    int count = 0;
    cublasLtMatmulAlgoGetHeuristic(handle, product, a, b, c, d, preference, 8, proposals, &count);
    cublasStatus_t status = CUBLAS_STATUS_NOT_SUPPORTED;
    // The first proposal that ends in an error is the one that is meant; others may be right.
    for (int i = 0; i < count; i++) {{
        status = cublasLtMatmul(handle, product, &alpha, A, a, B, b, &beta, C, c, D, d, &proposals[i].algo, workspace, workspace_bytes, 0);
        int id = -1;
        size_t written;
        cublasLtMatmulAlgoConfigGetAttribute(&proposals[i].algo, CUBLASLT_ALGO_CONFIG_ID, &id, sizeof id, &written);
        printf("proposal %d, algorithm %d: %s\\n", i, id, cudaGetErrorString(cudaDeviceSynchronize()));
        if (cudaPeekAtLastError() != cudaSuccess || {beta} != 0) break;
        {dtype} last;
        cudaMemcpy(&last, D + ({m} - 1) + ({n} - 1) * {ldd}LL, sizeof last, cudaMemcpyDeviceToHost);
        if ((float)last != {expected}) break;
    }}"""


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    with open(sys.argv[1], "rb") as file:
        finding = tomllib.load(file)
    params, knobs = finding["minimal"]["params"], finding["minimal"].get("knobs", {})
    family = finding["target"].split("@")[0].split(",")[0]
    dtype = params["dtype"]
    refused = (
        (family not in ("cublas", "cublaslt"), f"{family} is neither cublas nor cublaslt"),
        (finding["problem"] != "gemm" or dtype not in TYPES, f"{dtype} is not one of {', '.join(TYPES)}"),
        (params["batch"] != 1, "it has a batch"),
        (params["out"] == "D" and family == "cublas", "cublasGemmEx has no separate D"),
        (any(params[o] for o in ("offA", "offB", "offC")), "its operands do not begin at their base pointers"),
    )
    for is_so, why in refused:
        if is_so:
            sys.exit(f"{sys.argv[1]}: {why}; write its program by hand")
    ctype, ctype_c, atype, ctypeid, compute, scalar, scaletype = TYPES[dtype]
    m, n, k = params["m"], params["n"], params["k"]
    (arows, acolumns) = (m, k) if params["transA"] == "N" else (k, m)
    (brows, bcolumns) = (k, n) if params["transB"] == "N" else (n, k)
    values = {
        **{name: params[name] for name in ("m", "n", "k", "lda", "ldb", "ldc", "alpha", "beta")},
        "arows": arows, "acolumns": acolumns, "brows": brows, "bcolumns": bcolumns,
        "ctype": ctype, "dtype": ctype_c, "atype": atype, "ctypeid": ctypeid, "compute": compute, "scalar": scalar, "scaletype": scaletype,
        "opa": f"CUBLAS_OP_{params['transA']}", "opb": f"CUBLAS_OP_{params['transB']}",
        "long": "_64" if knobs.get("api") == 64 or max(params[x] for x in ("lda", "ldb", "ldc")) > 2**31 - 1 else "",
        "workspace": knobs.get("workspace", 32 << 20),
        "ldd": params["ldd"] if params["out"] == "D" else params["ldc"],
        "separate": int(params["out"] == "D"),
        "margin": 64,
        "result": f'operand<{ctype_c}>("D", {m} + 64, {n}, {params["ldd"]} + 64LL, 7)' if params["out"] == "D" else "C",
        "expected": int(params["alpha"]) * k + int(params["beta"]),
    }
    template = CUBLAS if family == "cublas" else CUBLASLT
    name = sys.argv[1].rsplit("/", 1)[-1].removesuffix(".toml")
    title = finding["environment"].get("target", {}).get("title", finding["target"])
    print(PROGRAM.format(
        **values, call=template.format(**values), name=name, title=finding["title"],
        environment=title,
        function="cublasGemmEx" if family == "cublas" else "cublasLtMatmul",
    ), end="")


main()
