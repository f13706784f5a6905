"""docs/rows-and-groups.md from the rows that are kept, and the checks of what `docs/errata.md` says of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from textwrap import fill

import numpy as np

from benchmarks.figures import OUT, Figure
from benchmarks.paper.findings import Findings, number, table
from benchmarks.paper.sections import merged, section_of, table_beside
from benchmarks.parties.goals import brief

PAGE = Path(__file__).resolve().parents[2] / "docs" / "rows-and-groups.md"
COMMAND = "python -m benchmarks.parties.pfds --data FOLDER"
EPSILONS = ("1", "0.5", "0.1")
Printed = tuple[float, tuple[float, ...], tuple[float, ...], tuple[float, ...]]
PRINTED: Mapping[tuple[str, str], Printed] = {
    ("Census", "logistic"): (0.276, (0.232, 0.245, 0.293), (0.266, 0.301, 0.336), (0.212, 0.226, 0.246)),
    ("Census", "svm"): (0.283, (0.253, 0.262, 0.269), (0.267, 0.269, 0.268), (0.209, 0.224, 0.239)),
    ("Diabetes", "logistic"): (0.396, (0.334, 0.349, 0.389), (0.380, 0.411, 0.434), (0.279, 0.294, 0.345)),
    ("Diabetes", "svm"): (0.423, (0.441, 0.449, 0.456), (0.397, 0.431, 0.434), (0.311, 0.322, 0.346)),
    ("Bikes", "linear"): (0.377, (0.270, 0.281, 0.296), (0.206, 0.225, 0.220), (0.127, 0.154, 0.157)),
    ("News", "linear"): (0.194, (0.176, 0.178, 0.185), (0.121, 0.172, 0.175), (0.079, 0.095, 0.096)),
}
"""Table 2: NP-Agt, DP-Pred, PFDS(s) and PFDS, at each epsilon."""

HEAD = """\
<!-- Written by `python -m benchmarks.parties.pfds --data FOLDER`; do not edit it by hand. -->

# Shared rows and groups

