#!/usr/bin/python3
"""Fits the cost models' parameters to the shipped measurements, and again without each site.

  scripts/fit/fit.py [PROGRAM]             fit; write configs/libraries/*.json and configs/left-out.json
  scripts/fit/fit.py [PROGRAM] --report    fit nothing: say how far the shipped parameters are from the optimum

PROGRAM is build/release/bin/flyover unless named: the model is the program's own, run as
`flyover validate --library ...`, so that nothing of it is repeated here. Needs python3-numpy and
python3-scipy. scripts/fit/refit does everything that has to follow.

The sum that is made small, over logarithms r = ln(predicted / measured) and x, where ln(value / prior) is the x of
the value and the x of its group:

  sum over rows of w 2 (sqrt(1 + (r/s)^2) - 1)  +  sum over values and groups of (x / spread)^2

It grows like |r| beyond s, the scatter between sites at that size (measurements/README), so that no set
with a fault can bend the rest; w = 1/sqrt(rows of the site in the size class), because the rows of one
site err together. Gauss-Newton steps with numerical derivatives. For the left-out fits the derivatives of
the full fit are kept, the residuals are those of the program.
"""
import argparse
import collections
import concurrent.futures
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from libraries import GROUP_SPREADS, Libraries, at, resolved, written  # noqa: E402
from tidy_json import tidy  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SIZE_CLASSES = [("<= 32 KiB", 2**15, 0.20), ("<= 1 MiB", 2**20, 0.22), ("<= 32 MiB", 2**25, 0.12), ("larger", 2**62, 0.02)]
DERIVATIVE_STEP = 0.02
# A derivative of more than this is a change of algorithm or protocol between the two points.
STEEPEST = 1.5
LONGEST_STEP = 0.7
ENOUGH = 0.02  # A step that gains less is the last.

Row = collections.namedtuple("Row", "site set bytes size_class")


class Model:
    def __init__(self, program, libraries):
        self.program, self.libraries = program, libraries

    def sets(self, logarithms):
        with tempfile.TemporaryDirectory() as folder:
            command = [self.program, "validate", "--quiet", "--json", f"{folder}/out.json"]
            for name, document in resolved(self.libraries.with_values(logarithms)).items():
                path = pathlib.Path(folder, name + ".json")
                path.write_text(json.dumps(document))
                command += ["--library", str(path)]
            run = subprocess.run(command, capture_output=True, text=True)
            if run.returncode != 0:
                sys.exit(run.stderr)
            return json.loads(pathlib.Path(folder, "out.json").read_text())["sets"]

    def residuals(self, logarithms):
        return np.array([r for _, r in counted(self.sets(logarithms))])


def counted(sets):
    """(Row, residual) of the rows that count."""
    for one in sets:
        if one["apart"] or one["skipped"]:
            continue
        for row in one["rows"]:
            if row["counted"] and row["measured_us"]:
                size = next(i for i, (_, last, _) in enumerate(SIZE_CLASSES) if row["bytes"] <= last)
                yield (Row(one["site"], one["id"], row["bytes"], size),
                       math.log(row["predicted_us"] / row["measured_us"]))


class Problem:
    def __init__(self, model):
        self.model = model
        parameters = model.libraries.parameters
        groups = sorted({p.group for p in parameters})
        self.spread = np.array([p.spread for p in parameters] + [GROUP_SPREADS[g] for g in groups])
        # From x, of values and then of groups, to the logarithms of values.
        self.members = np.array([[p.group == g for g in groups] for p in parameters], dtype=float)
        self.to_logarithms = np.hstack([np.eye(len(parameters)), self.members])
        self.rows = [row for row, _ in counted(model.sets(model.libraries.logarithms()))]
        together = collections.Counter((r.site, r.size_class) for r in self.rows)
        self.weight = np.array([together[r.site, r.size_class] ** -0.5 for r in self.rows])
        self.scale = np.array([SIZE_CLASSES[r.size_class][2] for r in self.rows])
        self.site = np.array([r.site for r in self.rows])

    def start(self):
        """The most probable x that gives the shipped values."""
        logarithms = np.array(self.model.libraries.logarithms())
        own = self.spread[:len(logarithms)] ** -2
        common = self.members.T @ (own * logarithms) / (self.spread[len(logarithms):] ** -2 + self.members.T @ own)
        return np.concatenate([logarithms - self.members @ common, common])

    def residuals(self, x):
        return self.model.residuals(self.to_logarithms @ x)

    def loss(self, r, x, keep=slice(None)):
        part = 2 * (np.sqrt(1 + (r / self.scale) ** 2) - 1) * self.weight
        return float(np.sum(part[keep]) + np.sum((x / self.spread) ** 2))

    def curvature(self, r, jacobian, keep=slice(None)):
        """Half of the second derivative, and the rows' weights in it."""
        w = (self.weight / (self.scale * np.sqrt(self.scale**2 + r**2)))[keep]
        return jacobian[keep].T @ (w[:, None] * jacobian[keep]) + np.diag(self.spread**-2), w

    def step(self, r, x, jacobian, damping=0.0, keep=slice(None)):
        hessian, w = self.curvature(r, jacobian, keep)
        gradient = jacobian[keep].T @ (w * r[keep]) + x / self.spread**2
        damped = hessian + damping * np.diag(np.diag(hessian))
        return np.clip(-np.linalg.solve(damped, gradient), -LONGEST_STEP, LONGEST_STEP)

    def jacobian(self, x, r, pool):
        logarithms = self.to_logarithms @ x
        def column(i):
            moved = logarithms.copy()
            moved[i] += DERIVATIVE_STEP
            return (self.model.residuals(moved) - r) / DERIVATIVE_STEP
        columns = np.array(list(pool.map(column, range(len(logarithms))))).T
        columns[np.abs(columns) > STEEPEST] = 0
        return columns @ self.to_logarithms

    def fit(self, x, pool, steps):
        r = self.residuals(x)
        best, damping = self.loss(r, x), 0.01
        say(f"start: {best:.1f}", self, r)
        for _ in range(steps):
            jacobian = self.jacobian(x, r, pool)
            for _ in range(6):
                moved = x + self.step(r, x, jacobian, damping)
                there = self.residuals(moved)
                loss = self.loss(there, moved)
                if loss < best:
                    break
                damping *= 5
            else:
                break
            gain, best, x, r = best - loss, loss, moved, there
            damping = max(damping / 5, 1e-4)
            say(f"fit: {best:.1f}", self, r)
            if gain < 10 * ENOUGH:
                break
        return x, r, self.jacobian(x, r, pool)

    def fit_without(self, site, x, r, jacobian):
        """x and residuals without a site's rows."""
        keep = self.site != site
        best = self.loss(r, x, keep)
        for _ in range(12):
            step = self.step(r, x, jacobian, keep=keep)
            for share in (1, 0.4, 0.1):
                there = self.residuals(x + share * step)
                loss = self.loss(there, x + share * step, keep)
                if loss < best:
                    break
            else:
                break
            gain, best, x, r = best - loss, loss, x + share * step, there
            if gain < ENOUGH:
                break
        return x, r


