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
import tempfile

flyover = sys.argv[1]


def gpt_step(gpus):
    """A step as graph replayers see it: kernels and tensor-parallel sums, then the gradients' sum."""
    groups = ", ".join(f'"{first}-{first + 7}"' for first in range(0, gpus, 8))
    path = f"{SCRATCH.name}/gpt-{gpus}.json"
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'''{{"ranks": {gpus}, "groups": {{"tp": [{groups}]}}, "programs": [{{"ranks": "0-{gpus - 1}",
          "repeat": 344, "ops": [
            {{"id": "qkv", "op": "compute", "flops": "170 GFLOP", "dtype": "bf16"}},
            {{"id": "attention", "op": "compute", "flops": "130 GFLOP", "dtype": "bf16"}},
            {{"id": "sum_attention", "op": "all_reduce", "bytes": "128 MiB", "group": "tp", "after": ["attention"]}},
            {{"id": "up", "op": "compute", "flops": "900 GFLOP", "dtype": "bf16", "after": ["sum_attention"]}},
            {{"id": "gelu", "op": "compute", "bytes": "200 MB"}},
            {{"id": "down", "op": "compute", "flops": "450 GFLOP", "dtype": "bf16"}},
            {{"id": "sum_mlp", "op": "all_reduce", "bytes": "128 MiB", "group": "tp", "after": ["down"]}},
            {{"id": "gradients", "op": "all_reduce", "bytes": "64 MiB", "group": "all", "stream": "dp",
              "after": ["down"]}}]}}]}}''')
    return path


IDEAL = "-l ideal --set nccl.NCCL_PXN_DISABLE=1"
ONE_RING = f"{IDEAL} --set nccl.NCCL_ALGO=Ring --set nccl.NCCL_MAX_NCHANNELS=1"
RING = f"bench all_reduce -b 1G -e 1G {ONE_RING}"
ALL_TO_ALL = f"bench all_to_all -b 256M -e 256M {IDEAL}"
SCRATCH = tempfile.TemporaryDirectory()

# (what it is, arguments)
WORK = [
    *((f"ring flat, {n} GPUs", f"{RING} -t bench/flat.json --set node.gpus={n}") for n in (512, 1024, 4096)),
    *((f"ring rail, {n} GPUs", f"{RING} -t bench/rail.json --set nodes={n // 8}") for n in (512, 1024)),
    *((f"all-to-all flat, {n} GPUs", f"{ALL_TO_ALL} -t bench/flat.json --set node.gpus={n}")
      for n in (256, 512, 1024)),
    *((f"all-to-all rail, {n} GPUs", f"{ALL_TO_ALL} -t bench/rail.json --set nodes={n // 8}")
      for n in (256, 512)),
    *((f"GPT-like step, 2,752 operations per rank, {n} GPUs", f"run -t dgx-h100:{n // 8} -w {gpt_step(n)}")
      for n in (64, 256, 1024)),
    *((f"GPT-like step, every rank and repeat, {n} GPUs", f"run --full -t dgx-h100:{n // 8} -w {gpt_step(n)}")
      for n in (64, 256, 1024)),
    ("ring all-reduce, SuperPOD of 16,384 GPUs",
     "bench all_reduce -b 1G -e 1G -t superpod-h100:2048 --set nccl.NCCL_ALGO=Ring"),
    ("all algorithms, SuperPOD of 16,384 GPUs", "bench all_reduce -b 1G -e 1G -t superpod-h100:2048"),
    ("bench all_reduce, 16 GPUs, 32 sizes", "bench all_reduce -t dgx-h100:2 -b 8 -e 16G -f 2"),
    ("Llama-3 70B layer, 8 GPUs", "run -t dgx-h100 -w workloads/llama3-70b-tp8-layer.json"),
    ("topo, SuperPOD of 127 nodes", "topo topologies/h100-superpod-4su.json"),
    ("topo, 2,048 nodes", "topo superpod-h100:2048"),
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
    shown = arguments.replace(SCRATCH.name, "build")
    print(f"| {name} | `flyover {shown}` | {seconds:.3f} | {memory:.0f} |", flush=True)
PYTHON
