"""docs/ensembles.md from the rows that are kept, and the checks of what it says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.paper.findings import number, table
from benchmarks.paper.sections import merged
from benchmarks.parties.goals import brief

PAGE = Path(__file__).resolve().parents[2] / "docs" / "ensembles.md"
WAYS = ("local", "published alone", "to the group", "to all")
SAYS = ("own", "all alike", "unweighted", "weighted")
NAMED = {
    "sizes": ("set", "group"), "records": ("records", "epsilon"), "parts": ("epsilon", "parts"),
    "epsilon": ("set", "epsilon"), "peers": ("set", "peers"),
}  # fmt: skip
"""The columns by which the lines of a table are told apart."""
COMMAND = "python -m benchmarks.parties.ensembles --data FOLDER --runs 4 --page"
HEAD = """\
<!-- Written by `{command}`; do not edit it by hand. -->

# Ensembles of groups

The experiments of Asplund and Frøystad (2015) on groups, with [right noise](rows-and-groups.md#groups): Gaussian, at
delta 1e-6, for a record replaced. It is arithmetic, on 4,000 test records. *Local* is a peer's own model. *Published
alone* is the ensemble of all groups' models. The last two ways are a peer's own model beside those of its groups, or of
all. Lambda is the best of seven, from .0003 to 1, on held-out records. Each published model has one noise; a study has
one for each receiver. In brackets: the deviation over {runs} runs, of group sizes over {many}, and behind the stroke
that over peers within a run.

`{command}`
"""
MANY = 40
SIZES = f"""\
## Group sizes

Tables 6.12, 6.13, 9.7 and 9.8: 30 peers at epsilon 1, with 300 records each on Adult, and 120 on Spambase. A last
smaller group joins the one before it, so 20 to 29 would be one group of 30. Publication to all takes the spread over
peers to under a third of that to the group: on Adult with groups of up to 10, on Spambase with groups of up to 15.
The thesis's own tables have it with groups of up to 10, and up to 5. With one group both ways are the same.

On Adult two groups of 15 leave .44, and the reason is the own models. *Quiet* is the spread to all without any noise,
at the same lambda: groups' models are nearly alike then, and the own ones differ. It is above the third that is asked.
So no way of publishing reaches it while the own model counts like the others.

`python -m benchmarks.parties.ensembles --data FOLDER --only sizes --runs {MANY}`
"""
PRINTED_SPREADS: Mapping[str, Mapping[int, tuple[float, float]]] = {
    "Adult": {1: (0.0068, 0.0003), 5: (0.0054, 0.0007), 10: (0.0078, 0.0008), 15: (0.0071, 0.0026),
              30: (0.0031, 0.0027)},
    "Spambase": {1: (0.0435, 0.0036), 5: (0.0399, 0.0125), 10: (0.0368, 0.0191), 15: (0.0290, 0.0225)},
}  # fmt: skip
"""The deviation over peers: to the group (tables 6.12 and 9.7), and to all (6.13 and 9.8)."""
THIRD = {"Adult": (1, 5, 10), "Spambase": (1, 5, 10, 15)}
"""Sizes of groups with which publication to all takes the spread over peers to under a third."""
RECORDS = """\
## Records of each peer

Figures 6.5 to 6.7 on Adult: ten peers, one group. The published model alone beats a local one nowhere here. At
epsilon 4 and 3,000 records they are alike. An own model beside it is better than a local one at epsilon 4 alone.
"""
PARTS = """\
## Epsilon in parts

Figure 6.9 on Adult: 30 peers in groups of ten, and so many aggregations for one epsilon. By zero-concentrated privacy
the noise grows with the root of their number; the thesis divides epsilon itself. A study has at most ten.
"""
REST = """\
## Epsilon, peers and lambda

Figures 6.1 and 6.8: ten peers in one group at several epsilons, and groups of five at epsilon 1. Figures 6.2 to 6.4:
the published model alone at each lambda on Spambase.
"""
WEIGHING = """\
## Uneven data, and a liar

Ten peers on Adult in groups of five, two aggregations, lambda .003, and twice as many runs. *Label*: each peer's share
of labels is drawn by Dirichlet .3. *Size*: its number of records is, but for at least 40, for which the noise then is.
All four columns judge on records like the peer's own; the last on everybody's. *All alike* has every model that was not
refused. *Unweighted* and *weighted* are the rules of `anonml peer predict --own`: a fourth of the own records is held
back, and a model that errs far more than a guess is left out.

Weights help where data are uneven. At epsilon 1 the own model by itself is better still. With the same noise, a liar
that turns its model round costs the others at most .01. One that sends 100 times its model is refused by length, in
both groups that it was in.
"""


FIGURES = """\
## Figures 6.1 to 6.9 as pictures

Drawn from the tables above. Bars are the deviation over runs. A dotted line is the error of the same way without noise.

![Figure 6.1: error by epsilon, ten peers in one group](results/groups-figure-1.svg)

![Figures 6.2 to 6.4: error of the published model by lambda](results/groups-figure-2-to-4.svg)

![Figures 6.5 to 6.7: error by records of each peer](results/groups-figure-5-to-7.svg)

![Figure 6.8: error by the number of peers](results/groups-figure-8.svg)

![Figure 6.9: error by parts of epsilon](results/groups-figure-9.svg)
"""


def write_page(rows: Sequence[Figure], runs: int) -> list[str]:
    """Write the page and its pictures. Chapters without rows stay as they were. Returns the claims that do not hold."""
    from benchmarks.parties.ensembles_pictures import draw_all  # needs matplotlib, which measuring does not

    text = merged(PAGE.read_text("utf-8"), "\n\n".join(part.strip("\n") for part in _parts(rows, runs)) + "\n")
    PAGE.write_text(text, "utf-8")
    draw_all(text, PAGE.parent / "results")
    return list(_missed(rows))


def _of(rows: Sequence[Figure], *kinds: str) -> list[Figure]:
    return [row for row in rows if row["kind"] in kinds]


def _parts(rows: Sequence[Figure], runs: int) -> Iterator[str]:
    yield HEAD.format(command=COMMAND, runs=runs, many=MANY)
    kinds = {SIZES: ("sizes",), RECORDS: ("records",), PARTS: ("parts",), REST: ("epsilon", "peers", "lambda"),
             WEIGHING: ("weighing",)}  # fmt: skip
    for words, asked in kinds.items():
        yield words if all(_of(rows, kind) for kind in asked) else words.splitlines()[0]
        if all(_of(rows, kind) for kind in asked):
            yield from _tables(_of(rows, *asked))
    yield FIGURES


def _tables(rows: Sequence[Figure]) -> Iterator[str]:
    """The tables of one chapter."""
    for kind, names in NAMED.items():
        if some := _of(rows, kind):
            yield table([*names, *WAYS], list(_ways(some, *names)))
    if some := _of(rows, "sizes"):
        header = ["set", "group", "a third of that to the group", "to all", "quiet", "to all / to the group", "printed"]
        yield table(header, [
            [name, str(group), brief(to_group / 3, 4), brief(to_all, 4), brief(quiet, 4), brief(to_all / to_group, 2),
             "" if printed is None else brief(printed, 2)]
            for (name, group), (to_group, to_all, quiet, printed) in _spreads(some).items()
        ])  # fmt: skip
    if some := _of(rows, "lambda"):
        lines = [[str(row["epsilon"]), str(row["lambda"]), _cell(row)] for row in some]
        yield table(["epsilon", "lambda", "error"], lines)
    if some := _of(rows, "weighing"):
        yield table(["data", "liar", "epsilon", *SAYS, "weighted, everybody's", "refused"], [
            [*(str(row[key]) for key in ("data", "liar", "epsilon")),
             *(f"{_brief(row, key)} ({_brief(row, key + ', over runs')})"
               for key in (*(f"{way}, like its own" for way in SAYS), "weighted, everybody's")),
             f"{number(row, 'refused'):g}"]
            for row in some
        ])  # fmt: skip


def _spreads(rows: Sequence[Figure]) -> Mapping[tuple[str, int], tuple[float, float, float, float | None]]:
    """By set and group size: the spread over peers to the group, to all, and without noise; and the printed ratio."""
    spread = {(str(row["set"]), int(number(row, "group")), row["way"]): row for row in rows}
    found: dict[tuple[str, int], tuple[float, float, float, float | None]] = {}
    for name, group in dict.fromkeys((name, group) for name, group, _ in spread):
        there, to_all = PRINTED_SPREADS[name].get(group), spread[name, group, "to all"]
        told = number(spread[name, group, "to the group"], "over_peers"), number(to_all, "over_peers")
        found[name, group] = (*told, number(to_all, "quiet"), there and there[1] / there[0])
    return found


def _ways(rows: Sequence[Figure], *keys: str) -> Iterator[list[str]]:
    for at in range(0, len(rows), len(WAYS)):
        yield [*(str(rows[at][key]) for key in keys), *map(_cell, rows[at : at + len(WAYS)])]


def _cell(row: Figure) -> str:
    peers = f" / {_brief(row, 'over_peers')}" if row.get("over_peers") else ""
    return f"{_brief(row, 'error')} ({_brief(row, 'over_runs')}{peers})"


def _brief(row: Figure, key: str) -> str:
    return brief(number(row, key), 4)


def _missed(rows: Sequence[Figure]) -> Iterator[str]:
    for (name, group), (to_group, to_all, quiet, _printed) in _spreads(_of(rows, "sizes")).items():
        if (to_all * 3 < to_group) != (group in THIRD[name]):
            yield f"{name}, groups of {group}: the spread over peers to all is {to_all}, to the group {to_group}"
        if group not in THIRD[name] and quiet * 3 < to_group:
            yield f"{name}, groups of {group}: without noise the spread over peers is under a third"
    error = {(row["records"], row["epsilon"], row["way"]): number(row, "error") for row in _of(rows, "records")}
    for (records, epsilon, way), found in error.items():
        local = error[records, epsilon, "local"]
        if way == "published alone" and found < local - 0.001:
            yield f"{records} records at epsilon {epsilon}: the published model is better than a local one"
        if way == "to all" and epsilon != "4" and found < local - 0.001:
            yield f"{records} records at epsilon {epsilon}: the ensemble is better than a local model"
    found_by = {(row["data"], row["liar"], row["epsilon"]): row for row in _of(rows, "weighing")}
    for (data, liar, epsilon), row in found_by.items():
        own = number(row, "weighted, like its own")
        if data != "even" and own >= number(row, "unweighted, like its own"):
            yield f"{data}, {epsilon}: weights do not help"
        honest = found_by["even", "", epsilon]
        cost = number(row, "weighted, everybody's") - number(honest, "weighted, everybody's")
        if liar and cost > 0.01:
            yield f"{liar}, {epsilon}: it costs the others {cost:.4f}"
        if (number(row, "refused") == 2) != (liar == "times 100"):
            yield f"{liar}, {epsilon}: {row['refused']} refused"
