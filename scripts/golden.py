#!/usr/bin/env python3
"""Compares what shipped inputs give with tests/golden/, to the byte.

  scripts/golden.py             says what changed (exit 1), if anything
  scripts/golden.py --update    rewrites the files: review the diff like code, and say in the commit
                                message which numbers moved and why
"""
import argparse
import difflib
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flyover", default=ROOT / "build/release/bin/flyover", type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()

    cases = json.loads((GOLDEN / "cases.json").read_text())
    environment = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
    wrong = []
    for name, arguments in cases.items():
        run = subprocess.run([options.flyover.resolve(), *arguments], cwd=ROOT, env=environment,
                             capture_output=True, text=True, check=False)
        if run.returncode != 0:
            wrong.append(f"{name}: exit status {run.returncode}: {run.stderr}")
            continue
        file = GOLDEN / f"{name}.txt"
        if options.update:
            file.write_text(run.stdout)
            continue
        before = file.read_text() if file.exists() else ""
        if run.stdout != before:
            wrong.append("".join(difflib.unified_diff(
                before.splitlines(True), run.stdout.splitlines(True), str(file.relative_to(ROOT)), name)))
    stale = sorted({f.stem for f in GOLDEN.glob("*.txt")} - set(cases))
    if stale:
        wrong.append(f"no case for {', '.join(stale)}")
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{len(cases)} golden files {'written' if options.update else 'unchanged'}")


if __name__ == "__main__":
    main()