def say(title, problem, r):
    error = np.abs(np.expm1(r))
    parts = []
    for i, (name, _, _) in enumerate(SIZE_CLASSES):
        of_class = error[[row.size_class == i for row in problem.rows]]
        parts.append(f"{name} {100 * np.median(of_class):.1f}/{100 * np.quantile(of_class, 0.9):.1f} %")
    print(f"{title:14} " + "   ".join(parts), flush=True)


def write_libraries(problem, x, hessian, jacobian):
    libraries, to_logarithms = problem.model.libraries, problem.to_logarithms
    uncertainty = np.sqrt(np.diag(to_logarithms @ np.linalg.inv(hessian) @ to_logarithms.T))
    documents = libraries.with_values(to_logarithms @ x)
    for i, parameter in enumerate(libraries.parameters):
        depth = rule_depth(parameter)
        fitted = at(documents[parameter.library], parameter.path[:depth])["fitted"][parameter.path[depth]]
        told = {"uncertainty": float(f"{uncertainty[i]:.2g}"),
                "rows": int(np.count_nonzero(np.abs(jacobian[:, i]) > 0.01))}
        if depth == len(parameter.path) - 1:
            fitted.update(told)
            continue
        for key, value in told.items():  # One entry for each point of a list.
            fitted[key] = (fitted[key] if parameter.path[depth + 1] > 0 else []) + [value]
    for name, document in documents.items():
        if any(p.library == name for p in libraries.parameters):
            (libraries.folder / f"{name}.json").write_text(tidy(document) + "\n")


def rule_depth(parameter):
    """Steps of the path up to the rule: a point of a list of shares lies two deeper than its key."""
    return len(parameter.path) - (3 if isinstance(parameter.path[-2], int) and parameter.path[-3] == "share" else 1)


def write_left_out(path, libraries, without):
    """`without`: by site, ln(value / prior)."""
    values = {}
    for site, logarithms in sorted(without.items()):
        values[site] = [written(p.prior * math.exp(share), at(libraries.documents[p.library], p.path))
                        for p, share in zip(libraries.parameters, logarithms)]
    document = {
        "format": "flyover-left-out-1",
        "summary": "The parameters fitted without each site (scripts/fit/fit.py), in the order of `parameters`",
        "parameters": [{"library": p.library, "at": "".join(f"/{step}" for step in p.path)}
                       for p in libraries.parameters],
        "sites": values,
    }
    path.write_text(tidy(document, width=10000) + "\n")  # A site a line.


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", nargs="?", default=str(ROOT / "build/release/bin/flyover"))
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--steps", type=int, default=12)
    arguments = parser.parse_args()

    libraries = Libraries(ROOT / "configs" / "libraries")
    problem = Problem(Model(arguments.program, libraries))
    print(f"{len(libraries.parameters)} parameters, {len(problem.rows)} rows, {len(set(problem.site))} sites")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        x = problem.start()
        if arguments.report:
            r = problem.residuals(x)
            step = problem.step(r, x, problem.jacobian(x, r, pool))
            say("shipped", problem, r)
            print(f"the next step would change a parameter by {100 * np.expm1(np.max(np.abs(step))):.1f} % at most")
            return
        x, r, jacobian = problem.fit(x, pool, arguments.steps)
        sites = sorted(set(problem.site))
        without = dict(zip(sites, pool.map(lambda site: problem.fit_without(site, x, r, jacobian), sites)))
    left_out = r.copy()
    for site, (_, there) in without.items():
        left_out[problem.site == site] = there[problem.site == site]
    say("left out", problem, left_out)
    write_libraries(problem, x, problem.curvature(r, jacobian)[0], jacobian)
    write_left_out(ROOT / "configs" / "left-out.json", libraries,
                   {site: problem.to_logarithms @ fit for site, (fit, _) in without.items()})


if __name__ == "__main__":
    main()
