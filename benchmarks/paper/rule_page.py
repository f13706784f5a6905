"""The sections about rules: from benchmarks/out/rule.json and rule-local.json, which `benchmarks.rule` and
`benchmarks.rule_local` write."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure
from benchmarks.paper.directions_page import NAMES
from benchmarks.paper.findings import number, share, table

RULE = Path(__file__).resolve().parents[2] / "docs" / "results.md"
TITLE = "## The calibrated rule: sums that start from what staff declared"
SECTION = f"""\
{TITLE}

ROC AUC at epsilon 1, delta 1e-6, with the noise of two tellers (`python -m benchmarks.rule`,
[decision 53](decisions/0053-calibrated-rule.md)). *Rule*: declared directions over declared cuts, which ask nobody; a
constant learner publishes it. *Tables*: one sum of tables, with right signs and with none. *Calibrated*: with right
signs, with one of three fixed thirds of them turned around, and with all turned. *Said*: the share of studies that say
that the answers contradict what was declared, with these signs, and with shuffled labels.
"""
LOCAL = "## The local rule: one bit of the score, and bits about features"
LOCAL_SECTION = f"""\
{LOCAL}

ROC AUC at epsilon 1, delta 0, one packet a member (`python -m benchmarks.rule_local`,
[decision 59](decisions/0059-local-rule.md)). *Rule*: as above. *None*: one-bit packets about features without
directions. *Local*: with right signs, with one of three fixed thirds of them turned around, and with all turned.
*Said*: as above; labels were shuffled with 2,000 people.
"""
COLUMNS = ("right", "third", "wrong")
LAST = "## Errata that these numbers meet"


def rule(path: Path) -> str:
    """Nothing where nothing was measured."""
    return section(json.loads(path.read_text("utf-8"))) if path.exists() else ""


def section(kept: Mapping[str, Any]) -> str:
    """The section of what `benchmarks.rule` kept."""
    rows: Sequence[Figure] = kept["rows"]
    head = ["data", "people", "rule: right", "third", "wrong", "tables: right", "none"]
    head += [*(f"calibrated: {kind}" if kind == "right" else kind for kind in COLUMNS)]
    head += [*(f"said: {kind}" if kind == "right" else kind for kind in COLUMNS), "shuffled"]
    trials = sorted({int(number(row, "trials")) for row in rows})
    told = f"{' or '.join(map(str, trials))} fresh trials a cell, seed {kept['seed']}; "
    told += f"{kept['shuffles']:,} shuffles a cell. After ± is the standard error of a mean. The calibrated rule misses"
    told += f" {kept['missed']} of the bars that the command holds, a constant learner {kept['missed_by_a_constant']}."
    if uniform := [number(row, "null_p") for row in rows if "null_p" in row]:
        told += " That the score's p-values are uniform with shuffled labels has Kolmogorov-Smirnov p-values from "
        told += f"{min(uniform):.2f} to {max(uniform):.2f}."
    return "\n\n".join((SECTION.strip("\n"), told, table(head, [_cells(row) for row in rows])))


def _cells(row: Figure, columns: Sequence[str] = ("tables", "none", *COLUMNS)) -> list[str]:
    found = [NAMES.get(str(row["set"]), str(row["set"])), f"{int(number(row, 'peers')):,}", share(number(row, "rule"))]
    found += [share(number(row, f"rule_{kind}")) for kind in COLUMNS[1:]]
    found += [f"{number(row, name):.4f} ± {number(row, f'{name}_se'):.4f}" for name in columns]
    said = [f"against_{kind}" for kind in COLUMNS] + ["null_against"]
    return [*found, *(f"{number(row, name):.3f}" if name in row else "" for name in said)]


def local(path: Path) -> str:
    """As `rule`, of the rule of answers that perturb."""
    return local_section(json.loads(path.read_text("utf-8"))) if path.exists() else ""


def local_section(kept: Mapping[str, Any]) -> str:
    """The section of what `benchmarks.rule_local` kept."""
    rows: Sequence[Figure] = kept["rows"]
    head = ["data", "people", "rule: right", "third", "wrong", "none"]
    head += [*(f"local: {kind}" if kind == "right" else kind for kind in COLUMNS)]
    head += [*(f"said: {kind}" if kind == "right" else kind for kind in COLUMNS), "shuffled"]
    trials = sorted({int(number(row, "trials")) for row in rows})
    told = f"{' or '.join(map(str, trials))} fresh trials a cell, seed {kept['seed']}; {kept['shuffles']:,} shuffles a "
    told += f"set. After ± is the standard error of a mean. The local rule misses {kept['missed']} of the bars that "
    told += "the command holds."
    if uniform := [number(row, "null_p") for row in rows if "null_p" in row]:
        told += " That p-values are uniform over 1,000 studies with shuffled labels has Kolmogorov-Smirnov p-values "
        told += f"from {min(uniform):.2f} to {max(uniform):.2f}."
    cells = [_cells(row, ("none", *COLUMNS)) for row in rows]
    return "\n\n".join((LOCAL_SECTION.strip("\n"), told, table(head, cells)))


def put(kept: Path, page: Path, title: str = TITLE) -> None:
    """Write the section of this title into the page: in place of the one that is there, or before the errata."""
    old = rf"{re.escape(title)}\n.*?(?=\n## )"
    made = local(kept) if title == LOCAL else rule(kept)
    text = re.sub(old, "", page.read_text("utf-8"), flags=re.DOTALL)
    page.write_text(text.replace(LAST, f"{made}\n\n{LAST}").replace("\n\n\n", "\n\n"), encoding="utf-8")
