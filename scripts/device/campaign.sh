#!/bin/bash
# Four hunts of five minutes, side by side on one GPU: cublaslt and cublas, strided and packed. Prints counts and keeps findings.
#   scripts/device/campaign.sh PROGRAM OUT [SECONDS]
set -u
program=$1 out=$2 seconds=${3:-300}
mkdir -p "$out"
cd "$(dirname "$0")/../.." || exit 1
pids=()
for target in cublaslt cublas; do
    for profile in strided packed; do
        name=$target-$profile
        "$program" gemm --target "$target" --profile "$profile" --seed 42 --time "${seconds}s" --keep-going --sanitizer --jobs 4 \
            --json --out "$out/$name" >"$out/$name.jsonl" 2>"$out/$name.err" &
        pids+=($!)
    done
done
wait "${pids[@]}"
python3 scripts/device/summary.py "$out"/*.jsonl
