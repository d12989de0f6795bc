#!/usr/bin/env bash
# Hunts on every BLAS named (or found by `shrinkfault targets`) under both profiles, one folder of results each.
#
#   scripts/campaign-cpu.sh TIME OUT [LIBRARY...]      for instance: scripts/campaign-cpu.sh 5m /tmp/campaign
#
# Prints one line per run: library, profile, exit code, cases by verdict, new findings. The events of each run are kept as
# OUT/NAME-PROFILE/events.jsonl. Needs: cargo, python3.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,7p' "$0" | sed 's/^# \{0,1\}//'; exit 2; }
time=$1 out=$2
shift 2
cd "$(dirname "$0")/.."
cargo build --release --locked --quiet
program=$PWD/target/release/shrinkfault
libraries=("$@")
if [ ${#libraries[@]} -eq 0 ]; then
  mapfile -t libraries < <("$program" targets | awk '$1 == "gemm" && $2 ~ /^\// { print $2 }')
fi
[ ${#libraries[@]} -gt 0 ] || { echo "no BLAS found: name one" >&2; exit 2; }

for library in "${libraries[@]}"; do
  for profile in strided packed; do
    folder=$out/$(basename "$(dirname "$library")")-$(basename "$library")-$profile
    mkdir -p "$folder"
    code=0
    "$program" gemm --target cblas --lib "$library" --profile "$profile" --seed 42 --time "$time" --keep-going --json \
      --out "$folder/out" >"$folder/events.jsonl" 2>"$folder/stderr" || code=$?
    python3 - "$library" "$profile" "$code" "$folder/events.jsonl" <<'PY'
import json, sys
library, profile, code, events = sys.argv[1:]
last = None
for line in open(events):
    event = json.loads(line)
    if event["event"] == "finished":
        last = event["summary"]
if last is None:
    print(f"{library} {profile}: exit {code}, no summary; see stderr beside the events")
else:
    tally = ", ".join(f"{n} {v}" for v, n in last["tally"].items() if n)
    print(f"{library} {profile}: exit {code}; {tally}; {last['seconds']:.0f} s; findings: {', '.join(last['findings']) or 'none'}")
PY
  done
done
