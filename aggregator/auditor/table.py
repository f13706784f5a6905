"""Many outputs at once: what `readings` sees of one, in columns, each with its words and its lines of Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from aggregator.auditor import readings
from aggregator.auditor.claim import Floats

PLACES, PAIRED, FINE = 64, 12, 8
"""How many places are read alone, against each other, and for the grid of their doubles."""
_GRIDS = (10.0, 3.0, 2.0, 1.0, 2.0**-10, 2.0**-20, 2.0**-30)
_COLUMNS = ("length", "kind", "whole", "order")
_HUGE = 1e100  # numbers that large have no mean
_MOST_EDGES, _COMMON = 64, 0.01
_FEWEST_QUANTILES, _RUNS_OF_A_CELL = 24, 400


@frozen
class OutputTable:
    """OutputTable of many runs: the leaves (not a number beyond an output's end), and the numbers of their texts."""

    leaves: Floats
    length: Floats
    kind: Floats
    whole: Floats
    order: Floats
    texts: dict[float, str] = field(factory=dict, repr=False)
    """The texts among the leaves, by their numbers."""
    told: dict[float, str] = field(factory=dict, repr=False)
    """Types, whole outputs and orders, by their numbers."""

    @classmethod
    def of(cls, plains: Sequence[Any]) -> OutputTable:
        """The outputs, made plain before."""
        found = [readings.flat(plain) for plain in plains]
        length = np.array([len(row) for row in found], float)
        wide = min(int(length.max(initial=0)), readings.WIDEST)
        if length.size and length.min() == length.max():
            leaves = np.array(found, float)[:, :wide].reshape(len(found), wide)
        else:
            leaves = np.full((len(found), wide), np.nan)
            for row, values in enumerate(found):
                leaves[row, : min(len(values), wide)] = values[:wide]
        told: dict[float, str] = {}
        kind, whole, order = (_coded(map(tell, plains), told) for tell in (readings.kind, repr, readings.order))
        lists = [plain for plain in plains[:200] if isinstance(plain, list)]
        texts = {readings.code(leaf): leaf for plain in lists for leaf in plain if isinstance(leaf, str)}
        return cls(leaves, length, kind, whole, order, texts, told)

    def __len__(self) -> int:
        return len(self.length)

    def at(self, rows: NDArray[np.bool_]) -> OutputTable:
        """Some of the runs."""
        return evolve(self, **{name: getattr(self, name)[rows] for name in ("leaves", *_COLUMNS)})

    def and_more(self, more: OutputTable) -> OutputTable:
        """These runs and more of them."""
        wide = max(self.leaves.shape[1], more.leaves.shape[1])
        both = [
            np.pad(each.leaves, ((0, 0), (0, wide - each.leaves.shape[1])), constant_values=np.nan)
            for each in (self, more)
        ]
        joined = {name: np.concatenate([getattr(self, name), getattr(more, name)]) for name in _COLUMNS}
        texts, told = self.texts | more.texts, self.told | more.told
        return evolve(self, leaves=np.concatenate(both), texts=texts, told=told, **joined)


def _coded(words: Iterator[str], told: dict[float, str]) -> Floats:
    codes: dict[str, float] = {}
    column = np.array([codes[text] if text in codes else codes.setdefault(text, readings.code(text)) for text in words])
    if len(codes) <= 4 * _MOST_EDGES:
        told.update({number: text[:60] or "none" for text, number in codes.items()})
    return column.astype(float)


@frozen
class Trait:
    """One number of each output: its words, a Python expression over `y` and `v`, and the column."""

    words: str
    source: str
    column: Callable[[OutputTable], Floats] = field(repr=False)
    steps: int = 0
    """How hard it is to tell: readings with less are told first where both refute."""
    coded: bool = False
    """True if the number stands for one of `OutputTable.told`."""

    def names(self, outputs: OutputTable) -> dict[float, str]:
        """The texts that some of its numbers stand for."""
        return outputs.told if self.coded else outputs.texts if not self.steps else {}


def _at(outputs: OutputTable, place: int) -> Floats:
    return outputs.leaves[:, place] if place < outputs.leaves.shape[1] else np.full(len(outputs), np.nan)


def place_alone(number: int, alone: bool) -> Trait:
    """The leaf of one place."""
    return Trait("the output" if alone else f"value {number + 1}", f"at(v, {number})", lambda it: _at(it, number))


def lowest_bit(number: int) -> Trait:
    """The exponent of the lowest bit of one place: on which grid its double lies."""

    def column(outputs: OutputTable) -> Floats:
        values = _at(outputs, number)
        mantissa, exponent = np.frexp(np.where(np.isfinite(values), values, 0.0))
        whole = (mantissa * 2.0**53).astype(np.int64)
        with np.errstate(divide="ignore"):
            bit = np.log2((whole & -whole).astype(float)) + exponent - 53
        return np.where(whole == 0, np.nan, bit)

    return Trait(f"the exponent of the lowest bit of value {number + 1}", f"lowest_bit(at(v, {number}))", column, 1)


def fine_part(number: int, unit: float) -> Trait:
    """The part of one place beyond a grid, in the grid's units."""

    def column(outputs: OutputTable) -> Floats:
        with np.errstate(invalid="ignore", over="ignore"):
            scaled = _at(outputs, number) / unit
            return np.where(np.isfinite(scaled), scaled - np.floor(scaled), np.nan)

    words = f"the part of value {number + 1} beyond a grid of {unit:g}"
    return Trait(words, f"part(at(v, {number}), {unit!r})", column, 1)


def difference(place: int, other: int) -> Trait:
    """The difference of two places: noise that is used twice is not in it."""

    def column(outputs: OutputTable) -> Floats:
        with np.errstate(invalid="ignore"):
            return _at(outputs, place) - _at(outputs, other)

    return Trait(f"value {place + 1} minus value {other + 1}", f"at(v, {place}) - at(v, {other})", column, 1)


def how_often(value: float, texts: dict[float, str]) -> Trait:
    """How many of the leaves are a value."""
    named = texts.get(value, f"{value:g}")
    return Trait(
        f"how many of the values are {named}",
        f"float(v.count({value!r}))",
        lambda it: (it.leaves == value).sum(axis=1).astype(float),
        1,
    )


def nearer(first: Floats, second: Floats) -> Trait:
    """How much nearer an output is to the second neighbour's usual output than to the first's."""
    places = [int(p) for p in np.flatnonzero(np.isfinite(first) & np.isfinite(second))]
    told = {p: (float(first[p]), float(second[p])) for p in places}

    def column(outputs: OutputTable) -> Floats:
        total = np.zeros(len(outputs))
        for p, (a, b) in told.items():
            total = total + (abs(_at(outputs, p) - a) - abs(_at(outputs, p) - b))
        return total

    source = f"sum(abs(at(v, p) - a) - abs(at(v, p) - b) for p, (a, b) in {told!r}.items())"
    return Trait("the distance to the first neighbour's usual output, less that to the second's,", source, column, 2)


def across(leaves: Floats, first: NDArray[np.bool_]) -> Trait:
    """Fisher's discriminant (1936): the direction in which the neighbours differ, past the noise that places share."""
    leaves = leaves[:, :PLACES]
    places = np.flatnonzero((abs(leaves) < _HUGE).all(axis=0) & (np.ptp(leaves, axis=0) > 0))
    scale = leaves[:, places].std(axis=0)
    parts = [leaves[rows][:, places] / scale for rows in (first, ~first)]
    means = [part.mean(axis=0) for part in parts]
    within = 1e-9 * np.eye(len(places))
    for part, mean in zip(parts, means, strict=True):
        within += (part - mean).T @ (part - mean) / len(part)
    weights = np.linalg.solve(within, means[1] - means[0]) / scale
    told = {int(p): float(w) for p, w in zip(places, weights / abs(weights).max(initial=1e-300), strict=True)}

    def column(outputs: OutputTable) -> Floats:
        total = np.zeros(len(outputs))
        for p, weight in told.items():
            total = total + weight * _at(outputs, p)
        return np.round(total, 6)

    return Trait("a weighed sum", f"round(sum(at(v, p) * w for p, w in {told!r}.items()), 6)", column, 2)


def all_readings(sample: OutputTable, first: NDArray[np.bool_]) -> list[Trait]:
    """The readings that are worth a look, judged by a sample; `first` are its runs of the first neighbour."""
    wide = sample.leaves.shape[1]
    alone = wide == 1
    found = [place_alone(number, alone) for number in range(min(wide, PLACES))]
    for words, source, name in (
        ("the type and length", "code(kind(y))", "kind"),
        ("the whole output", "code(repr(y))", "whole"),
        ("the order", "code(order(y))", "order"),
        ("the number of values", "float(len(flat(y)))", "length"),
    ):
        found.append(Trait(words, source, attrgetter(name), coded=name != "length", steps=name == "length"))
    found += [lowest_bit(number) for number in range(min(wide, FINE))]
    found += [fine_part(number, unit) for number in range(min(wide, 4)) for unit in _GRIDS]
    if wide > 1:
        found += _of_several(sample, wide)
    with np.errstate(invalid="ignore"):
        usual = [_medians(sample.leaves[rows]) for rows in (first, ~first)]
    found.append(nearer(usual[0], usual[1]))
    if wide > 1 and 0 < first.sum() < len(first):
        found.append(across(sample.leaves, first))
    return found


def _medians(leaves: Floats) -> Floats:
    finite = np.where(np.isfinite(leaves).all(axis=0), leaves, 0.0) if len(leaves) else leaves
    known = np.isfinite(leaves).all(axis=0) & bool(len(leaves))
    return np.where(known, np.median(finite, axis=0) if len(leaves) else 0.0, np.nan)


def _of_several(sample: OutputTable, wide: int) -> list[Trait]:
    import warnings

    def column(of: Callable[[Floats], Floats]) -> Callable[[OutputTable], Floats]:
        def computed(outputs: OutputTable) -> Floats:
            with warnings.catch_warnings(), np.errstate(invalid="ignore"):
                warnings.simplefilter("ignore", RuntimeWarning)
                return of(outputs.leaves) if outputs.leaves.shape[1] else np.full(len(outputs), np.nan)

        return computed

    real = "[x for x in v if x == x]"
    found = [
        Trait("the sum of the values", f"float(sum({real}))", column(lambda x: np.nansum(x, axis=1)), 1),
        Trait("the largest value", f"max({real}, default=math.nan)", column(lambda x: np.nanmax(x, axis=1)), 1),
        Trait("the smallest value", f"min({real}, default=math.nan)", column(lambda x: np.nanmin(x, axis=1)), 1),
        Trait("how many values are no number", "float(sum(x != x for x in flat(y)))", _no_numbers, 1),
        Trait("squares' sum", f"float(sum(x * x for x in {real}))", column(lambda x: np.nansum(x * x, axis=1)), 1),
        Trait(
            "how many different values there are",
            f"float(len(set({real})))",
            column(lambda x: (np.diff(np.sort(x, axis=1), axis=1) > 0).sum(axis=1) + ~np.isnan(x).all(axis=1) * 1.0),
            1,
        ),
    ]
    near = min(wide, PAIRED)
    found += [difference(i, j) for i in range(near) for j in range(i)]
    found += [difference(i + 1, i) for i in range(near - 1, min(wide, PLACES) - 1)]
    values, counts = np.unique(sample.leaves[np.isfinite(sample.leaves)], return_counts=True)
    if len(values) <= PLACES:
        found += [how_often(float(values[i]), sample.texts) for i in np.argsort(-counts)[:16]]
    return found


def _no_numbers(outputs: OutputTable) -> Floats:
    absent = np.maximum(outputs.leaves.shape[1] - outputs.length, 0)
    return np.asarray(np.isnan(outputs.leaves).sum(axis=1) - absent, float)


def edges_of(column: Floats, first: NDArray[np.bool_]) -> Floats:
    """Edges that cut a column into cells: its values where they are few; else quantiles, common values alone, and the
    ends of each neighbour's values."""
    real = column[~np.isnan(column)]
    values, counts = np.unique(real, return_counts=True)
    if len(values) <= _MOST_EDGES:
        return values
    common = values[counts >= max(5, _COMMON * len(real))][: _MOST_EDGES // 2]
    many = min(max(len(real) // _RUNS_OF_A_CELL, _FEWEST_QUANTILES), _MOST_EDGES)
    ranks = np.linspace(0, len(real) - 1, many + 1)[1:-1].astype(int)
    tails = [real_of for rows in (first, ~first) if len(real_of := column[rows][~np.isnan(column[rows])])]
    ends = [end for of in tails for end in (of.min(), np.nextafter(of.max(), np.inf))]
    cuts = [np.sort(real)[ranks], common, np.nextafter(common, np.inf), np.array(ends)]
    return np.unique(np.concatenate(cuts))


def cells_of(column: Floats, edges: Floats) -> NDArray[np.int64]:
    """Which cell each number lies in, as `readings.cell` says it."""
    found = np.searchsorted(edges, column, side="right")
    return np.where(np.isnan(column), len(edges) + 1, found).astype(np.int64)
