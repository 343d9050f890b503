#!/usr/bin/python3
"""Fits configs/stacks/*.json to published training results, and again without each group of them.

  scripts/fit/steps.py [PROGRAM]           fit; write the stacks and configs/training-left-out.json
  scripts/fit/steps.py [PROGRAM] --trial   fit, print, write nothing

PROGRAM is build/release/bin/flyover_step_times unless named (bench/step_times.cpp, built with FLYOVER_BUILD_BENCH): the
model is the library's own and not repeated here. Needs python3-numpy.

The sum that is made small, over r = ln(predicted / measured) and x, where ln(value / prior) is the x of the value and
the x of each of its groups ("gemm; nemo-25; H100" names three), so that what releases, GPUs and types have in common is
learnt from all of them:

  sum over rows of w 2 (sqrt(1 + (r/s)^2) - 1)  +  sum over values and groups of (x / spread)^2

s is 0.06; w is one over the square root of the number of rows in the row's group, which err together, and a quarter
of that for quality B. Rows of one stack depend on that stack's values alone, so one question changes one value of
every stack at once.
"""
import argparse
import collections
import copy
import json
import math
import pathlib
import subprocess
import sys

try:
    import numpy as np
except ImportError:
    print("scripts/fit/steps.py needs python3-numpy", file=sys.stderr)
    sys.exit(77)  # What ctest takes as skipped.

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from libraries import number, written  # noqa: E402
from tidy_json import tidy  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
STACKS = ROOT / "configs" / "stacks"
LEFT_OUT = ROOT / "configs" / "training-left-out.json"
SCATTER = 0.06
STEP = 0.02
LONGEST_STEP = 0.5
ROUNDS = 15
# Standard deviation of the logarithm that values of a group share; by the group's first word for groups of a stack, a
# GPU or a type.
GROUP_SPREADS = {
    "gemm": 0.1, "grouped_gemm": 0.15, "attention": 0.1, "elementwise": 0.3, "quantise": 0.3, "host": 0.5, "message": 0.3,
    "stack": 0.1, "gpu": 0.08, "type": 0.08, "contention": 0.5, "straggling": 0.5,
}

Row = collections.namedtuple("Row", "id group source measured stack gpu gpus model precision quality skipped")
Parameter = collections.namedtuple("Parameter", "stack path prior spread groups")


def at(document, path):
    for step in path:
        document = document[step]
    return document


def pointer(parameter):
    return f"{parameter.stack}#/" + "/".join(map(str, parameter.path))


def parameters_of(stack, document):
    found = []

    def collect(value, path):
        if isinstance(value, list):
            for i, item in enumerate(value):
                collect(item, path + (i,))
        elif isinstance(value, dict):
            for key, fitted in value.get("fitted", {}).items():
                groups = tuple(g.strip() for g in fitted["group"].split(";"))
                found.append(Parameter(stack, path + (key,), number(fitted["prior"]), fitted["spread"], groups))
            for key, item in value.items():
                if key != "fitted":
                    collect(item, path + (key,))
    collect(document, ())
    return found


