#!/usr/bin/env python3
"""Checks from the real #include lines that modules only know what is below them.

  scripts/layers.py            names every arrow that points upward and every cycle within a row (exit 1)
  scripts/layers.py --mermaid  prints the picture for docs/architecture.md
"""
import graphlib
import pathlib
import re
import sys

# Lowest first. A module may include modules of lower rows, and of its own row where no cycle arises.
LAYERS = [
    ["base"],
    ["engine", "topology", "trace", "workload"],
    ["routing", "cost", "collective"],
    ["layout", "moe"],
    ["simulate"],
    ["study", "report"],
    ["io"],
    ["cli", "mpi"],
]
ROW = {module: row for row, modules in enumerate(LAYERS) for module in modules}
INCLUDE = re.compile(r'^\s*#\s*include "((?:flyover/)?(\w+)/[^"]+)"', re.MULTILINE)
ROOT = pathlib.Path(__file__).resolve().parent.parent


def module_graph():
    """For each module the modules it includes, with one file that does so."""
    graph = {}
    files = [*ROOT.glob("include/flyover/**/*.hpp"), *ROOT.glob("src/**/*.?pp")]
    for path in sorted(files):
        parts = path.relative_to(ROOT).parts
        module = parts[2] if parts[0] == "include" else parts[1]
        uses = graph.setdefault(module, {})
        for header, used in INCLUDE.findall(path.read_text(encoding="utf-8")):
            in_subfolder = (path.parent / header).exists()
            if used != module and not in_subfolder:
                uses.setdefault(used, path.relative_to(ROOT))
    return graph


def main():
    graph = module_graph()
    problems = []
    for module, uses in sorted(graph.items()):
        if module not in ROW:
            problems.append(f"{module}: no such module in scripts/layers.py")
            continue
        for used, path in sorted(uses.items()):
            if used not in ROW:
                problems.append(f"{path}: includes the unknown module '{used}'")
            elif ROW[used] > ROW[module]:
                problems.append(f"{path}: {module} must not know {used}, which is above it")
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        problems.append("cycle: " + " <- ".join(error.args[1]))

    if "--mermaid" in sys.argv[1:]:
        print("graph TD")
        for module, uses in sorted(graph.items()):
            for used in sorted(uses):
                print(f"  {module} --> {used}")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
