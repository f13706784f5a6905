"""The published model: lookup tables in JSON, predictable anywhere without numpy.

Every table belongs to one feature subset and holds, for each of its cells, a shrunk log-odds contrast and a vote. The
cell of a table is the mixed radix index of its features' categories in the table's order (the histogram index without
its label). The model carries its features' queries, cuts and rules for missing values, so that it also predicts for
people who were never enrolled.

The additive classifier's probabilities are calibrated as far as the moments that the study measured allow. The soft
ensemble of separately fitted subsets promises no calibration: it adds log-odds as if the subsets were independent given
the label, so correlated features push probabilities outwards. It ranks; `threshold` decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from attrs import field

from anon.errors import InvalidValue, Malformed, Refused
from anon.protocols.categories import Value, feature_category
from anon.protocols.models import reading
from anon.protocols.models.belief import Belief
from anon.protocols.models.published import Contribution, ModelScore, PublishedModel
from anon.study.features import Feature, Label, demand_features, demand_names, demand_numbers, one_of
from anon.study.structuring import LEFT_OUT
from anon.text.sentences import say
from anon.values import frozen

VERSION = 1
THRESHOLD_TOLERANCE = 1e-12
"""A score this close to the threshold reaches it: sums in another order differ by less."""


@frozen
class Cuts:
    """The cut points that a numeric feature's collection used: x falls in the bin numbered by the cuts below it."""

    feature: str
    cuts: tuple[float, ...]

    def __attrs_post_init__(self) -> None:
        demand_numbers(f"cuts of {self.feature}", *self.cuts)
        if list(self.cuts) != sorted(self.cuts):
            raise InvalidValue(f"cuts of {self.feature}: expected them in increasing order")


@frozen
class ModelTable:
    """One partition classifier's statement about each cell of its feature subset.

    `log_odds`: ln odds of the positive class in the cell minus ln odds overall, shrunk towards 0 by the known noise.
    `votes`: the balanced classifier's label. `f1`, `auc`: from reports that took no part in fitting; `weight`: this
    table's weight in the vote (the paper's s_i). `reports`: how many reports it was fitted to. `errors`: the posterior
    standard deviation of each log-odds, where the classifier knows it (additive).
    """

    features: tuple[str, ...]
    cards: tuple[int, ...]
    reports: int
    f1: float
    auc: float
    weight: float
    log_odds: tuple[float, ...]
    votes: tuple[int, ...]
    errors: tuple[float, ...] = ()

    def __attrs_post_init__(self) -> None:
        if not self.features or len(self.features) != len(self.cards) or len(set(self.features)) != len(self.features):
            raise InvalidValue("table: expected different features and one cardinality each")
        demand_numbers(f"table of {', '.join(self.features)}", self.weight, *self.log_odds, *self.errors)
        cells = math.prod(self.cards)
        if min(self.cards) < 1 or len(self.log_odds) != cells or len(self.votes) != cells:
            raise InvalidValue(f"table of {', '.join(self.features)}: expected {cells} log_odds and votes")
        if self.errors and (len(self.errors) != cells or min(self.errors) < 0):
            raise InvalidValue(
                f"table of {', '.join(self.features)}: expected one error of at least 0 per cell, or none"
            )
        if any(vote not in (0, 1) for vote in self.votes) or self.weight < 0 or self.reports < 0:
            raise InvalidValue(f"table of {', '.join(self.features)}: expected votes of 0 or 1, nothing negative")

    def cell(self, categories: Mapping[str, int]) -> int:
        """The index of the cell that `categories` fall in. Raises `Malformed` for a missing or impossible category."""
        index = 0
        for name, card in zip(self.features, self.cards, strict=True):
            category = categories.get(name)
            if category is None or not 0 <= category < card:
                raise Malformed(f"{name}: expected a category from 0 to {card - 1}")
            index = index * card + category
        return index


