"""The model's score of somebody of whom one answer alone is known, answer by answer: the bars of the owner's page.

Everything follows from the published model, and where the owner's values are given, the owner's own place. Pure.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from anon.protocols.categories import Value
from anon.protocols.models.ensemble import EnsembleModel
from anon.protocols.models.linear import LinearModel
from anon.protocols.models.published import PublishedModel
from anon.protocols.models.reading import logistic
from anon.protocols.models.tables import Model, ModelTable
from anon.protocols.names import between
from anon.protocols.vectors.columns import Column
from anon.study.features import Feature
from anon.text.foreign import Quoted
from anon.text.sentences import Figure, Sentence, say
from anon.values import frozen

MOST_FEATURES, MOST_ANSWERS = 12, 32
"""A page draws so many features, and of each so many answers: those that move the score most."""
LEAST_SPAN: Final = 0.0005
"""A feature whose scores all lie this close together moves nothing that a bar could show."""
_EDGES: Final = (-0.6, -0.2, 0.2, 0.6)
_MIDDLES: Final = (-0.8, -0.4, 0.0, 0.4, 0.8)
"""Of a column, in its real values: the five parts of its range, and where each is scored."""
_NOT_KNOWN: Final = say("not known")
_ANY: Final = say("any number")


@frozen
class AnswerBar:
    """An answer: its `length` from 0 to 1, the score or the predicted number in `figure`, and true for the owner's."""

    name: Sentence | Quoted
    length: float
    figure: Figure
    own: bool


@frozen
class FeatureChart:
    """A feature's bars. `left_out`: how many further answers have none here."""

    feature: Feature
    bars: tuple[AnswerBar, ...]
    left_out: int

    @property
    def span(self) -> float:
        """How far apart the answers lie."""
        lengths = [bar.length for bar in self.bars]
        return max(lengths) - min(lengths)


@frozen
class ModelChart:
    """The features that move the score, the strongest first; and the names of those that move nothing or are weaker
    than those drawn. `together`: the model reads answers together, and each bar is a mean over the other ones'.
    `number`: the bars are of a predicted number. `mark`: where a yes begins, from 0 to 1."""

    features: tuple[FeatureChart, ...]
    undrawn: tuple[str, ...]
    together: bool
    number: bool
    mark: float

    @property
    def threshold(self) -> Figure:
        """The mark in per cent."""
        return _percent(self.mark)


def chart_of(model: PublishedModel, own: Mapping[str, Value] | None = None) -> ModelChart | None:
    """The bars of a model; None where it was not shown to beat a guess, because they may be noise alone."""
    if model.shown is False:
        return None
    if isinstance(model, Model):
        drawn = _of_tables(model, own)
        together = any(len(table.features) > 1 for table in model.tables)
    elif isinstance(model, LinearModel | EnsembleModel):
        drawn, together = _of_columns(model, own), False
    else:
        return None
    ordered = sorted(drawn, key=lambda chart: -chart.span)
    moving = tuple(chart for chart in ordered if chart.span > LEAST_SPAN)[:MOST_FEATURES]
    undrawn = tuple(chart.feature.name for chart in ordered[len(moving) :])
    number = isinstance(model, LinearModel) and model.target is not None
    return ModelChart(moving, undrawn, together, number, model.threshold)


# Tables


def _of_tables(model: Model, own: Mapping[str, Value] | None) -> list[FeatureChart]:
    places, amounts = None if own is None else model.categories(own), _amounts(model)
    found = []
    for feature in model.features:
        if feature.name in amounts:
            scores = [_score(model, amount) for amount in amounts[feature.name]]
            rows = zip(_names(feature, model.cuts_of(feature.name)), scores, map(_percent, scores), strict=False)
            found.append(_chart(feature, list(rows), None if places is None else places[feature.name]))
    return found


