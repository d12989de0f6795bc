#!/bin/bash
# Hunts every planted kernel on a GPU, and the tutorial's addressing with the row stride pinned to 2^27.
#   scripts/device/planted.sh PROGRAM OUT
set -u
program=$1 out=$2
mkdir -p "$out"
cd "$(dirname "$0")/../.." || exit 1
for kernel in none wrap_b wrap_c_bytes wrap_batch_a vector_a before_c past_c unwritten value hang; do
    echo "== planted_$kernel"
    start=$(date +%s.%N)
    timeout 120 "$program" gemm --target "kernel:scripts/targets/cuda/planted_$kernel.toml" --seed 42 --time 40s \
        --case-timeout 1s --quiet --out "$out/$kernel" 2>&1 | grep -v "commit with\|shrink further\|reproduce with"
    echo "exit ${PIPESTATUS[0]}, $(date +%s.%N | awk -v s="$start" '{printf "%.1f", $1 - s}') s"
done
echo "== tutorial_matmul, lda=2^27"
"$program" gemm --target kernel:scripts/targets/cuda/tutorial_matmul.toml --seed 42 --time 60s --set lda=134217728 \
    --out "$out/tutorial" 2>&1 | grep -v "commit with\|shrink further\|reproduce with"
