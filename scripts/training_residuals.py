#!/usr/bin/env python3
"""Writes configs/training-residuals.json, on which the margins of `flyover compare` and `flyover plan` rest: how far
published training results are from predictions that no result of their group was fitted to. docs/formats/plan.md,
"How sure a comparison is", says how its numbers come about.

  scripts/training_residuals.py PROGRAM           then build again: the file is compiled in
  scripts/training_residuals.py --check PROGRAM   says whether it is out of date
"""
import collections
import itertools
import json
import math
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE = ROOT / "configs" / "training-residuals.json"
COVERED = 0.8
NINETIETH = 1.2816  # Of a normal distribution: 80 % lie within it on both sides.
LEAST_LAYOUTS = 8
LEAST_FAMILIES = 10


def quantile(weighted, share):
    """Of (value, weight) pairs: the least value that so large a share of the weight does not exceed."""
    weighted = sorted(weighted)
    left = share * math.fsum(weight for _, weight in weighted) * (1 - 1e-12)
    for value, weight in weighted:
        left -= weight
        if left <= 0:
            return value
    raise ValueError("no values")


def cut(layout):
    """A layout in words without what only its number of GPUs and its batch say."""
    return re.sub(r", (dp|B) \d+", "", layout)


class Residuals:
    def __init__(self, results):
        self.records = len(results)
        families = collections.defaultdict(list)
        for result in results:
            error = math.log(result["left_out_step_s"] / result["measured_step_s"])
            key = result["stack"], result["source"], result["model"], result["gpu"]
            families[key].append((error, cut(result["layout"])))
        self.families = len(families)
        self.errors = []       # (size, weight): a family counts once,
        self.differences = []  # and here as often as it has layouts, less the first.
        self.layouts = 0
        for family in families.values():
            self.errors += [(abs(error), 1 / len(family)) for error, _ in family]
            pairs = [abs(a - b) for (a, one), (b, other) in itertools.combinations(family, 2) if one != other]
            layouts = len({layout for _, layout in family}) - 1
            self.layouts += layouts
            self.differences += [(difference, layouts / len(pairs)) for difference in pairs]

    def own(self):
        return quantile(self.differences, COVERED) / (NINETIETH * math.sqrt(2))

    def common(self, own):
        total = quantile(self.errors, COVERED) / NINETIETH
        return math.sqrt(max(0, total**2 - own**2))

    def counts(self):
        return {"records": self.records, "families": self.families, "layouts": self.layouts}


def residuals(results):
    usable = [r for r in results if r["quality"] == "A" and r["measured_step_s"] and r["left_out_step_s"]]
    every = Residuals(usable)
    own = every.own()
    pooled = every.counts() | {"common": round(every.common(own), 4), "own": round(own, 4)}
    stacks = {}
    for name in sorted({r["stack"] for r in usable}):
        of = Residuals([r for r in usable if r["stack"] == name])
        stacks[name] = of.counts()
        its = of.own() if of.layouts >= LEAST_LAYOUTS else own
        if of.families >= LEAST_FAMILIES:
            stacks[name]["common"] = round(of.common(its), 4)
        if of.layouts >= LEAST_LAYOUTS:
            stacks[name]["own"] = round(its, 4)
    return pooled, stacks


def text(results):
    pooled, stacks = residuals(results)
    rows = ",\n".join(f"    {json.dumps(name)}: {json.dumps(stack)}" for name, stack in stacks.items())
    return ("{\n" + '  "format": "flyover-training-residuals-1",\n'
            '  "summary": "Standard deviations of ln(estimated / measured) of step times that no parameter was fitted to: '
            'scripts/training_residuals.py",\n'
            f'  "pooled": {json.dumps(pooled)},\n  "stacks": {{\n{rows}\n  }}\n}}\n')


def main():
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    program = arguments[0] if arguments else ROOT / "build" / "release" / "bin" / "flyover"
    validated = subprocess.run([program, "validate", "--training", "--json", "-"], check=True, capture_output=True,
                               text=True).stdout
    fresh = text(json.loads(validated)["results"])
    if "--check" not in sys.argv:
        FILE.write_text(fresh, encoding="utf-8")
    elif not FILE.exists() or FILE.read_text(encoding="utf-8") != fresh:
        sys.exit(f"{FILE.relative_to(ROOT)} out of date: run scripts/training_residuals.py {program} and build again")


if __name__ == "__main__":
    main()
