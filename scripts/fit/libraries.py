"""The libraries in configs/libraries as the fit sees them: their free parameters and their values.

A rule's "fitted" names its free values, each with the prior (what publications or physics say before any
measurement), how far it may stray from what is common to its group ("spread", a standard deviation of the
logarithm) and, after a fit, what the measurements left of that ("uncertainty") and how many rows depend on
the value ("rows"). What is common to a group strays from the priors by a factor of its own, whose spread is here.
"""
import copy
import json
import math
import pathlib
import re

QUANTITY = re.compile(r"^([-+0-9.eE]+) ?(.*)$")
BINARY = {"KiB": 1, "MiB": 1024, "GiB": 1024 * 1024}


# Values of one kind err alike: a guess that is low for one rule is low for the next.
GROUP_SPREADS = {
    "base of LL": 0.3, "base of LL128": 0.3, "base of Simple": 0.3,
    "hop in a domain, LL": 0.4, "hop in a domain, LL128": 0.4, "hop in a domain, Simple": 0.4,
    "network hop, LL": 0.5, "network hop, LL128": 0.5, "network hop, Simple": 0.5,
    "message in a domain": 0.6, "message across": 0.6,
    "fill in a domain": 0.8, "fill across": 0.8, "size of fill in a domain": 0.6, "size of fill across": 0.6,
    "hop of a kind of network": 0.8, "fill of a kind of network": 0.8, "size of fill of a kind of network": 0.6,
    "share of NVLink": 0.06, "share of NVLink under NVLS": 0.10, "share of xGMI": 0.06, "share of a network": 0.04,
    "cap of LL": 0.3, "cap of LL128": 0.3, "cap of a channel's messages": 0.3,
    "launch": 0.4,
}


class Parameter:
    def __init__(self, library, path, fitted):
        self.library, self.path = library, path
        self.prior = number(fitted["prior"])
        self.spread = fitted["spread"]
        self.group = fitted["group"]
        self.fitted = fitted

    def __str__(self):
        return self.library + "".join(f"/{step}" for step in self.path)


class Libraries:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.documents = {f.stem: json.loads(f.read_text()) for f in sorted(self.folder.glob("*.json"))}
        self.parameters = []
        for name, document in self.documents.items():
            self._collect(name, document, ())

    def _collect(self, library, value, path):
        if isinstance(value, list):
            for i, item in enumerate(value):
                self._collect(library, item, path + (i,))
        elif isinstance(value, dict):
            for key, fitted in value.get("fitted", {}).items():
                for place in places(value[key]):
                    self.parameters.append(Parameter(library, path + (key,) + place, fitted))
            for key, item in value.items():
                if key != "fitted":
                    self._collect(library, item, path + (key,))

    def value(self, parameter):
        return number(at(self.documents[parameter.library], parameter.path))

    def logarithms(self):
        """ln(value / prior) of the shipped values."""
        return [math.log(self.value(p) / p.prior) for p in self.parameters]

    def with_values(self, x):
        """Copies of the documents with other values."""
        documents = copy.deepcopy(self.documents)
        for parameter, share in zip(self.parameters, x):
            target = at(documents[parameter.library], parameter.path[:-1])
            target[parameter.path[-1]] = written(parameter.prior * math.exp(share), target[parameter.path[-1]])
        return documents


def places(value):
    """Paths to the numbers of a value: itself, or the points of a list of shares."""
    return [(i, "share") for i in range(len(value))] if isinstance(value, list) else [()]


def at(document, path):
    for step in path:
        document = document[step]
    return document


def number(value):
    """A number, or a quantity in its unit; binary sizes in KiB."""
    if not isinstance(value, str):
        return float(value)
    amount, unit = QUANTITY.match(value).groups()
    return float(amount) * BINARY.get(unit, 1)


def written(amount, like):
    """`amount` with four digits, in the form of `like`."""
    if not isinstance(like, str):
        return float(f"{min(amount, 1.0):.4g}")  # A share.
    unit = QUANTITY.match(like).group(2)
    if unit in BINARY:
        return f"{max(1, round(amount))} KiB"
    return f"{float(f'{amount:.4g}'):g} {unit}"


def resolved(documents):
    """The documents with what they extend laid under them (RFC 7386)."""
    def resolve(document):
        if "extends" not in document:
            return document
        return merge(resolve(documents[document["extends"]]), {k: v for k, v in document.items() if k != "extends"})
    return {name: resolve(document) for name, document in documents.items()}


def merge(base, patch):
    if not isinstance(patch, dict):
        return patch
    merged = dict(base) if isinstance(base, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged
