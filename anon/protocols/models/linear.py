"""The linear form of a published model: a weight for each declared column, predictable anywhere without numpy.

A published model is a tagged union. Lookup tables (`anon.protocols.models.tables`) carry no tag, because they are
older than the second form; every other form is named under "form". A form belongs to no protocol.

The model holds its features' queries, and how each column is centred and clipped. So it also predicts for people who
were never enrolled. A missing value counts as the column's centre.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from attrs import field

from anon.errors import InvalidValue
from anon.protocols.categories import Value
from anon.protocols.models import reading
from anon.protocols.models.published import Contribution, ModelScore
from anon.protocols.vectors.columns import Column
from anon.study.features import Feature, Label, demand_names, demand_numbers
from anon.study.structuring import LEFT_OUT
from anon.values import frozen

FORM: Final = "linear"
VERSION: Final = 1
TOLERANCE: Final = 1e-12
"""A score this close to the threshold reaches it: sums in another order differ by less."""


def _form(_: object, attribute: object, value: str) -> None:
    if value != FORM:
        raise InvalidValue(f"form: expected {FORM}")


@frozen
class LinearModel:
    """A weighted sum of centred and clipped columns, and an intercept. Equal models have equal `to_json` bytes.

    Without a `target` the sum is the log-odds of the positive label, and the answer is a yes from `threshold` on. With
    one it is a number: the sum of 1 is one width of the target above its centre. `many`: the queries give many records
    of a person, and it predicts for one record. `chance` and `shown` as in
    `anon.protocols.models.published.PublishedModel`. Raises `InvalidValue` for a model that cannot be.
    """

    study: str
    title: str
    label: Label
    features: tuple[Feature, ...]
    columns: tuple[Column, ...]
    weights: tuple[float, ...]
    intercept: float
    target: Column | None = None
    threshold: float = 0.5
    chance: float | None = None
    shown: bool | None = None
    many: bool = field(default=False, metadata=LEFT_OUT)
    version: int = VERSION
    form: str = field(default=FORM, validator=_form)

    def __attrs_post_init__(self) -> None:
        if self.version != VERSION:
            raise InvalidValue(f"version: expected {VERSION}, got {self.version}; update this program")
        demand_numbers("weights, intercept", *self.weights, self.intercept)
        for column in (*self.columns, *((self.target,) if self.target else ())):
            demand_numbers(f"column {column.name}", column.centre, column.width, column.reach)
        if not 0 <= self.threshold <= 1 or (self.chance is not None and not 0 <= self.chance <= 1):
            raise InvalidValue("threshold, chance: expected numbers from 0 to 1")
        demand_names(self.features, self.label)
        names = [column.name for column in self.columns]
        numeric = {feature.name for feature in self.features if feature.kind == "numeric"}
        if not names or len(set(names)) != len(names) or len(self.weights) != len(names):
            raise InvalidValue("columns, weights: expected different columns, and a weight for each")
        if set(names) != numeric or len(numeric) != len(self.features):
            raise InvalidValue("columns: expected one for each feature, all of them numeric")
        if self.target is not None and self.target.name in {*names, self.label.name}:
            raise InvalidValue("target: expected another name than those of the columns and the label")

    def predict(self, values: Mapping[str, Value]) -> ModelScore:
        """Score or value, the answer, and what each column added. Never raises on account of a value."""
        parts = tuple(
            Contribution((column.name,), weight * column.real(values.get(column.name)))
            for column, weight in zip(self.columns, self.weights, strict=True)
        )
        return self.scored(math.fsum((self.intercept, *(part.amount for part in parts))), parts)

    def alone(self, place: int, value: Value) -> ModelScore:
        """The score of somebody of whom the column at this place alone is known: the others are at their centres."""
        return self.scored(self.intercept + self.weights[place] * self.columns[place].real(value))

    def scored(self, total: float, parts: tuple[Contribution, ...] = ()) -> ModelScore:
        """The score of this sum of the intercept and what each column added."""
        moved_by = () if self.shown is False else parts
        if self.target is not None:
            place = (min(max(total, -1.0), 1.0) + 1) / 2
            return ModelScore(place, None, moved_by, None if self.shown is False else self.target.value(total))
        probability = reading.logistic(total)
        answer = None if self.shown is False else probability >= self.threshold - TOLERANCE
        return ModelScore(probability, answer, moved_by)

    def to_json(self) -> str:
        """The one spelling of this model."""
        return reading.spelled(self)


def from_json(text_untrusted: str) -> LinearModel:
    """A valid model from JSON. Raises `Malformed`: no JSON, unknown or repeated keys, NaN, or an inconsistent model."""
    return reading.read_as(text_untrusted, LinearModel)