def _names(feature: Feature, cuts: Sequence[float]) -> list[Sentence | Quoted]:
    """The names of the answers in their order, the missing one at the end."""
    if feature.kind == "categorical":
        return [*map(Quoted, feature.categories), _NOT_KNOWN]
    return [*(between(cuts, place) for place in range(len(cuts) + 1) if cuts), *([] if cuts else [_ANY]), _NOT_KNOWN]


def _amounts(model: Model) -> dict[str, list[float]]:
    """By feature, the amount that each of its answers adds: of a table of several, the mean over the other answers."""
    found: dict[str, list[float]] = {}
    total = math.fsum(table.weight for table in model.tables) or 1.0
    for table in model.tables:
        votes = (table.weight * (2 * vote - 1) / total for vote in table.votes)
        cells = table.log_odds if model.ensemble == "soft" else tuple(votes)
        for place, name in enumerate(table.features):
            means = _means(table, place, cells)
            before = found.get(name, [0.0] * len(means))
            found[name] = [sum(pair) for pair in zip(before, means, strict=True)]
    return found


def _means(table: ModelTable, place: int, cells: Sequence[float]) -> list[float]:
    """Of the feature at this place of the table: for each category the mean of its cells."""
    card, within = table.cards[place], math.prod(table.cards[place + 1 :])
    sums = [0.0] * card
    for index, amount in enumerate(cells):
        sums[index // within % card] += amount
    return [each * card / len(cells) for each in sums]


def _score(model: Model, amount: float) -> float:
    if model.ensemble == "soft":
        return logistic(math.log(model.base_rate / (1 - model.base_rate)) + amount)
    return min(max((1 + amount) / 2, 0.0), 1.0)


# Columns


def _of_columns(model: LinearModel | EnsembleModel, own: Mapping[str, Value] | None) -> list[FeatureChart]:
    """Each column at five places of its range, all others at their centres, as a missing value counts."""
    places = {column.name: place for place, column in enumerate(model.columns)}
    found = []
    for feature in model.features:
        column = model.columns[place := places[feature.name]]
        edges = _edges(column)
        answers: list[Value] = [*(column.value(middle) for middle in _MIDDLES), None]
        scores = [model.alone(place, answer) for answer in answers]
        figures = [_percent(at.probability) if at.value is None else Figure(f"{at.value:.4g}") for at in scores]
        names = [*(between(edges, place) for place in range(len(_MIDDLES))), _NOT_KNOWN]
        rows = list(zip(names, [at.probability for at in scores], figures, strict=True))
        part = None if own is None else _part(edges, own.get(feature.name))
        found.append(_chart(feature, rows, part))
    return found


def _edges(column: Column) -> list[float]:
    """The ends of the parts between them in the column's own unit, with as many digits as keep them apart."""
    exact = [column.value(real) for real in _EDGES]
    for digits in range(3, 17):
        edges = [float(f"{edge:.{digits}g}") for edge in exact]
        if all(low < high for low, high in pairwise(edges)):
            break
    return edges


def _part(edges: Sequence[float], value: Value) -> int:
    if isinstance(value, int | float) and math.isfinite(value):
        return bisect_left(edges, value)
    return len(edges) + 1


# Drawing


def _percent(score: float) -> Figure:
    return Figure(f"{100 * score:.1f}")


def _chart(feature: Feature, rows: Sequence[tuple[Sentence | Quoted, float, Figure]], own: int | None) -> FeatureChart:
    """The bars of a feature. Of more than fit, the owner's and those that lie furthest from the middle one stay."""
    bars = [AnswerBar(name, length, figure, own == place) for place, (name, length, figure) in enumerate(rows)]
    middle = sorted(bar.length for bar in bars)[len(bars) // 2]
    strongest = sorted(bars, key=lambda bar: (not bar.own, -abs(bar.length - middle)))[:MOST_ANSWERS]
    shown = tuple(bar for bar in bars if any(bar is kept for kept in strongest))
    return FeatureChart(feature, shown, len(bars) - len(shown))
