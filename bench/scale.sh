#!/usr/bin/env bash
# What a training step costs as the cluster grows, and as its micro-batches do: CPU seconds (user + system)
# and peak memory of whole commands on one core, as Markdown tables.
#
#   bench/scale.sh [build/release/bin/flyover]
#
# The step: Llama-3 405B, 126 layers, sequence 8192, TP8 PP16 (interleaved, 8 chunks per stage), the rest DP,
# on a three-tier fat tree of DGX H100. Each command runs three times; the table has the least of each figure.
set -euo pipefail
cd "$(dirname "$0")/.."

flyover=${1:-build/release/bin/flyover}
[ -x "$flyover" ] || { echo "bench/scale.sh: no program at '$flyover'; build it first" >&2; exit 2; }

exec taskset -c 0 python3 -I -S - "$flyover" <<'PYTHON'
import json
import os
import subprocess
import sys
import tempfile

flyover = sys.argv[1]
scratch = tempfile.TemporaryDirectory()

FAULTS = [
    {"select": "nic[node=5,index=3]", "state": "down"},
    {"select": "gpu[node=9,index=3]", "compute_factor": 0.9},
    {"select": "spine[index=1]", "factor": 0.5},
]


def write(name, content):
    path = f"{scratch.name}/{name}.json"
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file)
    return path


def cluster(gpus, overrides=()):
    return write(f"fat-tree-{gpus}-{len(overrides)}", {
        "name": "fat-tree", "node": {"preset": "dgx-h100"}, "nodes": gpus // 8, "overrides": list(overrides),
        "fabric": {"type": "fat-tree", "preset": "ndr", "routing": "adaptive",
                   "radix": 128 if gpus > 65536 else 64}})


def step(gpus, micro_batches=16):
    data = gpus // 128
    return write(f"405b-{gpus}-{micro_batches}", {"training": {
        "model": "llama3-405b", "seq": 8192, "global_batch": data * micro_batches, "precision": "bf16",
        "stack": "nemo-25", "layout": {"tp": 8, "pp": 16, "vp": 8, "dp": data, "sequence_parallel": True,
                                       "chunk_layers": [0, *[1] * 126, 0]},
        "schedule": "interleaved-1f1b"}})


def measure(arguments):
    """CPU seconds and peak MiB of one run in a child of its own."""
    child = subprocess.Popen([flyover, "--quiet", *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"bench/scale.sh: 'flyover {' '.join(arguments)}' failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def row(name, *arguments):
    seconds, memory = (min(column) for column in zip(*(measure(["run", *arguments]) for _ in range(3))))
    print(f"| {name} | {seconds:.2f} | {memory:.0f} |", flush=True)
    return seconds


print("| 405B step, 16 micro-batches | CPU s | peak MiB |\n|---|---:|---:|")
costs = [row(f"{gpus:,} GPUs", "-t", cluster(gpus), "-w", step(gpus)) for gpus in (1024, 8192, 16384, 131072)]
row("16,384 GPUs, a NIC down, a slow GPU, a spine at half rate", "-t", cluster(16384, FAULTS), "-w", step(16384))
timeline = f"{scratch.name}/timeline.json.gz"
result = f"{scratch.name}/result.json"
row("131,072 GPUs with timeline and JSON", "-t", cluster(131072), "-w", step(131072), "--timeline", timeline,
    "--json", result)
print(f"\n131,072 GPUs cost {costs[-1] / costs[0]:.1f} times what 1,024 do; their timeline has "
      f"{os.path.getsize(timeline) / 1e6:.1f} MB compressed, their JSON {os.path.getsize(result) / 1e3:.0f} kB.\n")

print("| 405B step on 512 GPUs | CPU s | peak MiB |\n|---|---:|---:|")
for count in (16, 64, 256, 1024):
    row(f"{count} micro-batches", "-t", cluster(512), "-w", step(512, count))

print("\n| one ring all-reduce of 1 GiB, every GPU explicit | CPU s | peak MiB |\n|---|---:|---:|")
ring = write("ring", {"collectives": [{"op": "all_reduce", "bytes": "1 GiB", "group": "all"}]})
row("131,072 GPUs, --full", "--full", "-t", cluster(131072), "-w", ring, "--set", "nccl.NCCL_ALGO=Ring")
PYTHON