@frozen
class Model:
    """A study's published model. Equal models have equal `to_json` bytes.

    `chance`: how often noise alone would have counted as much as the study did, in [0, 1]. `shown`: whether that is so
    rare that the model is taken to beat the base rate. None where nobody said. `belief`: of one that starts from what
    staff declared; left out of the JSON of all others.
    """

    version: int
    study: str
    title: str
    label: Label
    features: tuple[Feature, ...]
    cuts: tuple[Cuts, ...]
    ensemble: str = field(validator=one_of("soft", "vote"))
    classifier: str = field(validator=one_of("soft", "logistic", "tree", "additive"))
    base_rate: float
    threshold: float
    tables: tuple[ModelTable, ...]
    chance: float | None = None
    shown: bool | None = None
    belief: Belief | None = field(default=None, metadata=LEFT_OUT)

    def __attrs_post_init__(self) -> None:
        if self.chance is not None and not 0 <= self.chance <= 1:
            raise InvalidValue("chance: expected a probability")
        if self.version != VERSION:
            raise InvalidValue(say(
                "version: expected {version}, got {version2}; update this program",
                version=VERSION,
                version2=self.version,
            ))
        if not 0 < self.base_rate < 1 or not 0 <= self.threshold <= 1:
            raise InvalidValue(
                "base_rate, threshold: expected a base rate strictly between 0 and 1, a threshold from 0 to 1"
            )
        demand_features(self.features)
        demand_names(self.features, self.label)
        self._check_cuts()
        cards = {feature.name: self._cardinality(feature) for feature in self.features}
        for table in self.tables:
            if any(cards.get(name) != card for name, card in zip(table.features, table.cards, strict=True)):
                raise InvalidValue(f"table of {', '.join(table.features)}: unknown features or wrong cards")

    def _check_cuts(self) -> None:
        numeric = [feature.name for feature in self.features if feature.kind == "numeric"]
        if sorted(cuts.feature for cuts in self.cuts) != sorted(numeric):
            raise InvalidValue("cuts: expected exactly one entry for each numeric feature")

    def _cardinality(self, feature: Feature) -> int:
        if feature.kind == "categorical":
            return feature.cardinality
        return len(self.cuts_of(feature.name)) + 1 + (1 if feature.missing == "own" else 0)

    def cuts_of(self, feature: str) -> tuple[float, ...]:
        """The cuts of a numeric feature; empty for a categorical one."""
        return next((cuts.cuts for cuts in self.cuts if cuts.feature == feature), ())

    def categories(self, values: Mapping[str, Value]) -> dict[str, int]:
        """Each feature's category from the raw values of the queries, by the protocol's total map: never an error."""
        return {
            feature.name: feature_category(feature, values.get(feature.name), self.cuts_of(feature.name))
            for feature in self.features
        }

    def probability(self, categories: Mapping[str, int]) -> float:
        """The score of a person in [0, 1], increasing in the ensemble's belief.

        Soft: the logistic function of the base rate's log-odds plus the tables'. Vote: the weight share that votes
        for the positive class, so that 1/2 is the paper's `score = 0` (eq. 2). With no table, the base rate.
        Raises `Malformed` for a missing or impossible category.
        """
        amounts = [part.amount for part in self.contributions(categories)]
        if self.ensemble == "soft":
            return reading.logistic(_logit(self.base_rate) + math.fsum(amounts))
        return min(max((1 + math.fsum(amounts)) / 2, 0.0), 1.0) if self._weight > 0 else self.base_rate

    def decide(self, categories: Mapping[str, int]) -> bool:
        """True for the positive class: the score reaches the threshold (eq. 2: `score >= 0`)."""
        return self.probability(categories) >= self.threshold - THRESHOLD_TOLERANCE

    def answer(self, categories: Mapping[str, int]) -> bool | None:
        """The permitted statement about a person: the decision, or None where the study did not show that it beats a
        guess.

        The one rule for every place where a person reads an answer.
        """
        return None if self.shown is False else self.decide(categories)

    def predict(self, values: Mapping[str, Value]) -> ModelScore:
        """Score, answer, and what each table added; nothing of the last where there is no answer.

        Raises `TypeError` for values without the features' names.
        """
        given: object = values
        if not isinstance(given, Mapping):
            names = ", ".join(f"{feature.name!r}: ..." for feature in self.features[:2])
            raise TypeError(
                f"predict: expected one person's values by feature name, as {{{names}}}, got {type(given).__name__}; "
                "PublishedClassifier takes rows"
            )
        categories = self.categories(values)
        answer = self.answer(categories)
        moved_by = () if answer is None else self.contributions(categories)
        return ModelScore(self.probability(categories), answer, moved_by)

    def contributions(self, categories: Mapping[str, int]) -> tuple[Contribution, ...]:
        """Each table's term, in the tables' order. Raises `Malformed` for a missing or impossible category."""
        if self.ensemble == "soft":
            return tuple(Contribution(table.features, table.log_odds[table.cell(categories)]) for table in self.tables)
        total = self._weight or 1.0
        return tuple(
            Contribution(table.features, table.weight * (2 * table.votes[table.cell(categories)] - 1) / total)
            for table in self.tables
        )

    @property
    def _weight(self) -> float:
        return math.fsum(table.weight for table in self.tables)

    def to_json(self) -> str:
        """The one spelling of this model: sorted keys, no blanks, ASCII, shortest floats, a final newline."""
        return reading.spelled(self)


def from_json(text_untrusted: str) -> Model:
    """A valid model from JSON. Raises `Malformed`: no JSON, unknown or repeated keys, NaN, or an inconsistent model."""
    return reading.read_as(text_untrusted, Model)


def demand_tables(model: PublishedModel) -> Model:
    """The model, which is the histogram's. Raises `Refused` for one of another protocol."""
    if not isinstance(model, Model):
        raise Refused(say("the model is not made of tables; this works for the histogram protocol only"))
    return model


def _logit(rate: float) -> float:
    return math.log(rate / (1 - rate))
