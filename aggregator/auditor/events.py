"""Rules that guess from an output which of two neighbours made it, learnt from runs of both.

Every rule is one reading and two sets of its cells: by Neyman and Pearson those whose ratio of the two neighbours is
farthest from 1, either way. Each half of the runs orders the cells for the other half, which says how far to go. Two
learners make readings of many places at once: an additive one over all cells, and a tree. All of it is only a guess.
The proof is counted on fresh runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from aggregator.auditor.claim import EventCounts, Floats, PrivacyClaim, excess, forecast
from aggregator.auditor.table import OutputTable, Trait, all_readings, cells_of, edges_of

Rows = NDArray[np.bool_]
Known = tuple[Trait, Floats, NDArray[np.int64]]
"""A reading, its edges, and the cell of each run."""
_LEARNED_FROM, _WORTH_LEARNING = 20_000, 400
_ADDED, _FINEST, _SMOOTH = 96, 64, 20
_AHEAD = 100  # a forecast is for at most so many times the runs it is made from
_FEW, _SHORT = 12, 20  # outputs that an event may list, and characters of each
_CLEARLY = 1.2  # a rule that promises so much more than the claim need not be the best, and may be simple


@frozen(eq=False)
class OutputEvent:
    """A set of outputs for each neighbour, said to be likelier for that one: a reading that lies in these cells."""

    reading: Trait
    edges: Floats
    chosen: tuple[frozenset[int], frozenset[int]]
    """The cells where the first neighbour is guessed, and those where the second is."""
    texts: dict[float, str]
    forecast: float
    """The lower bound of epsilon that is hoped for; 0 for none."""
    excess: float
    """By how many standard errors the best rule so far exceeded the claim, less those of the best of many by chance."""

    def counted(self, outputs: OutputTable, first: Rows) -> EventCounts:
        """How many guesses are right and wrong."""
        cells = cells_of(self.reading.column(outputs), self.edges)
        former, latter = (np.isin(cells, list(chosen)) for chosen in self.chosen)
        right, wrong = (former & first) | (latter & ~first), (former & ~first) | (latter & first)
        return EventCounts(int(right.sum()), int(wrong.sum()), len(outputs), sum(map(bool, self.chosen)))

    def words(self) -> str:
        """The event as a phrase."""
        told = [" or ".join(self._ranges(chosen)) for chosen in self.chosen]
        named = [f"{ranges} (the {name})" for ranges, name in zip(told, ("first", "second"), strict=True) if ranges]
        return f"{self.reading.words} {', '.join(named)}"

    def told(self, seen: OutputTable) -> str:
        """The event by the whole outputs that it guesses from, where those seen are few and short; else its words."""
        codes, rows = np.unique(seen.whole, return_index=True)
        if len(codes) > _FEW:
            return self.words()
        outputs = [seen.told.get(code, "") for code in codes]
        if not all(0 < len(output) <= _SHORT for output in outputs):
            return self.words()
        cells = cells_of(self.reading.column(seen), self.edges)[rows]
        lists = [
            sorted(output for output, cell in zip(outputs, cells, strict=True) if cell in side) for side in self.chosen
        ]
        both = zip(lists, ("first", "second"), strict=True)
        named = [f"{' or '.join(side)} (the {name})" for side, name in both if side]
        return f"the output is {', '.join(named)}" if named else self.words()

    def source(self) -> str:
        """The guess, 0 or 1 or None, as a Python expression over `y` and `v`, with the functions of `readings`."""
        guesses = {cell: guess for guess, chosen in enumerate(self.chosen) for cell in sorted(chosen)}
        return f"{guesses!r}.get(cell({self.reading.source}, {_list(self.edges)}))"

    def _ranges(self, chosen: frozenset[int]) -> Iterator[str]:
        last = len(self.edges)
        numbers = enumerate(sorted(chosen - {last + 1}))
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
        if last + 1 in chosen:
            yield "is no number"


def _list(numbers: Floats) -> str:
    return repr([float(number) for number in numbers]).replace("inf", "math.inf")


def learn(outputs: OutputTable, first: Rows, tested: int, claim: PrivacyClaim) -> OutputEvent | None:
    """The most promising rule, judged by runs of both neighbours; the simplest of those that clearly refute.

    `tested` is the number of fresh runs on which it will be counted.
    """
    even = np.arange(len(outputs)) % 2 == 0
    readings = all_readings(outputs.at(even), first[even])
    columns = [(reading, reading.column(outputs)) for reading in readings]
    cut = [(reading, edges_of(column, first), column) for reading, column in columns if _varies(column)]
    known = [(reading, edges, cells_of(column, edges)) for reading, edges, column in cut]
    guessed = [_guess(part, part[0].names(outputs), first, tested, claim) for part in known]
    found = [event for event in guessed if event is not None]
    if len(outputs) >= _WORTH_LEARNING and known:
        promised = {event.reading.source: event.forecast for event in found}
        known.sort(key=lambda part: (not part[0].source.startswith("at("), -promised.get(part[0].source, -np.inf)))
        for reading in _learned(known[:_ADDED], outputs, first, even):
            # Its scores were fitted to one half, so the other half alone orders and judges them.
            column = reading.column(outputs.at(~even))
            edges = edges_of(column, first[~even])
            event = _guess((reading, edges, cells_of(column, edges)), {}, first[~even], tested, claim)
            found += [event] if event is not None else []
    if not found:
        return None
    most = max(event.excess for event in found)
    clear = [event for event in found if event.forecast > _CLEARLY * claim.epsilon]
    if clear:
        best = min(clear, key=lambda event: (event.reading.steps, -round(event.forecast, 2), event.reading.words))
    else:
        best = max(found, key=lambda event: (event.forecast, event.excess))
    return evolve(best, excess=most)


def _varies(column: Floats) -> bool:
    real = column[~np.isnan(column)]
    return len(real) > 0 and (len(real) < len(column) or bool(real.min() < real.max()))


def _guess(part: Known, texts: dict[float, str], first: Rows, tested: int, claim: PrivacyClaim) -> OutputEvent | None:
    """The best rule of one reading: of both directions or of one, by ratios of several shapes."""
    reading, edges, cells = part
    many, half = len(edges) + 2, np.arange(len(cells)) % 2
    counted = np.bincount(cells + many * (first + 2 * half), minlength=4 * many).reshape(2, 2, many).astype(float)
    judging = counted[::-1].swapaxes(0, 1).reshape(2, 2 * many)
    times = min(tested / max(len(cells), 1), _AHEAD)
    chanced = times / (1 + np.sqrt(times) / 6) ** 2  # the best of many is worth a standard error less
    best, most, chosen = 0.0, -np.inf, [frozenset[int](), frozenset[int]()]
    for shape in (_rough, _rising, _straight)[: 3 if len(edges) >= _SMOOTH else 2]:
        ordering = np.concatenate([shape(of, edges) for of in counted])
        whole = shape(counted.sum(axis=0), edges)
        for sides in ((1, -1), (1,), (-1,)):
            used = np.flatnonzero((judging.sum(axis=0) > 0) & np.isin(np.sign(ordering), sides))
            used = used[np.argsort(-abs(ordering[used]), kind="stable")]
            if not len(used):
                continue
            guess = (ordering[used] > 0).astype(int)
            right, wrong = (np.cumsum(judging[row, used]) for row in (guess, 1 - guess))
            if shape is _straight:  # its line says how far to go, and the other half of the runs what that is worth
                inside, share = judging[:, used].sum(axis=0), 1 / (1 + np.exp(-abs(ordering[used])))
                said = np.cumsum(inside * share), np.cumsum(inside * (1 - share))
                top = int(np.argmax(forecast(*said, len(cells), times, len(sides), claim.delta)))
                hope = float(forecast(right, wrong, len(cells), times, len(sides), claim.delta)[top])
            else:
                hoped = forecast(right, wrong, len(cells), chanced, len(sides), claim.delta)
                top = int(np.argmax(hoped))
                hope = float(hoped[top])
            luck = np.sqrt(2 * np.log(len(used)))  # standard errors that the best of so many is above by chance
            over = excess(right, wrong, len(cells), len(sides), claim) - luck
            better, top = (hope > best, top) if max(hope, best) > 0 else (over.max() > most, int(over.argmax()))
            most = max(most, float(over.max()))
            if better:
                best, bar = max(hope, best), abs(ordering[used[top]])
                both = (np.flatnonzero(sign * whole >= bar).tolist() if sign in sides else () for sign in (1, -1))
                chosen = [frozenset(cells_of_side) for cells_of_side in both]
    return OutputEvent(reading, edges, (chosen[0], chosen[1]), texts, best, most) if any(chosen) else None


def _rough(counts: Floats, edges: Floats) -> Floats:
    """The logarithms of the ratios themselves; `counts` are those of the second neighbour, and of the first."""
    return np.asarray(np.log((counts[1] + 0.5) / (counts[0] + 0.5)), float)


def _rising(counts: Floats, edges: Floats) -> Floats:
    """Ratios that only rise from cell to cell, or only fall: of few runs they are less rough."""
    from sklearn.isotonic import isotonic_regression

    found, weights = _rough(counts, edges), counts.sum(axis=0) + 0.01
    places = np.arange(len(found) - 1)  # the last cell is no number
    slope = np.sum(weights[:-1] * found[:-1] * (places - np.average(places, weights=weights[:-1])))
    found[:-1] = isotonic_regression(found[:-1], sample_weight=weights[:-1], increasing=bool(slope > 0))
    return found


def _straight(counts: Floats, edges: Floats) -> Floats:
    """Ratios on a line over the cells' middles, as Gaussian noise makes them."""
    found, weights = _rough(counts, edges), counts.sum(axis=0) + 0.01
    with np.errstate(invalid="ignore", over="ignore"):
        middles = np.concatenate([edges[:1], (edges[1:] + edges[:-1]) / 2, edges[-1:]])
    used = np.isfinite(middles)
    line = np.polynomial.Polynomial.fit(middles[used], found[:-1][used], 1, w=np.sqrt(weights[:-1][used]))
    found[:-1] = np.where(used, line(np.where(used, middles, 0.0)), found[:-1])
    return found


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
