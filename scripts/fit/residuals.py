#!/usr/bin/env python3
"""What is left of the shipped measurements after the model: the table from which start-up times are set.

  scripts/fit/residuals.py [PROGRAM]            default: build/release/bin/flyover
  scripts/fit/residuals.py PROGRAM --sets       one line per set instead of one per kind of link
  scripts/fit/residuals.py PROGRAM --stack      the host's time per GPU when one process drives all

Each line: links, algorithm, protocol, size class, rows, the median of measured - predicted in us (what
the start-up lacks) and the median of measured / predicted.
"""
import collections
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SIZES = [("<= 32 KiB", 2**15), ("<= 1 MiB", 2**20), ("<= 32 MiB", 2**25), ("larger", 2**62)]


def predictions(program):
    out = subprocess.run([program, "validate", "--json", "-"], check=True, capture_output=True, text=True)
    text = out.stdout
    sets = json.loads(text[text.index("{"):])["sets"]
    return [s for s in sets if not s["apart"] and not s["skipped"]]


def counted(one):
    return [r for r in one["rows"] if r["measured_us"] and r.get("counted", True)]


def residuals(sets, by_set):
    groups = collections.defaultdict(list)
    for one in sets:
        for row in counted(one):
            size = next(i for i, (_, last) in enumerate(SIZES) if row["bytes"] <= last)
            name = one["id"] if by_set else f"{one['links']} {one['stack']} {one['collective']}"
            groups[name, row["algorithm"], row["protocol"], size].append(
                (row["measured_us"], row["predicted_us"]))
    for (name, algorithm, protocol, size), pairs in sorted(groups.items()):
        lacks = statistics.median(measured - predicted for measured, predicted in pairs)
        ratio = statistics.median(measured / predicted for measured, predicted in pairs)
        print(f"{name:45} {algorithm:9} {protocol:6} {SIZES[size][0]:9} {len(pairs):4}"
              f" {lacks:9.1f} us {ratio:6.2f}")


def fit_stack(sets):
    """Undoes the library's own share of the host and tries others, per library, up to 32 MiB."""
    for name in sorted({s["library"] for s in sets}):
        path = ROOT / "configs" / "libraries" / f"{name}.json"
        stack = json.loads(path.read_text()).get("stacks", {}).get("one-process")
        if stack is None:
            continue
        issue, power = float(stack["issue"].split()[0]), stack["overlap"]
        rows = []
        for one in sets:
            if one["library"] != name or one["stack"] != "one-process":
                continue
            gpus = min(one["n_gpus"], stack["most_gpus"])
            for row in counted(one):
                if row["bytes"] <= SIZES[2][1]:
                    kernels = (row["predicted_us"]**power - (issue * gpus)**power)**(1 / power)
                    rows.append((gpus, row["measured_us"], kernels))
        tries = []
        for p in (1, 1.5, 2, 2.5, 3, 4, 6):
            for quarters in range(2, 41):
                x = quarters / 4
                errors = sorted(abs((kernels**p + (x * gpus)**p)**(1 / p) / measured - 1)
                                for gpus, measured, kernels in rows)
                tries.append((statistics.median(errors), errors[len(errors) * 9 // 10], x, p))
        print(f"{name}: {len(rows)} rows, now {issue} us, overlap {power}")
        for median, high, x, p in sorted(tries)[:5]:
            print(f"  issue {x:5.2f} us per GPU, overlap {p:3.1f}: median {100 * median:.1f} %, 90th {100 * high:.1f} %")


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    counted_sets = predictions(words[0] if words else str(ROOT / "build/release/bin/flyover"))
    if "--stack" in sys.argv:
        fit_stack(counted_sets)
    else:
        residuals(counted_sets, "--sets" in sys.argv)
