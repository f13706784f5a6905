"""The part of the page about utility: every design at equal record-level epsilon, on every data set and cohort."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.figures import Figure
from benchmarks.paper.findings import Findings, number, share, table, with_error

WANTED = {0.25: 0.78, 0.5: 0.84, 1.0: 0.858, 2.0: 0.868, 4.0: 0.875}
"""What issue 4 wants on Adult at each record-level epsilon."""

UTILITY = """\
## What the same epsilon can buy

Record-level epsilon, ROC AUC on people who were no peers, mean ± its standard error. The paper's pipeline runs under
honest accounting: its budget is divided evenly over what a peer sends (two histograms and one median for each numeric
feature). Our designs send one packet. Every design is told the same public facts: ranges, scales, categories and, for
the additive learner, a round guess of the base rate. Ours use quartile bins, and only the peers' packets decide where
they lie; the same groups of categories are told to all designs. `study plan` chooses by simulation on made-up people,
never on these; with "declared cuts" it is given examples/census/study.toml, which states some cuts from public
knowledge. Ceilings: logistic regression without privacy on the same bins, and on raw
values.
"""


GAINS = """\
### Against the best of the paper's settings

A gain or a loss is a difference of the means of more than two of its standard errors."""


def utility(found: Findings, charts: Sequence[str]) -> str:
    """Nothing where nothing was measured."""
    if not found.rows("utility"):
        return ""
    parts = [UTILITY.strip()]
    if "utility" in charts:
        parts.append("![Every design at equal record-level epsilon](results/utility.svg)")
    for row in found.rows("ceilings"):
        cells = found.rows("utility", set=row["set"])
        if not cells:
            continue
        parts.append(f"### {row['title']}")
        for peers in dict.fromkeys(cell["peers"] for cell in cells):
            parts.append(_utility_table(found, row, peers))
    parts.append(_gains(found))
    return "\n\n".join(parts)


def _utility_table(found: Findings, ceiling: Figure, peers: object) -> str:
    cells = [cell for cell in found.rows("utility", set=ceiling["set"]) if cell["peers"] == peers]
    epsilons = sorted({number(cell, "epsilon") for cell in cells})
    body = []
    for design in dict.fromkeys(str(cell["design"]) for cell in cells):
        line = {number(cell, "epsilon"): cell for cell in cells if cell["design"] == design}
        body.append([design, *(with_error(line[e]) if e in line else "" for e in epsilons)])
        if any(cell.get("chosen") for cell in line.values()):
            body.append(["*which is*", *(str(line[e].get("chosen", "")) if e in line else "" for e in epsilons)])
    if peers is None and ceiling["set"] == "adult":
        body.append(["*wanted*", *(f"*{WANTED[e]:g}*" if e in WANTED else "" for e in epsilons)])
    counts = sorted({int(number(cell, "trials")) for cell in cells})
    trials = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])
    who = f"all {ceiling['peers']}" if peers is None else f"{peers:,}"
    binned, raw = (share(number(ceiling, f"auc_{kind}")) for kind in ("binned", "raw"))
    told = f"{who} peers, {trials} trials; without privacy {binned} binned, {raw} raw."
    return told + "\n\n" + table(["design", *(f"epsilon {e:g}" for e in epsilons)], body)


def _gains(found: Findings) -> str:
    """At how many (set, cohort, epsilon) each of our designs is clearly above the best of the paper's settings."""
    cells: dict[tuple[str, str, float], dict[str, Figure]] = {}
    for row in found.rows("utility"):
        cells.setdefault((str(row["set"]), str(row["peers"]), number(row, "epsilon")), {})[str(row["design"])] = row
    ours = list(dict.fromkeys(name for line in cells.values() for name in line if not name.startswith("paper")))
    body = []
    for name in [*ours, "the best of ours"]:
        verdicts = [_verdict(line, ours if name == "the best of ours" else [name]) for line in cells.values()]
        judged = [one for one in verdicts if one is not None]
        body.append([name, *(str(judged.count(kind)) for kind in ("gain", "alike", "loss")), str(len(judged))])
    header = ["design", "gains", "within 2 standard errors", "loses", "cells"]
    lost = [
        f"{name} ({'all' if peers == 'None' else peers} peers, epsilon {epsilon:g})"
        for (name, peers, epsilon), line in cells.items()
        if _verdict(line, ours) in ("loss", "alike")
    ]
    told = f"No design of ours gains at: {', '.join(lost)}." if lost else "In every cell some design of ours gains."
    return f"{GAINS}\n\n{table(header, body)}\n\n{told}"


def _verdict(line: dict[str, Figure], names: Sequence[str]) -> str | None:
    papers = [row for name, row in line.items() if name.startswith("paper")]
    ours = [line[name] for name in names if name in line]
    if not papers or not ours:
        return None
    old, new = (max(rows, key=lambda row: number(row, "auc")) for rows in (papers, ours))
    error = (number(old, "auc_se") ** 2 + number(new, "auc_se") ** 2) ** 0.5
    gap = number(new, "auc") - number(old, "auc")
    return "gain" if gap > 2 * error else "loss" if gap < -2 * error else "alike"
