#!/usr/bin/env python3
"""When does DeepSeek-V3's limit on the nodes of a token's experts pay? The table of docs/moe.md.

  scripts/node_limit.py --flyover build/release/bin/flyover            all clusters, as Markdown
  scripts/node_limit.py --flyover ... --clusters H800 --ep 64          some of it
  scripts/node_limit.py --flyover ... --check                          whether the page has it

Per layer of one micro-batch (4,096 tokens per GPU) forward and backward exchange two dispatches, of which the second has
its layout already, and two combines (DeepEP V2's two-hop kernels, FP8 there and BF16 back); the layer's kernels are what
`flyover plan` works out for the same GPU. Exchanges that run beside other kernels are exposed where they take longer.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[1]
TOKENS = 4096
# Groups of experts lie one to a node, as DeepSeek-V3's do at EP64. 256 experts do not divide over 40 nodes: EP320 has
# one expert per GPU, which routes as V3's 256 with 64 copies do when copies are chosen evenly. Racks give 64 of their
# 72 GPUs, so that groups of experts lie in one rack each.
CLUSTERS = {
    "H800": ("H800, 8-plane network", {"preset": "deepseek-mpft", "nodes": 40}, 8),
    "H100": ("H100 SuperPOD", {"preset": "superpod-h100", "nodes": 40}, 8),
    "GB200": ("GB200 NVL72", {"node": {"preset": "gb200-nvl72", "gpus": 64}, "nodes": 5,
                              "fabric": {"type": "rail-optimized", "preset": "ndr"}}, 64),
    "Rubin": ("Rubin NVL72", {"node": {"preset": "vr-nvl72", "gpus": 64}, "nodes": 5,
                              "fabric": {"type": "rail-optimized", "preset": "xdr"}}, 64),
}
LIMITS = ["1", "2", "3", "4", "8", "none"]
EXPERTS, CHOSEN = 256, 8
# One replica of the model on as many GPUs, whose kernels are asked for: stages of 61 / 16 layers, 16 micro-batches.
KERNELS = {"H800": "deepseek-mpft:128", "H100": "superpod-h100:128", "GB200": "superpod-gb200:16",
           "Rubin": "vr-nvl72:16"}
STAGES, LAYERS, DATA = 16, 61, 64
BATCH = 16 * DATA
GPUS = json.loads((ROOT / "configs/hardware/gpus.json").read_text(encoding="utf-8"))["entries"]
SMS = {"H800": GPUS["H800-SXM"]["sms"], "H100": GPUS["H100-SXM"]["sms"], "GB200": GPUS["GB200"]["sms"],
       "Rubin": GPUS["RUBIN-VR200"]["sms"]}


# What exchanges keep of their rate while kernels run beside them: the public trace of V3's training on H800.
BESIDE = json.loads((ROOT / "configs/moe/deepep-v1.json").read_text(encoding="utf-8"))["modes"]["normal"]["overlapped"]


def run(flyover, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out.json")
        subprocess.run([flyover, *arguments, "--json", str(out)], check=True, stdout=subprocess.DEVNULL)
        return json.loads(out.read_text(encoding="utf-8"))


def kernels_ms(flyover, cluster):
    """Of one layer, forward and backward, for one micro-batch, on all SMs."""
    plan = run(flyover, "plan", "-m", "deepseek-v3", "-t", KERNELS[cluster], "--gpus", str(STAGES * DATA), "--seq",
               str(TOKENS), "--global-batch", str(BATCH), "--precision", "fp8-block", "--stack", "hai-llm", "--tp", "1",
               "--cp", "1", "--pp", str(STAGES), "--ep", "64", "--micro-batch", "1", "--schedule", "1f1b", "--zero", "1",
               "--recompute", "full", "--replay", "0", "--top", "1")
    compute = plan["plans"][0]["best"][0]["breakdown_s"]["compute"]
    return 1e3 * compute / (BATCH / DATA) / (LAYERS / STAGES)


def exchange(flyover, topology, ep, limits, op, *more):
    return run(flyover, "bench", op, "-t", str(topology), "-l", "deepep-v2", "-m", "deepseek-v3", "--gate", "group-max",
               "--groups", "nodes", "--tokens", str(TOKENS), "--ep", str(ep), "--limit", ",".join(limits), *more)["rows"]


def rows(flyover, cluster, topology, node, ep):
    """One row per limit that differs from the one before: limit, copies, bytes, times."""
    nodes = -(-ep // node)
    limits = [limit for limit in LIMITS if limit == "none" or int(limit) < min(nodes, CHOSEN)]
    more = ["--experts", str(ep)] if ep > EXPERTS else []
    there = exchange(flyover, topology, ep, limits, "moe_dispatch", *more)
    again = exchange(flyover, topology, ep, limits, "moe_dispatch", "--cached", *more)
    back = exchange(flyover, topology, ep, limits, "moe_combine", *more)
    alone = kernels_ms(flyover, cluster)
    for limit, first, second, home in zip(limits, there, again, back):
        times = [first["time_us"] / 1e3, second["time_us"] / 1e3, 2 * home["time_us"] / 1e3]
        slowed = sum(t / BESIDE[part] for t, part in zip(times, ["dispatch", "cached_dispatch", "combine"]))
        kernels = alone * SMS[cluster] / (SMS[cluster] - max(first["sms"], home["sms"]))
        yield {"ep": ep, "limit": limit, "nodes": first["nodes_per_token"],
               "nic": (first["network_bytes"]["mean"] + home["network_bytes"]["mean"]) / 1e6,
               "nvlink": (first["nvlink_bytes"]["mean"] + home["nvlink_bytes"]["mean"]) / 1e6,
               "time": sum(times), "slowed": slowed, "kernels": kernels, "by": home["bottleneck"].split(" (")[0]}


def lines(flyover, clusters, eps):
    yield ("| cluster | EP | limit | nodes per token | NIC MB | NVLink MB | exchange ms | bound by | kernels ms "
           "| apart | beside | beside, slowed |")
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    for cluster in clusters:
        name, description, node = CLUSTERS[cluster]
        with tempfile.TemporaryDirectory() as folder:
            topology = pathlib.Path(folder, "topology.json")
            topology.write_text(json.dumps(description), encoding="utf-8")
            for ep in eps:
                table = list(rows(flyover, cluster, topology, node, ep))
                free = table[-1]
                for row in table:
                    apart = (row["time"] + row["kernels"]) / (free["time"] + free["kernels"]) - 1
                    beside, slowed = (max(row[t], row["kernels"]) / max(free[t], free["kernels"]) - 1
                                      for t in ("time", "slowed"))
                    change = ["-"] * 3 if row is free else [f"{100 * x:+.0f} %" for x in (apart, beside, slowed)]
                    yield (f"| {name} | {ep} | {row['limit']} | {row['nodes']:.2f} | {row['nic']:.0f} | {row['nvlink']:.0f} "
                           f"| {row['time']:.1f} | {row['by']} | {row['kernels']:.1f} | {' | '.join(change)} |")
                    name = ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flyover", default="build/release/bin/flyover")
    parser.add_argument("--clusters", default=",".join(CLUSTERS), help="of " + ", ".join(CLUSTERS))
    parser.add_argument("--ep", default="16,32,64,128,256,320")
    parser.add_argument("--check", action="store_true", help="compare with docs/moe.md")
    options = parser.parse_args()
    table = "\n".join(lines(options.flyover, options.clusters.split(","), [int(ep) for ep in options.ep.split(",")]))
    if not options.check:
        print(table)
    elif table not in (ROOT / "docs/moe.md").read_text(encoding="utf-8"):
        sys.exit("docs/moe.md has another table; scripts/node_limit.py makes it")


if __name__ == "__main__":
    main()