class Fit:
    def __init__(self, program, folder):
        self.program = program
        self.documents = {}
        for path in sorted(folder.glob("*.json")):
            document = json.loads(path.read_text())
            self.documents[document["name"]] = (path, document)
        self.parameters = [p for name, (_, d) in self.documents.items() for p in parameters_of(name, d)]
        self.groups = sorted({g for p in self.parameters for g in p.groups})
        listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout
        self.rows = []
        for line in listed.splitlines():
            cells = line.split("\t")
            self.rows.append(Row(*cells[:3], float(cells[3]) if cells[3] else math.nan, *cells[4:]))
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.measured = np.log([r.measured for r in self.rows])
        first = self.ask(np.zeros(len(self.parameters)))
        self.used = np.isfinite(first) & np.isfinite(self.measured)
        members = collections.Counter(r.group for r, u in zip(self.rows, self.used) if u)
        self.weights = np.array([(1 if r.quality == "A" else 0.25) / math.sqrt(members[r.group]) if u else 0
                                 for r, u in zip(self.rows, self.used)])
        self.spreads = np.array([p.spread for p in self.parameters] + [self.group_spread(g) for g in self.groups])
        self.sum = np.zeros((len(self.parameters), len(self.spreads)))
        for i, p in enumerate(self.parameters):
            self.sum[i, i] = 1
            for g in p.groups:
                self.sum[i, len(self.parameters) + self.groups.index(g)] = 1
        # The k-th values of all stacks are changed at once; values that no row of the stack depends on too.
        by_stack = collections.defaultdict(list)
        for i, p in enumerate(self.parameters):
            by_stack[p.stack].append(i)
        self.batches = [[ids[k] for ids in by_stack.values() if k < len(ids)]
                        for k in range(max(map(len, by_stack.values())))]
        self.of_stack = {s: np.array([r.stack == s for r in self.rows]) for s in by_stack}

    @staticmethod
    def group_spread(group):
        return GROUP_SPREADS[group.split()[0].rstrip(",")]

    def value(self, parameter, x):
        document = self.documents[parameter.stack][1]
        like = at(document, parameter.path)
        value = parameter.prior * math.exp(x)
        return written(value, like) if isinstance(like, str) else float(f"{value:.4g}")

    def changes(self, logarithms):
        """A merge patch for every stack, which works also for files that the program was not built with."""
        parts = {p.path[0] for p in self.parameters}
        patches = {name: copy.deepcopy({k: v for k, v in document.items() if k in parts})
                   for name, (_, document) in self.documents.items()}
        for p, x in zip(self.parameters, logarithms):
            at(patches[p.stack], p.path[:-1])[p.path[-1]] = self.value(p, x)
        return patches

    def ask(self, logarithms):
        self.process.stdin.write(json.dumps(self.changes(logarithms)) + "\n")
        self.process.stdin.flush()
        cells = self.process.stdout.readline().rstrip("\n").split("\t")
        if len(cells) != len(self.rows):
            sys.exit("step_times stopped")
        return np.log([float(c) if c != "null" else math.nan for c in cells])

    def residual(self, x):
        return np.where(self.used, self.ask(self.sum @ x) - self.measured, 0)

    def cost(self, residual, x, weights):
        return (weights * 2 * (np.sqrt(1 + (residual / SCATTER) ** 2) - 1)).sum() + ((x / self.spreads) ** 2).sum()

    def derivatives(self, x):
        base = self.sum @ x
        plain = self.ask(base)
        jacobian = np.zeros((len(self.rows), len(base)))
        for batch in self.batches:
            moved = base.copy()
            moved[batch] += STEP
            change = (self.ask(moved) - plain) / STEP
            for i in batch:
                mine = self.of_stack[self.parameters[i].stack] & self.used
                jacobian[mine, i] = change[mine]
        return np.where(self.used, plain - self.measured, 0), jacobian

    def system(self, residual, full, x, weights):
        curvature = weights / SCATTER**2 / np.sqrt(1 + (residual / SCATTER) ** 2)
        matrix = full.T @ (curvature[:, None] * full) + np.diag(1 / self.spreads**2)
        return matrix, full.T @ (curvature * residual) + x / self.spreads**2

    def minimise(self, x, weights, rounds):
        for round_ in range(rounds):
            residual, jacobian = self.derivatives(x)
            full = jacobian @ self.sum
            matrix, gradient = self.system(residual, full, x, weights)
            step = -np.linalg.solve(matrix, gradient)
            step *= min(1, LONGEST_STEP / np.abs(step).max())
            before = self.cost(residual, x, weights)
            lengths = [1, 0.5, 0.25, 0.1]
            trials = [self.cost(self.residual(x + f * step), x + f * step, weights) for f in lengths]
            best = int(np.argmin(trials))
            print(f"  round {round_}: {before:.1f} -> {trials[best]:.1f}  {describe(residual[self.quality_a()])}", flush=True)
            if trials[best] > before - 0.02:
                break
            x = x + lengths[best] * step
        return x, residual, jacobian

    def quality_a(self):
        return self.used & np.array([r.quality == "A" for r in self.rows])

    def without(self, group, x, jacobian, residual):
        """From the optimum of all rows to that without the group, by the derivatives there."""
        weights = self.weights * np.array([r.group != group for r in self.rows])
        full = jacobian @ self.sum
        moved = x.copy()
        estimate = residual.copy()
        for _ in range(8):
            matrix, gradient = self.system(estimate, full, moved, weights)
            step = -np.linalg.solve(matrix, gradient)
            moved = moved + step
            estimate = residual + full @ (moved - x)
            if np.abs(step).max() < 1e-3:
                break
        return moved