Two works on parties with many records, measured again: PFDS, and [groups](#groups) of peers who average models.

## Shared rows: PFDS beside its repairs

Agents with a few hundred records each publish a private decision tree. Everybody draws rows from the trees that stand
for nobody. Fioretto and Van Hentenryck (2019) call this PFDS. This page repeats their table 2 and their figure 3, with
[their errors](errata.md#errata-of-fioretto-and-van-hentenryck-2019) corrected. Studies of
the protocol `trees` [run it](decisions/0052-trees.md).

**Columns.** *Paper* is what table 2 prints. `printed` is its arithmetic, yet text attributes branch two ways: as
printed the trees are too large. `repaired` is `anon.protocols.trees`: a record is *replaced*, which costs twice as much
as the paper's *left out*. `add-remove` is the same for a record left out. `mixed` draws each row's label by the mean
share of all trees, in place of a majority of their answers. *Private models* are the paper's rivals: objective
perturbation and the functional mechanism, one model an agent. Three lines that the paper lacks, or does not call so,
stand beside: the majority's label (for numbers the mean), an agent's own records, and one model of all rows.

**How.** Agents as in the paper: 100, 10, 100, 100. A row goes to an agent by the distance in one attribute. There are
ten folds, as in the paper. A final model learns from all drawn rows and one agent's own records: of three agents the
mean error. In brackets: the standard deviation over folds. Errors of bikes and news are squared, with labels from -1 to
1: bikes from 0 to 1,000, and the logarithm of shares from 1 to a million. The paper does not say its scale.
"""

READING = """\
**Reading it.** Where attributes tell something of the label, an agent's own records do better than the rows of all. The
majority of a hundred shallow trees says "no" to nearly everybody, and the lowest bucket of bikes to every hour. On news
all models are near the mean. The repairs keep the rows as many as the records, and the labels free of invention. They
do not make the rows useful for these models. The majority's line alone shows it, which the paper lacks.
"""


DIFFGEN = """\
### DiffGen

Figure 3 of the paper has DiffGen (Mohammed and others 2011) too; table 2 has not. Here it runs with taxonomies that we
declared: two levels for six of the texts, and values alone for `race` and `sex`. Same agent, distance and clock as in
figure 3. A leaf is a combination of values, and most leaves are empty. Each has noise, which is cut at 0. So rows are
too many, if not by orders of magnitude more than those of the printed tree without its optimisation (`clipped` above).
The distance is no smaller. Our clock finds no tenfold time, as the paper's does.

`python -m benchmarks.parties.diffgen --data FOLDER`: means of ten draws.
"""
WAYS = ("marginals", "trees")
BESIDE = """\
### Marginals beside trees

The same census records of a hundred agents, 12 attributes, in two studies that the product runs: `marginals`, whose
tables two tellers add up over all records, and `trees`, whose agents trust nobody. Both hide a record replaced, the
first at delta 1e-6. The same final models learn from the drawn rows alone, or also from one agent's own records. In
brackets: the standard deviation over trials. Always the commoner label: .236.

`python -m benchmarks.parties.rows --data FOLDER`: error on the test file.
"""
BETTER = """\
With a hundred agents `marginals` is far below `trees` in every cell. It adds noise once for all records, and knows of
every pair. The trees add it for each agent, so that most of a hundred shallow trees give nearly every row the commoner
label. Table 2 above has it alike, with other attributes: there PFDS is repaired at .223 to .226 on the census.
"""
HOW_MANY = """\
### Figure 4: how many share

As in the paper: logistic regression and SVM on the census, linear regression on news. Of a hundred agents so many
share, and the others do not. Agents, folds and final models are those of table 2: each learns from the drawn rows and
one agent's own records. `repaired` is labelled by the sharers' trees, and *own tree* is what the paper calls PFDS(s).
*Private models* are objective perturbation and the functional mechanism, one model a sharer. The paper does not say its
epsilon; the picture is at 1. Dotted lines are an agent alone, and one model of all rows.

`python -m benchmarks.parties.sharers --data FOLDER`: error, in brackets its deviation over three folds.

![Figure 4: error by how many share](results/pfds-figure-4.svg)
"""
SHARERS = (5, 10, 25, 50, 100)
READING_SHARERS = """\
In the paper errors of PFDS and of private models fall until half of the agents share. Here those of private models
fall on the whole, and those of `marginals`: on the census it is below PFDS from 10 sharers at epsilon 1, and from 50 at
.1. Those of PFDS rise there. Most trees say the commoner label, and the more rows have it, the less the own records
count in the final model. On news nothing is better than the mean, which has .018. `marginals` is worse: its noise is in
tables of 59 features.
"""
ON_SETS = """\
### Marginals on the other sets

Agents, folds and final models of table 2. `marginals` adds up all agents' records by two tellers, with delta 1e-6. It
asks for fewer places than trees have: a number has at most eight, on news four. A number that is predicted is a feature
of ten buckets, and the label is true above 150 bikes, or 1,400 shares. Trees are `repaired`, and each hides a record by
itself. The final model learns from the drawn rows, or also from the own records of one agent: of three the mean.

`python -m benchmarks.parties.marginal_sets --data FOLDER`: error, in brackets its deviation over folds.
"""
READING_SETS = """\
On bikes the rows of `marginals` train far better than those of trees, than the paper's, and from epsilon .5 on than an
agent's own records. The 1,036 people of diabetes are asked single tables, and are enough at epsilon 1 alone: below it
the rows alone tell no more than the commoner label. News hardly tells its shares: all rows err little less than the
mean does. Trees say the mean there, and noise in tables of 59 features puts the drawn rows above it. Declared pairs,
which are fewer tables, are nearer at epsilon .1. So `marginals` is below trees on bikes, and on diabetes at epsilon 1.
"""
GROUPS = """\
## Groups

Asplund and Frøystad (2015): ten peers with 300 records each fit a model of their own, and publish the mean with noise.
*Literal* is the thesis's arithmetic. It is **not private**: its noise is for another sum, for shorter records and for
another norm ([errata](errata.md)). *Right* divides each record by its own norm. Its noise keeps the promise for a
record replaced: pure, or Gaussian at delta 1e-6. The ends of columns are the data's, as in the thesis; a study would
declare them. Lambda of the right columns is the best on other records, which is not charged. An ensemble is the mean of
two probabilities: of the peer's own model, and of the published one.

*Constant*: the peers share their constant alone, one number. They do so where noise is longer than any records can push
weights of zero. Epsilon, the number of records and that of columns decide it, so it costs nothing. Here that is so for
pure noise on Adult at epsilon .1, and there the published model says no to everybody. Without the rule it errs in more
than the majority does. At a large lambda both weights and noise go as 1 / lambda, so that no lambda helps. Without
noise, the weights times lambda say -.125 of a row, with a deviation of .016 over rows: no to everybody. Noise has a
deviation of .074 on a row, and turns some. A ball to cut weights to would change no sign.

`python -m benchmarks.parties.groups --data FOLDER`: error, in brackets its deviation over ten runs, and that of peers
within a run. *By descent* ends as early as the thesis says. Printed local errors on Spambase and SUSY lie between it
and the exact minimum. On Adult the literal figures are within
.003 of the printed, but for the central model, which is better by .008.
"""


def found() -> Findings:
    """All rows that are kept."""
    names = {
        "table": "pfds", "figure3": "pfds-figure3", "large": "pfds-large", "leaves": "pfds-leaves",
        "groups": "groups", "bounds": "groups-bounds", "beside": "rows-beside", "sets": "rows-sets",
        "sharers": "rows-sharers", "diffgen": "pfds-diffgen",
    }  # fmt: skip
    files = {figure: OUT / f"{name}.json" for figure, name in names.items()}
    return Findings({
        figure: json.loads(file.read_text("utf-8"))["rows"] for figure, file in files.items() if file.exists()
    })  # fmt: skip


def _mean(rows: list[Figure], key: str = "error") -> float:
    return float(np.mean([number(row, key) for row in rows]))


def _cell(rows: list[Figure]) -> str:
    if not rows:
        return ""
    errors = [number(row, "error") for row in rows]
    spread = f" ({brief(float(np.std(errors, ddof=1)), 3)})" if len(errors) > 1 else ""
    return brief(float(np.mean(errors)), 3) + spread


def page(old: str, *figures: str) -> str:
    """The page, with the parts of these figures written anew. All else stays as the old page has it."""
    kept = found()
    return merged(old, _joined(_parts(Findings({name: kept.rows(name) for name in figures}), old)))


def _joined(parts: Iterator[str]) -> str:
    filled = (part if "\n" in part else fill(part, 120) for part in parts)
    return "\n\n".join(part.strip("\n") for part in filled) + "\n"


def _parts(kept: Findings, old: str) -> Iterator[str]:
    """Every heading, and what stands below it where there are rows."""
    yield from _part(kept, "table", HEAD, lambda: _table_two(kept, old))
    yield from _part(kept, "leaves", "### Leaves as printed", lambda: _leaves(kept))
    yield from _part(kept, "figure3", "### Figure 3: sizes, distances and time", lambda: _fidelity(kept))
    yield from _part(kept, "diffgen", DIFFGEN, lambda: _diffgen(kept))
    yield from _part(kept, "beside", BESIDE, lambda: _beside(kept))
    yield from _part(kept, "sets", ON_SETS, lambda: _sets(kept))
    yield from _part(kept, "sharers", HOW_MANY, lambda: _sharers(kept))
    yield from _part(kept, "groups", GROUPS, lambda: _thesis(kept))


def _part(kept: Findings, figure: str, head: str, told: Callable[[], Iterator[str]]) -> Iterator[str]:
    if kept.rows(figure):
        yield head
        yield from told()
    else:
        lines = head.splitlines()
        yield "\n".join(lines[: 1 + max(at for at, line in enumerate(lines) if line.startswith("#"))])


def _table_two(kept: Findings, old: str) -> Iterator[str]:
    yield f"`{COMMAND}`: error, in brackets its deviation over ten folds."
    before = section_of(old, next(line for line in HEAD.splitlines() if line.startswith("## ")))
    header = ["set", "model", "epsilon", "paper", "`printed`", "`repaired`", "`repaired`, `mixed`", "`add-remove`",
              "paper's DP-Pred", "private models", "majority", "paper's NP-Agt", "own records", "all rows"]  # fmt: skip
    yield table_beside(before, header, list(_table(kept, "voted")), 3)
    yield "With each agent's own tree as the only judge of its rows, which the paper calls PFDS(s):"
    header = ["set", "model", "epsilon", "paper", "`printed`", "`repaired`", "`add-remove`"]
    yield table_beside(before, header, list(_alone(kept)), 3)
    yield READING


def _thesis(kept: Findings) -> Iterator[str]:
    yield table(["set", "noise", "model", "epsilon", "lambda", "printed", "error", "peers"], list(_groups(kept)))
    yield "The true epsilon of the literal noise, by a search over single records:"
    yield table(["set", "lambda", "it says", "it is at least"], [
        [str(row["set"]), *(f"{number(row, key):g}" for key in ("lambda", "says", "epsilon_at_least"))]
        for row in kept.rows("bounds")
    ])  # fmt: skip


def _groups(kept: Findings) -> Iterator[list[str]]:
    for row in kept.rows("groups"):
        spread = f" ({brief(number(row, 'over_runs'))})" if row.get("over_runs") is not None else ""
        peers = brief(number(row, "over_peers")) if row.get("over_peers") else ""
        yield [str(row["set"]), str(row["column"]), str(row["model"]), str(row["epsilon"] or ""),
               "" if row["lambda"] is None else f"{number(row, 'lambda'):.3g}",
               "" if row["printed"] is None else brief(number(row, "printed"), 3),
               brief(number(row, "error")) + spread, peers]  # fmt: skip


def _measured(kept: Findings) -> Iterator[tuple[tuple[str, str], Printed]]:
    return ((cell, told) for cell, told in PRINTED.items() if kept.rows("table", set=cell[0]))


def _table(kept: Findings, labels: str) -> Iterator[list[str]]:
    for (name, task), (own, private, _, shared) in _measured(kept):
        for at, epsilon in enumerate(EPSILONS):
            same = {"set": name, "task": task}

            def cell(way: str, by: str | None, cost: str | None, same: dict[str, str] = same) -> str:
                return _cell(kept.rows("table", way=way, labels=by, epsilon=cost, **same))

            yield [name, task, epsilon, brief(shared[at], 3), cell("printed", labels, epsilon),
                   cell("repaired", labels, epsilon), cell("repaired", "mixed", epsilon),
                   cell("add-remove", labels, epsilon), brief(private[at], 3), cell("private models", None, epsilon),
                   cell("majority", None, None), brief(own, 3), cell("own data", None, None),
                   cell("all rows", None, None)]  # fmt: skip


def _alone(kept: Findings) -> Iterator[list[str]]:
    for (name, task), (_, _, alone, _) in _measured(kept):
        for at, epsilon in enumerate(EPSILONS):
            cells = [_cell(kept.rows("table", way=way, labels="own", epsilon=epsilon, set=name, task=task))
                     for way in ("printed", "repaired", "add-remove")]  # fmt: skip
            yield [name, task, epsilon, brief(alone[at], 3), *cells]


def _leaves(kept: Findings) -> Iterator[str]:
    yield (
        "As printed, a tree branches into every value of a text. The mean number of leaves is known without records. "
        "Each leaf has a noisy count for each of two classes. Where nobody is, their sum, cut at 0, has mean 12 at "
        "epsilon 1. So one agent of some 440 records would publish so many rows, half of each class:"
    )
    yield table(["set", "leaves", "rows of one agent at epsilon 1"], [
        [str(row["set"]), f"{int(number(row, 'leaves')):,}", f"{int(number(row, 'rows')):,}"]
        for row in kept.rows("leaves")
    ])  # fmt: skip


def _fidelity(kept: Findings) -> Iterator[str]:
    yield (
        "One agent of 440 census records; `depth` counts the root, as in the paper. `clipped`: the sum of the leaves' "
        "sizes that are above 0. `rows`: after the counts were made consistent, with its standard error. The "
        "distance is Wasserstein's, in cells, of the records from the rows: the mean over 50 random partitions. "
        "Time is that of growing the tree, making it consistent, drawing and comparing, on one core."
    )
    yield table(["epsilon", "depth", "way", "leaves", "clipped", "rows", "distance", "ms"], [
        [str(row["epsilon"]), str(row["depth"]), f"`{row['way']}`", str(row["leaves"]),
         f"{int(number(row, 'clipped')):,}", f"{number(row, 'size'):g} ({number(row, 'size_se'):g})",
         brief(number(row, "wasserstein"), 3), str(row["cpu_ms"])]
        for row in kept.rows("figure3") if int(number(row, "depth")) in (2, 4, 6, 8)
    ])  # fmt: skip
    for row in kept.rows("large"):
        yield (
            f"One agent with {int(number(row, 'records')):,} records: {number(row, 'cpu_s'):g} s of a core for its "
            f"tree and {int(number(row, 'rows')):,} rows, and {int(number(row, 'memory_mib')):,} MiB at most."
        )


def _diffgen(kept: Findings) -> Iterator[str]:
    yield table(["epsilon", "depth", "leaves", "rows", "distance", "ms"], [
        [str(row["epsilon"]), str(row["depth"]), f"{int(number(row, 'leaves')):,}", f"{int(number(row, 'size')):,}",
         brief(number(row, "wasserstein"), 3), str(row["cpu_ms"])]
        for row in kept.rows("diffgen")
    ])  # fmt: skip


def _beside(kept: Findings) -> Iterator[str]:
    def cell(key: str, **asked: str | float) -> str:
        return _cell([{**row, "error": row[key]} for row in kept.rows("beside", part="rows", **asked)])

    both = [(way, key) for way in WAYS for key in ("error", "with_own")]

    yield table(["model", "epsilon", *(f"{way}{more}" for way in WAYS for more in ("", ", own records"))], [
        [task, f"{epsilon:g}",
         *(cell(key, way=way, epsilon=epsilon, task=task) for way, key in both)]
        for task in ("logistic", "svm") for epsilon in (1.0, 0.5, 0.1)
    ])  # fmt: skip
    yield BETTER


def _sharers(kept: Findings) -> Iterator[str]:
    ways = {"voted": "`repaired`", "own": "own tree", "private models": "private models", "marginals": "marginals"}
    yield table(["set", "model", "epsilon", "sharers", *ways.values()], [
        [name, task, epsilon, str(sharers), *(
            _cell(kept.rows("sharers", set=name, task=task, epsilon=epsilon, sharers=sharers, way=way)) for way in ways
        )]
        for name, task in (("Census", "logistic"), ("Census", "svm"), ("News", "linear"))
        for epsilon in ("1", "0.1") for sharers in SHARERS
    ])  # fmt: skip
    yield READING_SHARERS


def _sets(kept: Findings) -> Iterator[str]:
    def cell(key: str = "error", **asked: str) -> str:
        rows = kept.rows("sets", **asked)
        return _cell([{**row, "error": row[key]} for row in rows])

    shown = {"marginals": "error", "marginals, own records": "with_own", "declared pairs": "error",
             "trees, own records": "with_own", "trees, `mixed`, own records": "with_own"}  # fmt: skip
    ways = ("marginals", "marginals", "declared", "trees", "trees, mixed")
    lines = list[list[str]]()
    for (name, task), printed in PRINTED.items():
        for at, epsilon in enumerate(EPSILONS if kept.rows("sets", set=name) else ()):
            same = {"set": name, "task": task}
            found = [cell(key, way=way, epsilon=epsilon, **same) for way, key in zip(ways, shown.values(), strict=True)]
            ends = [cell(way=way, **same) for way in ("majority", "own records", "all rows")]
            folds = str(len(kept.rows("sets", way="majority", **same)))
            lines.append([name, task, epsilon, *found, brief(printed[3][at], 3), *ends, folds])
    header = ["set", "model", "epsilon", *shown, "paper's PFDS", "majority", "own records", "all rows", "folds"]
    yield table(header, lines)
    yield READING_SETS


def failed() -> list[str]:
    """The checks of the errata that do not hold."""
    kept, wrong = found(), []
    leaves = kept.rows("leaves", set="Census")
    if leaves and not (number(leaves[0], "leaves") > 100_000 and number(leaves[0], "rows") > 1_000_000):
        wrong.append("a printed tree of the census has more than 100,000 leaves and a million rows")
    for row in kept.rows("large"):
        if number(row, "cpu_s") > 30 or number(row, "memory_mib") > 2048:
            wrong.append("one agent with 50,000 records in 30 s and 2 GB")
    for epsilon, most in (("1", 0.05), ("0.1", 0.1)):
        for row in kept.rows("figure3", epsilon=epsilon, depth=8, way="repaired"):
            if abs(number(row, "size") - 440) > 440 * most:
                wrong.append(f"sizes at depth 8 and epsilon {epsilon} within {most:.0%}")
    for name, task in PRINTED:
        for epsilon in EPSILONS:
            same = {"set": name, "task": task, "epsilon": epsilon}
            pair = [kept.rows("table", way=way, labels="voted", **same) for way in ("repaired", "printed")]
            if all(pair) and _mean(pair[0]) > _mean(pair[1]):
                wrong.append(f"{name} {task} at {epsilon}: repaired is no worse than printed")
    return wrong
