#!/usr/bin/env bash
# CPU seconds (user + system) and peak memory of whole commands, as a Markdown table.
#
#   bench/end_to_end.sh [build/release/bin/flyover]
#
# Each command runs three times; the table has the least of each figure, which other load on the machine
# disturbs least. The kernel counts the memory of the process that starts the command too, so that no
# figure is below that of an empty Python, about 10 MiB.
set -euo pipefail
cd "$(dirname "$0")/.."

flyover=${1:-build/release/bin/flyover}
[ -x "$flyover" ] || { echo "bench/end_to_end.sh: no program at '$flyover'; build it first" >&2; exit 2; }

exec python3 -I -S - "$flyover" <<'PYTHON'
import os
import subprocess
import sys

flyover = sys.argv[1]

# (what it is, arguments)
WORK = [
    ("bench all_reduce, 16 GPUs, 32 sizes", "bench all_reduce -t dgx-h100:2 -b 8 -e 16G -f 2"),
    ("bench all_reduce, 1,024 GPUs, one size", "bench all_reduce -t dgx-h100:128 -b 1G -e 1G"),
    ("bench all_to_all, 512 GPUs, one size", "bench all_to_all -t dgx-h100:64 -b 256M -e 256M"),
    ("Llama-3 70B layer, 8 GPUs", "run -t dgx-h100 -w workloads/llama3-70b-tp8-layer.json"),
    ("topo, SuperPOD of 127 nodes", "topo topologies/h100-superpod-4su.json"),
    ("topo, 2,048 nodes", "topo topologies/h100-superpod-4su.json --set nodes=2048"),
]


def measure(arguments):
    """CPU seconds and peak MiB of one run in a child of its own."""
    child = subprocess.Popen([flyover, *arguments.split()], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"bench/end_to_end.sh: 'flyover {arguments}' failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


print("| work | command | CPU s | peak MiB |\n|---|---|---:|---:|")
for name, arguments in WORK:
    seconds, memory = (min(column) for column in zip(*(measure(arguments) for _ in range(3))))
    print(f"| {name} | `flyover {arguments}` | {seconds:.3f} | {memory:.0f} |", flush=True)
PYTHON
