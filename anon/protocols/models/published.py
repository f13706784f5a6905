"""A published model as everybody uses it, whatever its form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from anon.protocols.categories import Value
from anon.study.features import Feature, Label
from anon.values import frozen


@frozen
class Contribution:
    """How one part of a model moved one prediction: the log-odds it added, or its signed share of a vote."""

    features: tuple[str, ...]
    amount: float


@frozen
class ModelScore:
    """A model's score of one record in [0, 1], and its answer; None where it was not shown to beat a guess.

    A model that predicts a number gives it as `value`, in the number's own unit, and no answer; the score is then the
    number's place in the range that the study declared.
    """

    probability: float
    positive: bool | None
    moved_by: tuple[Contribution, ...] = ()
    value: float | None = None


class PublishedModel(Protocol):
    """A study's published model. `chance` and `shown`: how often noise alone would look as good, and whether that is
    so rare that the model is taken to beat a guess; None where nobody said."""

    @property
    def study(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def label(self) -> Label: ...

    @property
    def features(self) -> tuple[Feature, ...]: ...

    @property
    def threshold(self) -> float: ...

    @property
    def chance(self) -> float | None: ...

    @property
    def shown(self) -> bool | None: ...

    def predict(self, values: Mapping[str, Value]) -> ModelScore:
        """The score of a record from the raw values of the features' queries. Never raises on account of a value."""

    def to_json(self) -> str:
        """The one spelling of this model. Tables carry no tag; any other form is named under "form", or the protocol
        that alone reads it under "protocol"."""
