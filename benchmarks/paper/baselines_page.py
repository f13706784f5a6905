"""The section about baselines: from benchmarks/out/baselines.json, which `benchmarks.baselines` writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.paper.directions_page import NAMES
from benchmarks.paper.findings import number, share, table

SECTION = """\
## Baselines: nobody asked, a trusted party, and no privacy at all

Read the AUCs of the section before beside these (`benchmarks/baselines.py`). *Majority*: the accuracy of the commoner
answer given to everybody. *Rule*: the declared directions over the declared cuts, which ask nobody. *Trusted party*:
central differential privacy, one table of each feature over the declared cuts, made noisy once for epsilon 1 at delta
1e-6. The rest has no privacy: logistic regression on the declared cuts and on raw values, and boosted trees on raw
values. All but the majority's are ROC AUCs. All are of people who were no peers.
"""

COLUMNS = {
    "majority": "majority",
    "rule": "rule",
    "central": "trusted party, epsilon 1",
    "binned": "logistic, cuts",
    "raw": "logistic, raw",
    "boosted": "boosted trees",
}


def baselines(path: Path) -> str:
    """Nothing where nothing was measured."""
    return section(json.loads(path.read_text("utf-8"))["rows"]) if path.exists() else ""


def section(rows: Sequence[Figure]) -> str:
    """The table, and the sets on which not even a trusted party ranks better than the rule."""
    body, beaten = [], []
    for row in rows:
        name = NAMES.get(str(row["set"]), str(row["set"]))
        body.append([name, f"{int(number(row, 'peers')):,}", *(share(number(row, column)) for column in COLUMNS)])
        if number(row, "central") < number(row, "rule"):
            beaten.append(name)
    told = ", ".join(f"{count:,}" for count in sorted({int(number(row, "trials")) for row in rows})) + " trials."
    if beaten:
        told += f" The rule ranks better than even the trusted party on: {', '.join(beaten)}."
    return f"{SECTION}\n{table(['', 'peers', *COLUMNS.values()], body)}\n\n{told}"
