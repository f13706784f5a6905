"""The ensemble form of a published model: linear models of groups of members, whose probabilities are averaged.

It predicts anywhere without numpy, as each of its models does (`anon.protocols.models.linear`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Final

from attrs import field

from anon.errors import InvalidValue
from anon.protocols.categories import Value
from anon.protocols.models import reading
from anon.protocols.models.linear import TOLERANCE, LinearModel
from anon.protocols.models.published import Contribution, ModelScore
from anon.protocols.vectors.columns import Column
from anon.study.features import Feature, Label
from anon.study.structuring import LEFT_OUT
from anon.text.sentences import Sentence, say
from anon.values import frozen

FORM: Final = "ensemble"
VERSION: Final = 1
_NUMBER, _KEYS = 32, 96
"""Characters of the longest float in JSON with its comma, and of the keys of a group's model."""


def _form(_: object, attribute: object, value: str) -> None:
    if value != FORM:
        raise InvalidValue(f"form: expected {FORM}")


@frozen
class GroupModel:
    """The mean of a group's models. `aggregation` and `group` count from 1; `members`: of so many. A weight for each
    column of the ensemble, and an intercept."""

    aggregation: int
    group: int
    members: int
    weights: tuple[float, ...]
    intercept: float


def named(model: GroupModel) -> Sentence:
    """The name of a group's model, as its say is told."""
    return say("model {group} of aggregation {aggregation}", group=model.group, aggregation=model.aggregation)


@frozen(slots=False)
class EnsembleModel:
    """Models of groups with one set of columns. The score is the mean of their probabilities, each with the same say.

    `many`, `chance` and `shown` as in `anon.protocols.models.linear.LinearModel`, which each of its models is. Raises
    `InvalidValue` for a model that cannot be, and for one without a group.
    """

    study: str
    title: str
    label: Label
    features: tuple[Feature, ...]
    columns: tuple[Column, ...]
    models: tuple[GroupModel, ...]
    threshold: float = 0.5
    chance: float | None = None
    shown: bool | None = None
    many: bool = field(default=False, metadata=LEFT_OUT)
    version: int = VERSION
    form: str = field(default=FORM, validator=_form)

    def __attrs_post_init__(self) -> None:
        if self.version != VERSION:
            raise InvalidValue(f"version: expected {VERSION}, got {self.version}; update this program")
        places = [(model.aggregation, model.group) for model in self.models]
        if not places or places != sorted(set(places)) or min(model.members for model in self.models) < 1:
            raise InvalidValue("models: expected those of different groups with members, in their order")
        if min(min(place) for place in places) < 1:
            raise InvalidValue("models: expected aggregations and groups from 1 on")
        _ = self.linear  # which checks columns, weights and names

    @cached_property
    def linear(self) -> tuple[LinearModel, ...]:
        """Each model as one of its own."""
        return tuple(
            LinearModel(
                self.study, self.title, self.label, self.features, self.columns, model.weights, model.intercept, None,
                self.threshold, self.chance, self.shown, self.many,
            )
            for model in self.models
        )  # fmt: skip

    def predict(self, values: Mapping[str, Value]) -> ModelScore:
        """The score, the answer, and each model's say: its signed share of a vote. Never raises on account of a value.
        """
        scores = [model.predict(values).probability for model in self.linear]
        probability = math.fsum(scores) / len(scores)
        if self.shown is False:
            return ModelScore(probability, None)
        parts = tuple(
            Contribution((named(model),), (2 * score - 1) / len(scores))
            for model, score in zip(self.models, scores, strict=True)
        )
        return ModelScore(probability, probability >= self.threshold - TOLERANCE, parts)

    def alone(self, place: int, value: Value) -> ModelScore:
        """As `LinearModel.alone`, without each model's say."""
        probability = math.fsum(model.alone(place, value).probability for model in self.linear) / len(self.models)
        return ModelScore(probability, None if self.shown is False else probability >= self.threshold - TOLERANCE)

    def to_json(self) -> str:
        """The one spelling of this model."""
        return reading.spelled(self)


def from_json(text_untrusted: str) -> EnsembleModel:
    """A valid model from JSON. Raises `Malformed`: no JSON, unknown or repeated keys, NaN, or an inconsistent model."""
    return reading.read_as(text_untrusted, EnsembleModel)


def longest_ensemble(models: int, features: int) -> int:
    """The most bytes that so many models take beside the texts of a linear one."""
    return models * (_KEYS + _NUMBER * (features + 4))
