"""The section about declared directions: from benchmarks/out/directions.json, which `benchmarks.directions` writes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.paper.findings import number, share, table

SECTION = """\
## Declared directions and cuts, and where no study was worth its epsilon

Staff may declare which way a feature points, and its cuts ([decision 35](decisions/0035-expected-directions.md)). The
*rule* adds up the declared directions over the declared cuts and asks nobody. A study is worth its epsilon as a ranking
only if it ranks better than the rule. Each cell has the ROC AUC of the design that `study plan` chooses: with neither →
with both, the signs being right. A cell is **bold** if any of four designs ranks better than the rule by more than two
standard errors: that with neither, with directions, with cuts, or with both. In the others nothing was gained but the
answer to one question: is the rule true here?
"""

NAMES = {"adult": "Adult", "kddcup2015": "KDD Cup 2015, dropout", "spambase": "spambase", "news": "online news"}


def directions(path: Path) -> str:
    """Nothing where nothing was measured."""
    return section(json.loads(path.read_text("utf-8"))["rows"]) if path.exists() else ""


def section(rows: Sequence[Figure]) -> str:
    """Tables and sentences from the rows of `benchmarks.directions`, those with and without declared cuts."""
    cells: dict[tuple[str, int, float], dict[bool, Figure]] = {}
    for row in rows:
        place = (str(row["set"]), int(number(row, "peers")), number(row, "epsilon"))
        cells.setdefault(place, {})[bool(row["cuts"])] = row
    both = {place: pair for place, pair in cells.items() if len(pair) == 2}
    trials = [int(number(row, "trials")) for row in rows]
    errors = [number(row, f"{kind}_se") for row in rows for kind in ("none", "right")]
    told = f"{min(trials)} to {max(trials)} trials in each of {len(rows)} cells"
    parts = [SECTION, f"{told}; standard errors at most {max(errors):.3f}. {_unworthy(both)}"]
    for name in dict.fromkeys(place[0] for place in both):
        mine = {place[1:]: pair for place, pair in both.items() if place[0] == name}
        rule = number(next(iter(mine.values()))[True], "rule")
        parts.append(f"**{NAMES.get(name, name)}**, rule {share(rule)}:\n\n{_table(mine)}")
    return "\n\n".join(part.strip("\n") for part in parts)


def _table(mine: Mapping[tuple[int, float], Mapping[bool, Figure]]) -> str:
    sizes, epsilons = dict.fromkeys(size for size, _ in mine), dict.fromkeys(epsilon for _, epsilon in mine)
    body = [
        [f"{size:,}" if size else "all", *(_cell(mine.get((size, epsilon))) for epsilon in epsilons)] for size in sizes
    ]
    return table(["peers", *(f"epsilon {epsilon:g}" for epsilon in epsilons)], body)


def _cell(pair: Mapping[bool, Figure] | None) -> str:
    if pair is None:
        return ""
    told = f"{share(number(pair[False], 'none'))} → {share(number(pair[True], 'right'))}"
    return f"**{told}**" if worth(pair) else told


def worth(pair: Mapping[bool, Figure]) -> bool:
    """True if any study of this size ranks better than the rule, by more than two standard errors."""
    return any(
        number(row, kind) - 2 * number(row, f"{kind}_se") > number(row, "rule")
        for row in pair.values()
        for kind in ("none", "right")
    )


def _unworthy(cells: Mapping[tuple[str, int, float], Mapping[bool, Figure]]) -> str:
    """In how many cells no study was worth its epsilon, and the sets where none was."""
    bad = sum(not worth(pair) for pair in cells.values())
    found = [f"In {bad} of {len(cells)} pairs of size and epsilon no study was worth its epsilon."]
    for name in dict.fromkeys(place[0] for place in cells):
        good = [place for place, pair in cells.items() if place[0] == name and worth(pair)]
        if not good:
            found.append(f"On {NAMES.get(name, name)} none was.")
    return " ".join(found)
