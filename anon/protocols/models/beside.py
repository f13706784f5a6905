"""A member's own model beside the models of groups: all predict together. Nothing of it leaves the machine.

The member's own records fit its model. A fourth of them is held back. On these follow its lambda, and each model's say.
A model that errs there far more often than a guess is left out. So one that a liar turned round costs the member
little.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

from attrs import evolve

from anon.errors import Refused
from anon.protocols.categories import Value, label_category
from anon.protocols.models.ensemble import EnsembleModel, named
from anon.protocols.models.linear import TOLERANCE, LinearModel
from anon.protocols.models.published import Contribution, ModelScore
from anon.protocols.vectors.columns import CONSTANT, Column, row_of
from anon.protocols.vectors.logistic import fit
from anon.text.sentences import Sentence, say
from anon.values import frozen

Row = tuple[Mapping[str, Value], int]
"""A record's values by the names of its queries, and its label, 0 or 1."""
FEWEST: Final = 8
"""Records, of which 2 are held back."""
STRENGTHS: Final = tuple(Fraction(1, 10**power) for power in range(4))
"""Each lambda that is tried."""
_PART: Final = 4
_FAR: Final = 2.0
"""Standard deviations of a guess's errors: a model with so many more is left out."""


@frozen
class JudgedModel:
    """A model with its errors on the held-back records. `weight`: its part of all says; 0 of one that is left out."""

    name: Sentence
    model: LinearModel
    wrong: int
    weight: float


@frozen
class OwnEnsemble:
    """The member's own model, first, and those of groups. `guess`: the errors of always giving the more common answer,
    of `held_back` records."""

    ensemble: EnsembleModel
    judged: tuple[JudgedModel, ...]
    guess: int
    held_back: int

    def predict(self, values: Mapping[str, Value]) -> ModelScore:
        """As `EnsembleModel.predict`, with the weights in place of equal says."""
        scores = [(judged, judged.model.predict(values).probability) for judged in self.judged if judged.weight]
        probability = min(1.0, math.fsum(judged.weight * score for judged, score in scores))
        if self.ensemble.shown is False:
            return ModelScore(probability, None)
        parts = tuple(Contribution((judged.name,), judged.weight * (2 * score - 1)) for judged, score in scores)
        return ModelScore(probability, probability >= self.ensemble.threshold - TOLERANCE, parts)

    @property
    def left_out(self) -> tuple[Sentence, ...]:
        """A sentence for each model that has no say."""
        return tuple(
            say(
                "{model} is left out: it errs on {wrong} of {many} records of yours that were held back, and a guess "
                "on {guess}.",
                model=judged.name,
                wrong=judged.wrong,
                many=self.held_back,
                guess=self.guess,
            )
            for judged in self.judged
            if not judged.weight
        )


def beside(
    ensemble: EnsembleModel, records: Sequence[tuple[Mapping[str, Value], Value]], weighted: bool
) -> OwnEnsemble:
    """The own model of these records beside the ensemble. `weighted`: by errors on held-back records. Raises `Refused`
    for fewer than `FEWEST`."""
    if len(records) < FEWEST:
        raise Refused(
            say(
                "a model of your own takes at least {fewest} of your records, and {many} were found",
                fewest=FEWEST,
                many=len(records),
            )
        )
    rows = [(values, label_category(ensemble.label, label)) for values, label in records]
    kept, held = [row for at, row in enumerate(rows) if at % _PART], rows[::_PART]
    tried = [own_model(ensemble, kept, strength) for strength in STRENGTHS]
    own = min(tried, key=lambda model: errors_of(model, held))
    models = (own, *ensemble.linear)
    wrong, yes = [errors_of(model, held) for model in models], sum(label for _values, label in held)
    guess = min(yes, len(held) - yes)
    weights = weights_of(wrong, guess, len(held), weighted)
    names = (say("your own model"), *map(named, ensemble.models))
    return OwnEnsemble(ensemble, tuple(map(JudgedModel, names, models, wrong, weights)), guess, len(held))


def weights_of(wrong: Sequence[int], guess: int, many: int, weighted: bool) -> list[float]:
    """The part of each model's say, the own one's first, from their errors on `many` records.

    One that has `_FAR` deviations of errors more than a guess is left out, but never the own one. With `weighted` each
    deviation more than the best has costs a model the factor e.
    """
    deviation = math.sqrt(max(many / 4, 1.0))
    there = [not at or errors <= guess + _FAR * deviation for at, errors in enumerate(wrong)]
    best = min(errors for errors, stays in zip(wrong, there, strict=True) if stays)
    says = [
        stays * (math.exp((best - errors) / deviation) if weighted else 1.0)
        for errors, stays in zip(wrong, there, strict=True)
    ]
    total = math.fsum(says)
    return [part / total for part in says]


def own_model(ensemble: EnsembleModel, rows: Sequence[Row], strength: Fraction) -> LinearModel:
    """The member's own model of rows with their labels, in the ensemble's columns."""
    columns = (Column(CONSTANT, 0.0, 1.0), *ensemble.columns)
    reals = [row_of(columns, {**values, CONSTANT: 1}, Fraction(1)) for values, _label in rows]
    fitted = fit(reals, [label for _values, label in rows], strength)
    intercept, *weights = (weight / math.sqrt(len(columns)) for weight in fitted)
    return evolve(ensemble.linear[0], weights=tuple(weights), intercept=intercept)


def errors_of(model: LinearModel, rows: Sequence[Row]) -> int:
    """How many of these rows a model answers wrongly."""
    threshold = model.threshold - TOLERANCE
    return sum((model.predict(values).probability >= threshold) != bool(label) for values, label in rows)