def describe(residual):
    errors = np.abs(np.expm1(residual))
    return f"{len(errors)} rows, median error {100 * np.median(errors):.1f} %, 90th percentile {100 * np.quantile(errors, .9):.1f} %"


def by(rows, residual, mask, of):
    keys = collections.defaultdict(list)
    for row, r, m in zip(rows, residual, mask):
        if m:
            keys[of(row)].append(r)
    for key, values in sorted(keys.items()):
        errors = np.abs(np.expm1(values))
        print(f"    {key:28s} {len(values):4d}  {100 * np.median(errors):5.1f} %  {100 * np.quantile(errors, .9):5.1f} %  {100 * np.expm1(np.median(values)):+5.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", nargs="?", default=str(ROOT / "build/release/bin/flyover_step_times"))
    parser.add_argument("--trial", action="store_true")
    parser.add_argument("--stacks", default=str(STACKS), help="stack files to fit instead of the shipped ones")
    parser.add_argument("--residuals", help="write ln(predicted / measured) of every row, fitted and left out")
    arguments = parser.parse_args()
    fit = Fit(arguments.program, pathlib.Path(arguments.stacks))
    print(len(fit.parameters), "values,", len(fit.groups), "groups,", len(fit.batches), "batches")
    x, residual, jacobian = fit.minimise(np.zeros(len(fit.spreads)), fit.weights, ROUNDS)
    good = fit.quality_a()
    print("all:", describe(residual[good]))
    left_out = {}
    held = residual.copy()
    for group in sorted({r.group for r, u in zip(fit.rows, fit.used) if u}):
        moved = fit.without(group, x, jacobian, residual)
        mine = np.array([r.group == group for r in fit.rows])
        held[mine] = fit.residual(moved)[mine]
        left_out[group] = fit.sum @ moved
    print("left out:", describe(held[good]))
    for title, of in (("source", lambda r: r.source), ("GPU", lambda r: r.gpu), ("stack", lambda r: r.stack)):
        print("  left out, by", title)
        by(fit.rows, held, good, of)
    if arguments.residuals:
        pathlib.Path(arguments.residuals).write_text(
            "".join(f"{r.id}\t{a:.4f}\t{b:.4f}\n" for r, a, b in zip(fit.rows, residual, held)))
    if arguments.trial:
        for p, v in zip(fit.parameters, fit.sum @ x):
            print(f"    {pointer(p):60s} {fit.value(p, v)}")
        return
    covariance = fit.sum @ np.linalg.inv(fit.system(residual, jacobian @ fit.sum, x, fit.weights)[0]) @ fit.sum.T
    for i, (p, v) in enumerate(zip(fit.parameters, fit.sum @ x)):
        document = fit.documents[p.stack][1]
        value = fit.value(p, v)
        at(document, p.path[:-1])[p.path[-1]] = value
        fitted = at(document, p.path[:-1])["fitted"][p.path[-1]]
        fitted["uncertainty"] = float(f"{math.sqrt(covariance[i, i]):.2g}")
        fitted["rows"] = int((np.abs(jacobian[:, i]) > 0.01).sum())
    for path, document in fit.documents.values():
        path.write_text(tidy(document) + "\n")
    by_stack = collections.defaultdict(list)
    for i, p in enumerate(fit.parameters):
        by_stack[p.stack].append(i)
    stacks_of = collections.defaultdict(set)
    for row, used in zip(fit.rows, fit.used):
        if used:
            stacks_of[row.group].add(row.stack)
    parameters = {s: ["/" + "/".join(map(str, fit.parameters[i].path)) for i in ids] for s, ids in by_stack.items()}
    groups = {g: {s: [fit.value(fit.parameters[i], values[i]) for i in by_stack[s]] for s in sorted(stacks_of[g])}
              for g, values in left_out.items()}

    def lines(members):
        return ",\n".join(f"    {json.dumps(k)}: {json.dumps(v)}" for k, v in members.items())
    LEFT_OUT.write_text('{\n  "format": "flyover-training-left-out-1",\n'
                        '  "summary": "Values of configs/stacks as fitted without one group of results: scripts/fit/steps.py",\n'
                        f'  "parameters": {{\n{lines(parameters)}\n  }},\n  "groups": {{\n{lines(groups)}\n  }}\n}}\n')


if __name__ == "__main__":
    main()
