"""The part of the page about utility: every design at equal record-level epsilon, on every data set and cohort."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import hypot

from attrs import frozen

from benchmarks.figures import Figure
from benchmarks.paper.designs import DECLARED, PAPERS
from benchmarks.paper.findings import Findings, Value, number, share, table, with_error

UTILITY = """\
## Accuracy for one epsilon

Record-level epsilon, ROC AUC on people who were no peers, mean ± its standard error. The paper's pipeline runs under
honest accounting: its budget is divided evenly over what a peer sends (two histograms and one median for each numeric
feature). Our designs send one packet. Every design is told the same public facts: ranges, scales, the same groups of
categories, and a round guess of the base rate; only the peers' packets decide where bins lie. Ours are the candidates
of `study plan`, which chooses by simulation on made-up people, never on these. "Medians for nothing" is no pipeline of
the paper's but what its learner would give if a peer sent one histogram with the whole budget and exact medians cost
nothing. "Declared cuts" is examples/census/study.toml, which states some cuts from public knowledge. Ceilings:
logistic regression without privacy on the same bins, and on raw values.

A model is said to beat the base rate where noise alone would hardly have counted as much
([decision 18](decisions/0018-tested-against-noise.md)). A percentage says in how many trials it was, where that is not
all of them; the others publish a model that warns of itself."""

CLEAR = 2.0
"""So many standard errors of the difference make a gain or a loss."""

BOUND = "medians for nothing"


@frozen
class Cell:
    """One cohort at one epsilon: every design's row, and what the plan chose."""

    data: str
    peers: Value
    epsilon: float
    rows: Mapping[str, Figure]
    chosen: str = ""

    @property
    def planned(self) -> Figure | None:
        """The row of the design that the plan chose."""
        return self.rows.get(self.chosen)

    @property
    def papers(self) -> list[Figure]:
        """The paper's own settings."""
        return [row for name, row in self.rows.items() if name in PAPERS and BOUND not in name]

    @property
    def ours(self) -> list[Figure]:
        """Our designs with the same cuts."""
        return [row for name, row in self.rows.items() if name not in PAPERS and not name.startswith(DECLARED)]

    @property
    def name(self) -> str:
        """Where it is, in words."""
        return f"{self.data} ({'all' if self.peers is None else self.peers} peers, epsilon {self.epsilon:g})"


def utility(found: Findings, charts: Sequence[str]) -> str:
    """Nothing where nothing was measured."""
    if not found.rows("utility"):
        return ""
    parts = [UTILITY, _goals(found)]
    if "utility" in charts:
        parts.append("![Every design at equal record-level epsilon](results/utility.svg)")
    everywhere = list(cells(found))
    parts += [_gains(everywhere), _hopeless(everywhere), _choices(everywhere)]
    for row in found.rows("ceilings"):
        mine = [cell for cell in everywhere if cell.data == row["set"]]
        if mine:
            parts.append(f"### {row['title']}")
            for peers in dict.fromkeys(cell.peers for cell in mine):
                parts.append(_table([cell for cell in mine if cell.peers == peers], row))
    return "\n\n".join(part for part in parts if part)


def cells(found: Findings) -> Iterator[Cell]:
    """Every cell that something was measured in, sets in their order, all peers first, then the larger cohorts."""
    places: dict[tuple[str, Value, float], dict[str, Figure]] = {}
    for row in found.rows("utility"):
        place = (str(row["set"]), row["peers"], number(row, "epsilon"))
        places.setdefault(place, {})[str(row["design"])] = row
    sets = list(dict.fromkeys(name for name, _, _ in places))
    for place in sorted(places, key=lambda one: (sets.index(one[0]), -int(one[1] or 10**9), one[2])):
        name, peers, epsilon = place
        plan = found.rows("plan", set=name, peers=peers, epsilon=epsilon, declared=False)
        yield Cell(name, peers, epsilon, places[place], str(plan[0]["chosen"]) if plan else "")


def told(row: Figure) -> str:
    """A mean with its error, and how often the model was said to beat the base rate."""
    shown = row.get("shown")
    if not isinstance(shown, float) or shown > 0.995:
        return with_error(row)
    return f"{with_error(row)} ({100 * shown:.0f} %)"


