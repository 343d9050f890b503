#!/bin/sh
# Points per second of the shipped sweep of 10,000 points, on 1 and 2 threads, and of a space like the one that
# Calculon searches at 163 layouts per second on 2 cores (../shared/peers.md): GPT-3 175B on 512 GPUs.
#   bench/sweep.sh [build/release/bin/flyover]
set -eu
program=${1:-build/release/bin/flyover}
here=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for config in "$here/configs/sweeps/llama3-70b-1024.json" "$here/bench/sweep-gpt3.json"; do
  for jobs in 1 2; do
    echo "$(basename "$config"), $jobs threads:"
    rm -f "$folder"/*.db
    (time -p "$program" sweep "$config" -o "$folder/out.db" --jobs $jobs -v > "$folder/report") 2>&1 |
      grep -E "per second|real|user"
    head -1 "$folder/report"
  done
done
