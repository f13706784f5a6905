"""Events that may tell two neighbours apart, learnt from runs of both.

Every event is one reading in a union of cells: by Neyman and Pearson the cells whose ratio of the two neighbours is
largest. One half of the runs orders the cells, and the other half says how many to take. Two learners make readings
of many places at once: an additive one over all cells, and a tree. All of it is only a guess. The proof is counted on
fresh runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from aggregator.auditor.claim import EventCounts, Floats, lower_epsilons
from aggregator.auditor.table import OutputTable, Trait, all_readings, cells_of, edges_of

Rows = NDArray[np.bool_]
MOST = 6
"""How many events of one pair are tried on fresh runs."""
_LEARNED_FROM, _WORTH_LEARNING = 20_000, 400
_ADDED, _FINEST = 96, 64


@frozen(eq=False)
class OutputEvent:
    """A set of outputs that is said to be likelier for one neighbour: a reading that lies in one of these cells."""

    reading: Trait
    edges: Floats
    chosen: frozenset[int]
    likelier: int
    """0 where the first neighbour makes it more often, 1 where the second does."""
    texts: dict[float, str]
    forecast: float
    """The lower bound of epsilon that is hoped for."""

    def counted(self, outputs: OutputTable, first: Rows) -> EventCounts:
        """How many runs of each neighbour fall into it."""
        inside = np.isin(cells_of(self.reading.column(outputs), self.edges), list(self.chosen))
        ones, twos = int((inside & first).sum()), int((inside & ~first).sum())
        return EventCounts(twos, ones, len(outputs)) if self.likelier else EventCounts(ones, twos, len(outputs))

    def words(self) -> str:
        """The event as a phrase."""
        return f"{self.reading.words} {' or '.join(self._ranges())}"

    def source(self) -> str:
        """The event as a Python expression over `y` and `v`, with the functions of `readings`."""
        return f"cell({self.reading.source}, {_list(self.edges)}) in {set(self.chosen)!r}"

    def _ranges(self) -> Iterator[str]:
        last = len(self.edges)
        numbers = enumerate(sorted(self.chosen - {last + 1}))
        for _, run in groupby(numbers, key=lambda pair: pair[1] - pair[0]):
            cells = [cell for _, cell in run]
            low = float(self.edges[cells[0] - 1]) if cells[0] else None
            high = float(self.edges[cells[-1]]) if cells[-1] < last else None
            if low is not None and low in self.texts:
                names = [self.texts.get(float(self.edges[cell - 1]), "?") for cell in cells]
                yield f"is {', '.join(names)}"
            elif low is None:
                yield f"is below {high!r}" if high is not None else "is any number"
            else:
                yield f"is at least {low!r}" + (f" and below {high!r}" if high is not None else "")
        if last + 1 in self.chosen:
            yield "is no number"


def _list(numbers: Floats) -> str:
    return repr([float(number) for number in numbers]).replace("inf", "math.inf")


def learn(outputs: OutputTable, first: Rows, tested: int, delta: float, error: float) -> list[OutputEvent]:
    """The most promising events, best first, judged by runs of both neighbours; at most two of one reading.

    `tested` is the number of fresh runs on which they will be counted, and `error` the one that each may spend there.
    """
    ordering = np.arange(len(outputs)) % 2 == 0
    readings = all_readings(outputs.at(ordering), first[ordering])
    columns = [(reading, reading.column(outputs)) for reading in readings]
    cut = [(reading, edges_of(column[ordering], first[ordering]), column) for reading, column in columns]
    known = [(reading, edges, cells_of(column, edges)) for reading, edges, column in cut if _varies(column)]
    found = [
        event
        for reading, edges, cells in known
        for event in _unions(reading, edges, cells, reading.names(outputs), first, ordering, tested, delta, error)
    ]
    found.sort(key=lambda event: -event.forecast)
    if len(outputs) >= _WORTH_LEARNING and known:
        ranked = {event.reading.source: rank for rank, event in reversed(list(enumerate(found)))}
        known.sort(key=lambda part: (not part[0].source.startswith("at("), ranked.get(part[0].source, len(found))))
        for reading in _learned(known[:_ADDED], outputs, first, ordering):
            column = reading.column(outputs)
            edges = edges_of(column[~ordering], first[~ordering])
            cells = cells_of(column, edges)
            # Their scores were fitted to the ordering half, so the other half orders them as well.
            found += _unions(reading, edges, cells, {}, first, ~ordering, tested, delta, error, same=True)
    found.sort(key=lambda event: (-round(event.forecast, 2), event.reading.steps, event.reading.words))
    return found[:MOST]


def _varies(column: Floats) -> bool:
    real = column[~np.isnan(column)]
    return len(real) > 0 and (len(real) < len(column) or bool(real.min() < real.max()))


def _unions(
    reading: Trait,
    edges: Floats,
    cells: NDArray[np.int64],
    texts: dict[float, str],
    first: Rows,
    ordering: Rows,
    tested: int,
    delta: float,
    error: float,
    same: bool = False,
) -> Iterator[OutputEvent]:
    """The best union of each direction."""
    many = len(edges) + 2
    judging = ordering if same else ~ordering
    runs = int(judging.sum())

    def counts(rows: Rows) -> Floats:
        return np.bincount(cells[rows], minlength=many).astype(float)

    ordered = [counts(ordering & first), counts(ordering & ~first)]
    judged = [counts(judging & first), counts(judging & ~first)]
    scale = tested / max(runs, 1)
    for likelier in (0, 1):
        ones, twos = ordered[likelier], ordered[1 - likelier]
        sequence = np.argsort(-(ones + 0.5) / (twos + 0.5), kind="stable")
        sequence = sequence[(ones + twos)[sequence] > 0]
        if not len(sequence):
            continue
        k, m = np.cumsum(judged[likelier][sequence]), np.cumsum(judged[1 - likelier][sequence])
        hoped = lower_epsilons(np.maximum(k - 0.5, 0) * scale, (m + 0.5) * scale, tested, delta, error)
        best = int(np.argmax(hoped))
        if hoped[best] > 0:
            chosen = frozenset(int(cell) for cell in sequence[: best + 1])
            yield OutputEvent(reading, edges, chosen, likelier, texts, float(hoped[best]))


Known = tuple[Trait, Floats, NDArray[np.int64]]


def _learned(known: Sequence[Known], outputs: OutputTable, first: Rows, ordering: Rows) -> Iterator[Trait]:
    rows = np.flatnonzero(ordering)[:_LEARNED_FROM]
    target = first[rows]
    if 0 < target.sum() < len(target):
        yield _additive(known, rows, target)
        yield _tree(known, outputs, rows, target)


def _additive(known: Sequence[Known], rows: NDArray[np.int64], target: Rows) -> Trait:
    """A weight for each cell of each reading, as logistic regression fits them: the ratio itself where places are
    independent."""
    from scipy.sparse import csr_matrix, hstack
    from sklearn.linear_model import LogisticRegression

    parts = []
    for _, edges, cells in known:
        mine = cells[rows]
        ones = np.ones(len(rows), np.float32)
        parts.append(csr_matrix((ones, (np.arange(len(rows)), mine)), shape=(len(rows), len(edges) + 2)))
    model = LogisticRegression(C=0.1, max_iter=60, tol=1e-3)
    model.fit(hstack(parts).tocsr(), target)
    ends = np.cumsum([len(edges) + 2 for _, edges, _ in known])[:-1]
    weights = [np.round(part, 4) for part in np.split(model.coef_[0], ends)]
    weighed = [(reading, edges, part) for (reading, edges, _), part in zip(known, weights, strict=True)]
    used = [term for term in weighed if abs(term[2]).max() > 1e-3]

    def column(it: OutputTable) -> Floats:
        total = np.zeros(len(it))
        for reading, edges, part in used:
            total = total + part[cells_of(reading.column(it), edges)]
        return np.round(total, 6)

    terms = ", ".join(f"{_list(part)}[cell({reading.source}, {_list(edges)})]" for reading, edges, part in used)
    return Trait("a score of all places", f"round(sum([{terms}]), 6)", column, 3)


def _tree(known: Sequence[Known], outputs: OutputTable, rows: NDArray[np.int64], target: Rows) -> Trait:
    """The leaf of a small tree over cells: what two places tell only together."""
    from sklearn.tree import DecisionTreeClassifier

    taken = known[:_FINEST]
    cells = np.stack([part[2][rows] for part in taken], axis=1)
    tree = DecisionTreeClassifier(max_leaf_nodes=24, min_samples_leaf=20, random_state=0).fit(cells, target).tree_

    def column(it: OutputTable) -> Floats:
        asked = np.stack([cells_of(reading.column(it), edges) for reading, edges, _ in taken], axis=1)
        return np.asarray(tree.apply(asked.astype(np.float32)), float)

    def told(node: int) -> str:
        if tree.children_left[node] < 0:
            return f"{node}.0"
        reading, edges, _ = taken[tree.feature[node]]
        question = f"cell({reading.source}, {_list(edges)}) <= {tree.threshold[node]!r}"
        return f"({told(tree.children_left[node])} if {question} else {told(tree.children_right[node])})"

    return Trait("the branch of a tree of questions", told(0).replace("np.float64", ""), column, 3)