def difference(new: Figure, old: Figure) -> tuple[float, float]:
    """How much better the new mean is, and the standard error of that."""
    return number(new, "auc") - number(old, "auc"), hypot(number(new, "auc_se"), number(old, "auc_se"))


def best(rows: Sequence[Figure]) -> Figure:
    """The row of the greatest mean."""
    return max(rows, key=lambda row: number(row, "auc"))


def _table(line: Sequence[Cell], ceiling: Figure) -> str:
    found = dict.fromkeys(name for cell in line for name in cell.rows)
    names = [name for name in PAPERS if name in found]
    names += sorted((name for name in found if name not in PAPERS), key=lambda name: name.startswith(DECLARED))
    body = [[name, *(told(cell.rows[name]) if name in cell.rows else "" for cell in line)] for name in names]
    if any(cell.planned for cell in line):
        body.append(["**study plan's choice**", *(f"**{told(c.planned)}**" if c.planned else "" for c in line)])
        body.append(["*which is*", *(f"*{cell.chosen}*" for cell in line)])
    trials = sorted({int(number(row, "trials")) for cell in line for row in cell.rows.values()})
    often = f"{trials[0]} to {trials[-1]}" if len(trials) > 1 else str(trials[0])
    who = f"all {ceiling['peers']}" if line[0].peers is None else f"{line[0].peers:,}"
    binned, raw = (share(number(ceiling, f"auc_{kind}")) for kind in ("binned", "raw"))
    head = f"{who} peers, {often} trials; without privacy {binned} binned, {raw} raw."
    return head + "\n\n" + table(["design", *(f"epsilon {cell.epsilon:g}" for cell in line)], body)


def _goals(found: Findings) -> str:
    """Adult against what was wanted of it."""
    rows = sorted(found.rows("adult"), key=lambda row: number(row, "epsilon"))
    if not rows:
        return ""
    body = []
    for row in rows:
        auc, goal = number(row, "auc_mean"), number(row, "goal")
        papers = [r for n in PAPERS if BOUND not in n for r in found.rows("utility", set="adult", peers=None,
                  epsilon=row["epsilon"], design=n)]  # fmt: skip
        body.append([
            f"{number(row, 'epsilon'):g}", f"{goal:g}", f"{auc:.4f} ± {number(row, 'auc_se'):.4f}",
            "reached" if auc >= goal else "**missed**", str(row["design"]).removeprefix("planned: "),
            share(number(row, "ece_mean")), with_error(best(papers)) if papers else "",
        ])  # fmt: skip
    low, high = number(rows[0], "ceiling_binned"), number(rows[0], "ceiling_raw")
    text = (
        f"Adult's train part as peers, its test part for scoring, eleven census attributes, {rows[0]['trials']} "
        "trials; the design is `study plan`'s choice for examples/census/study.toml with round guesses of how common "
        f"categories are (`benchmarks/utility.py`). Without privacy: {share(low)} on the first design's bins, "
        f"{share(high)} on raw values."
    )
    header = ["epsilon", "wanted", "AUC", "", "design", "calibration error", "best of the paper's settings"]
    return f"### Adult, against what was wanted\n\n{text}\n\n{table(header, body)}"


def _gains(everywhere: Sequence[Cell]) -> str:
    """Where the plan's choice, and each design everywhere, is clearly above the best of the paper's settings."""
    names = list(dict.fromkeys(name for cell in everywhere for name in cell.rows if name not in PAPERS))
    names = [name for name in names if not name.startswith(DECLARED)]
    lines = {"study plan's choice": [(cell.planned, cell) for cell in everywhere if cell.planned]}
    lines |= {name: [(cell.rows[name], cell) for cell in everywhere if name in cell.rows] for name in names}
    body = []
    for name, rows in lines.items():
        kinds = [_verdict(row, cell.papers) for row, cell in rows if row and cell.papers]
        if kinds:
            body.append([name, *(str(kinds.count(kind)) for kind in ("gain", "alike", "loss")), str(len(kinds))])
    header = ["design", "gains", f"within {CLEAR:g} standard errors", "loses", "cells"]
    rest = [c.name for c in everywhere if c.planned and c.papers and _verdict(c.planned, c.papers) != "gain"]
    end = f"The plan's choice does not gain at: {', '.join(rest)}." if rest else "The plan's choice gains everywhere."
    if not any(cell.planned and cell.papers for cell in everywhere):
        end = "What the plan chooses was not measured."
    return (
        "### Against the best of the paper's settings\n\nA gain or a loss is a difference of the means of more than "
        f"{CLEAR:g} of its standard errors, from the best of the paper's three settings in the same cell.\n\n"
        f"{table(header, body)}\n\n{end}\n\n{_by_set(everywhere)}"
    )


