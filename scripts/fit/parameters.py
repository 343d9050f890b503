#!/usr/bin/env python3
"""Writes docs/models/parameters.md: every fitted parameter of configs/libraries.

  scripts/fit/parameters.py [--check]
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from libraries import Libraries, at  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "models" / "parameters.md"
HEAD = """# Fitted parameters

Written by scripts/fit/parameters.py from configs/libraries; [fit.md](fit.md) explains the columns. Spread and
uncertainty are standard deviations of the logarithm: 0.1 is about 10 %. A rule holds where no earlier one of its list does.
"""


def scope(rule, path):
    where = {k: v for k, v in rule.get("where", {}).items()}
    if "links" in rule:
        where["links"] = rule["links"]
    words = [", ".join(map(str, v)) if isinstance(v, list) else f"{k.replace('_', ' ')} {v}" for k, v in where.items()]
    return "; ".join(words) or str(path[1])


def rows(libraries, library):
    for parameter in libraries.parameters:
        if parameter.library != library:
            continue
        rule = at(libraries.documents[library], parameter.path[:2])
        value = at(libraries.documents[library], parameter.path)
        key = parameter.path[2]
        fitted = dict(parameter.fitted)
        if len(parameter.path) > 3:
            point = parameter.path[3]
            fitted.update({k: fitted[k][point] for k in ("uncertainty", "rows") if k in fitted})
            key += f" ({rule[key][point]['members']} members)"
        yield (f"| {parameter.path[0]} | {scope(rule, parameter.path)} | {key} | {fitted['prior']} | {fitted['spread']} "
               f"| {value} | {fitted.get('uncertainty', '')} | {fitted.get('rows', '')} |\n")


def main():
    libraries = Libraries(ROOT / "configs" / "libraries")
    page = HEAD
    for library in sorted({p.library for p in libraries.parameters}):
        page += f"\n## {library}\n\n| list | rule | value of | prior | spread | fitted | uncertainty | rows |\n"
        page += "|---|---|---|---|---|---|---|---|\n" + "".join(rows(libraries, library))
    if "--check" not in sys.argv:
        PAGE.write_text(page, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        sys.exit(f"{PAGE.relative_to(ROOT)} is out of date: run scripts/fit/parameters.py")


if __name__ == "__main__":
    main()
