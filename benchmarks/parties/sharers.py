"""Figure 4 of PFDS (Fioretto and Van Hentenryck 2019): error by how many of a hundred agents share.

    python -m benchmarks.parties.sharers --data FOLDER [--folds 3] [--scored 1]

Logistic regression and SVM on the census, linear regression on news: sets, agents, folds and final models of
`benchmarks.parties.pfds`. Of agents in a drawn order the first so many share, and those after them do not. `voted`:
trees that are `repaired`, whose rows the sharers' trees label by a majority. `own`: each tree labels its own rows,
which the paper calls PFDS(s). `private models`: the sharers' own, by objective perturbation or the functional
mechanism. `marginals`: the sharers' records in tables that two tellers add up. A final model learns from the drawn
rows and one agent's own records: of `--scored` agents the mean error. Writes its part of docs/rows-and-groups.md, and
its picture.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.data import data_folder
from benchmarks.figures import Figure, publish
from benchmarks.parties.marginal_sets import Asked
from benchmarks.parties.noise import Array, chance
from benchmarks.parties.pfds import agreed, answers, as_labels, coins_of, private_models, records_of, shared
from benchmarks.parties.pfds_models import TASKS, error_of, fitted
from benchmarks.parties.pfds_page import PAGE, SHARERS, page
from benchmarks.parties.pfds_sets import SETS, agents_of, columns_of, folds_of

EPSILONS = ("1", "0.1")
WAYS = {"voted": "repaired PFDS", "own": "own tree alone", "private models": "private models", "marginals": "marginals"}
LEVELS = {"own records": "own records alone", "all rows": "all rows, no privacy"}


def measured(asked: Asked, folds: int, scored: int) -> Iterator[Figure]:
    """All rows of one set."""
    data = asked.data
    tasks = TASKS[2:] if data.regression else TASKS[:2]
    columns = columns_of(data.attributes, data.places)
    labels = data.labels if data.regression else data.labels * 2 - 1
    for fold, (train, test) in enumerate(folds_of(data, folds)):
        agents = [held for held in agents_of(data, train, fold) if len(held)]
        agents = [agents[at] for at in chance(44, fold).permutation(len(agents))]
        about: Figure = {"set": data.name, "fold": fold}
        for task in tasks:
            own = [error_of(task, columns[test], labels[test], _fitted(task, columns, labels, held)) for held in agents]
            all_of = error_of(task, columns[test], labels[test], _fitted(task, columns, labels, train))
            for way, error in (("own records", float(np.mean(own))), ("all rows", all_of)):
                yield {**about, "task": task, "way": way, "epsilon": None, "sharers": None, "error": round(error, 5)}
        for epsilon in EPSILONS:
            private = {task: private_models(task, columns, labels, agents, epsilon) for task in tasks}
            for many, made in _by_sharers(asked, agents, epsilon, fold):
                some: Figure = {**about, "epsilon": epsilon, "sharers": many}
                for task in tasks:
                    thin, models = private[task]
                    error = error_of(task, thin[test], labels[test], models[:many])
                    yield {**some, "task": task, "way": "private models", "error": round(error, 5)}
                    for way, (rows, told) in made.items():
                        errors = [
                            error_of(task, columns[test], labels[test], fitted(
                                task, np.vstack([rows, columns[held]]), np.concatenate([told, labels[held]])
                            )[None])
                            for held in agents[:scored]
                        ]  # fmt: skip
                        yield {**some, "task": task, "way": way, "error": round(float(np.mean(errors)), 5)}


def _fitted(task: str, columns: Array, labels: Array, held: Array) -> Array:
    return fitted(task, columns[held], labels[held])[None]


def _by_sharers(
    asked: Asked, agents: Sequence[Array], epsilon: str, fold: int
) -> Iterator[tuple[int, dict[str, tuple[Array, Array]]]]:
    """Columns and labels of the rows of so many sharers, by way. Votes are counted on as more agents share."""
    data = asked.data
    plan, coins = agreed("repaired", data, epsilon), coins_of("figure 4", data.name, fold, epsilon)
    found = [shared("repaired", records_of(data, held), plan, coins) for held in agents]
    places = np.vstack([part for _, part in found])
    ends = np.cumsum([len(part) for _, part in found])
    made, own = columns_of(data.attributes, places), np.concatenate([answers(tree, part) for tree, part in found])
    votes, counted = np.zeros((len(places), data.kinds), dtype=int), 0
    for sharers in SHARERS:
        many = min(sharers, len(agents))
        for tree, _ in found[counted:many]:
            votes[np.arange(len(places)), answers(tree, places)] += 1
        counted, end = many, int(ends[many - 1])
        voted = as_labels(data, votes[:end].argmax(axis=1), fold)
        tables = asked.rows(np.concatenate(agents[:many]), epsilon, fold)
        yield sharers, {"voted": (made[:end], voted), "own": (made[:end], as_labels(data, own[:end], fold)),
                        "marginals": tables}  # fmt: skip


def picture(rows: Sequence[Figure]) -> None:
    """The figure, at epsilon 1."""
    from benchmarks.paper.plots import Line, Panel, draw  # needs matplotlib, which measuring does not

    def line(name: str, way: str, some: Sequence[Figure], level: bool) -> Line:
        found: dict[float, list[float]] = {}
        for row in some:
            if row["way"] == way and row["epsilon"] in (None, "1"):
                found.setdefault(float(row["sharers"] or 0), []).append(float(str(row["error"])))
        if level:
            return Line(name, level=float(np.mean(found[0])))
        return Line(name, [(at, float(np.mean(errors)), float(np.std(errors, ddof=1) / len(errors) ** 0.5))
                           for at, errors in found.items()])  # fmt: skip

    panels = []
    for name, task in (("Census", "logistic"), ("Census", "svm"), ("News", "linear")):
        some = [row for row in rows if row["set"] == name and row["task"] == task]
        lines = [line(words, way, some, way in LEVELS) for way, words in {**WAYS, **LEVELS}.items()]
        panels.append(Panel(f"{name}, {task}", "agents that share", "error", lines, ticks=SHARERS))
    draw(PAGE.parent / "results" / "pfds-figure-4.svg", [panels])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, keep, and write the page and its picture."""
    parser = argparse.ArgumentParser(description="Errors by how many agents share.")
    parser.add_argument("--data", type=data_folder, required=True)
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--scored", type=int, default=1)
    options = parser.parse_args(arguments)
    rows = list[Figure]()
    for name in ("Census", "News"):
        for row in measured(Asked.of(SETS[name](options.data)), options.folds, options.scored):
            rows.append(row)
            print(*row.values(), file=sys.stderr, flush=True)
    publish("rows-sharers", rows, {"folds": options.folds, "scored": options.scored})
    PAGE.write_text(page(PAGE.read_text("utf-8"), "sharers"), "utf-8")
    picture(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