def _by_set(everywhere: Sequence[Cell]) -> str:
    """The gains of the plan's choice, set by set and epsilon by epsilon."""
    body = []
    places = dict.fromkeys((cell.data, cell.peers) for cell in everywhere)
    epsilons = sorted({cell.epsilon for cell in everywhere})
    for data, peers in places:
        line: list[str] = []
        for epsilon in epsilons:
            at = [c for c in everywhere if (c.data, c.peers, c.epsilon) == (data, peers, epsilon)]
            rows = [(c.planned, c.papers) for c in at if c.planned and c.papers]
            if not rows:
                line.append("")
                continue
            new, old = rows[0]
            gap, error = difference(new, best(old))
            mark = {"gain": "", "alike": " (tie)", "loss": " (**loss**)"}[_verdict(new, old)]
            line.append(f"{gap:+.3f} ± {error:.3f}{mark}")
        body.append([f"{data}, {'all' if peers is None else peers}", *line])
    if not any(any(line[1:]) for line in body):
        return ""
    header = ["set, peers", *(f"epsilon {e:g}" for e in epsilons)]
    return f"The plan's choice less the best of the paper's:\n\n{table(header, body)}"


def _verdict(new: Figure, papers: Sequence[Figure]) -> str:
    gap, error = difference(new, best(papers))
    return "gain" if gap > CLEAR * error else "loss" if gap < -CLEAR * error else "alike"


def _hopeless(everywhere: Sequence[Cell]) -> str:
    """Cells in which the plan's choice is seldom said to beat the base rate."""
    rows = [(cell, cell.planned) for cell in everywhere if cell.planned]
    shown = [(cell, number(row, "shown")) for cell, row in rows if row and isinstance(row.get("shown"), float)]
    seldom = [f"{cell.name}: {100 * part:.0f} %" for cell, part in shown if part < 0.5]
    if not shown:
        return ""
    if not seldom:
        return "In every cell the plan's choice is said to beat the base rate in half of the trials or more."
    return (
        "**Too little to be sure.** Here the plan's choice ranks better than the paper's pipeline on average, but is "
        f"said to beat the base rate in fewer than half of the trials: {'; '.join(seldom)}."
    )


def _choices(everywhere: Sequence[Cell]) -> str:
    """How good the plan's choices were, set by set."""
    body = []
    for data in dict.fromkeys(cell.data for cell in everywhere):
        mine = [(cell, cell.planned) for cell in everywhere if cell.data == data and cell.planned]
        losses = []
        for cell, row in mine:
            if row is not None:
                gap, error = difference(best(cell.ours), row)
                losses.append((gap, error, cell, str(best(cell.ours)["design"])))
        if not losses:
            continue
        first = sum(gap <= 0 for gap, _, _, _ in losses)
        near = sum(gap <= CLEAR * error for gap, error, _, _ in losses)
        gap, error, cell, winner = max(losses, key=lambda one: one[0])
        worst = f"{gap:.3f} ± {error:.3f} at {cell.name}: {cell.chosen}, where {winner} was best"
        mean = sum(one[0] for one in losses) / len(losses)
        body.append([data, str(len(losses)), str(first), str(near), f"{mean:.3f}", worst if gap > 0 else "nothing"])
    if not body:
        return ""
    header = ["set", "cells", "the best", f"within {CLEAR:g} standard errors of it", "mean loss", "greatest loss"]
    text = (
        "Rules of the plan were changed while it was scored on Adult's test part "
        "([decision 14](decisions/0014-one-bit-and-additive.md)), and spambase and SUSY were looked at; how much "
        "tables may be behind bits was last set after seeing this table of all sets. The loss of its "
        "choice against the best of our designs in the same cell, which is the best of several "
        "noisy means and so looks a little better than it is:"
    )
    return f"### Did the plan choose well?\n\n{text}\n\n{table(header, body)}"
