"""The additive model as a study's published model: one table per feature, and what stands behind it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aggregator.protocols.additive.empirical_bayes import smoothed
from aggregator.protocols.additive.learner import (
    Additive,
    Measurements,
    fit,
    measurements,
    refit,
)
from aggregator.protocols.additive.moments import BitTally, Coordinates, NoisyMoments, gather
from aggregator.protocols.additive.noise_test import WhitenedMeasurements
from aggregator.protocols.additive.reconstruct import Floats, Histogram, SurveyTally, pool, reconstruct
from aggregator.protocols.additive.results import HOSTILE_SHARE, LearnedStudy, PartitionResult, Subject, published
from aggregator.protocols.additive.scoring import Scores, score
from anon.ldp import SCALE
from anon.protocols.models.tables import ModelTable
from anon.study.features import Feature, Learning


def learn_jointly(
    subject: Subject,
    train: Sequence[SurveyTally],
    scoring: Sequence[SurveyTally],
    bits: Sequence[BitTally],
    learning: Learning,
    with_influence: bool = True,
) -> LearnedStudy:
    """Fit all surveys together. One-bit packets all train; tables of the scoring cohort only score.

    Where noise alone usually counts as much, the likelier label is decided for.
    """
    coordinates = coordinates_of(subject.features)
    moments = gather(coordinates, train, bits, subject.shares, learning.base_rate)
    found, asked = fit(moments), measurements(moments)
    seen, tables, results = asked.seen(), [], []
    for feature in subject.features:
        moved = _influence(asked, seen, found, feature, train, bits) if with_influence else 0.0
        result = result_of(asked, found, feature, scoring, moved)
        tables.append(table_of(moments, found, feature, result.scores, learning))
        results.append(result)
    model = subject.model("soft", "additive", moments.rate, moments.rate, tables)
    learned = LearnedStudy(model, tuple(results), moments.rate, found.null, found.chance)
    return published(learned)


def coordinates_of(features: Sequence[Feature]) -> Coordinates:
    """One coordinate for each category of each feature."""
    return Coordinates(
        tuple(feature.name for feature in features),
        tuple(feature.cardinality for feature in features),
        tuple(feature.kind == "numeric" for feature in features),
        tuple(feature.missing == "own" for feature in features),
        tuple(feature.expects for feature in features),
    )


def table_of(
    moments: NoisyMoments, found: Additive, feature: Feature, scores: Scores, learning: Learning
) -> ModelTable:
    """A feature's table of the published model."""
    place = moments.coordinates.places[feature.name]
    return ModelTable(
        features=(feature.name,),
        cards=(feature.cardinality,),
        reports=moments.reports[feature.name],
        f1=scores.f1,
        auc=scores.auc,
        weight=scores.f1 if learning.score == "f1" else scores.auc,
        log_odds=tuple(float(value) for value in found.log_odds[place]),
        votes=tuple(int(value > 0) for value in found.log_odds[place]),
        errors=tuple(float(value) for value in found.errors[place]),
    )


def result_of(
    asked: Measurements, found: Additive, feature: Feature, scoring: Sequence[SurveyTally], influence: float
) -> PartitionResult:
    """Shares of (category, label): measured where tables asked, else what the model implies."""
    moments = asked.moments
    place = moments.coordinates.places[feature.name]
    known = np.isfinite(moments.contrast_variance[place])
    contrast = np.where(known, moments.contrast[place], (asked.covariance @ found.effects)[place])
    implied = moments.shares[place] * found.errors[place] * moments.rate * (1 - moments.rate)
    errors = np.where(known, np.sqrt(np.where(known, moments.contrast_variance[place], 0)), implied)
    shares, rate = moments.shares[place], moments.rate
    cells = np.column_stack([shares * (1 - rate) - contrast, shares * rate + contrast]).reshape(-1)
    cohort = [tally for tally in scoring if feature.name in tally.features and tally.n > 0]
    scores = _scores(found.log_odds[place], feature, cohort, rate)
    return PartitionResult(
        surveys=tuple(tally.survey for tally in cohort),
        features=(feature.name,),
        cards=(feature.cardinality,),
        n=moments.reports[feature.name],
        scores=scores,
        shares=cells,
        standard_errors=np.repeat(errors, 2),
        likely=smoothed(cells, float((errors**2).mean())),
        influence=influence,
    )


def _scores(log_odds: Floats, feature: Feature, cohort: Sequence[SurveyTally], rate: float) -> Scores:
    if not cohort:
        return Scores(f1=2 * rate / (1 + 2 * rate), auc=0.5, accuracy=0.5, reports=0)
    return score(log_odds, pool([marginal(reconstruct(tally), feature.name) for tally in cohort]), rate)


def marginal(histogram: Histogram, name: str) -> Histogram:
    """The histogram of one of its features with the label, the others summed over."""
    place = histogram.features.index(name)
    cards = (*histogram.cards, 2)
    at = np.unravel_index(np.arange(len(histogram.shares)), cards)
    target = at[place] * 2 + at[-1]
    folding = np.zeros((2 * histogram.cards[place], len(histogram.shares)))
    folding[target, np.arange(len(target))] = 1.0
    return Histogram(
        (name,), (histogram.cards[place],), histogram.n, folding @ histogram.shares,
        folding @ histogram.covariance @ folding.T,
    )  # fmt: skip


def _influence(
    asked: Measurements,
    seen: WhitenedMeasurements,
    found: Additive,
    feature: Feature,
    tables: Sequence[SurveyTally],
    bits: Sequence[BitTally],
) -> float:
    """The most that a log-odds of the feature moves when 1 % of the reports about it all name one category and label.

    A lying report moves a table's shares by 1/(p - q) of itself and a bit's mean by 2 scale/(p - q).
    """
    told = [bit for bit in bits if bit.n > 0 and not bit.asks_label_alone]
    gain = max((_gain(table) for table in tables if feature.name in table.features and table.n > 0), default=0.0)
    return influence_of(asked, seen, found, feature, gain, [2 * bit.scale * _gain(bit) for bit in told])


def influence_of(
    asked: Measurements,
    seen: WhitenedMeasurements,
    found: Additive,
    feature: Feature,
    gain: float,
    bit_gains: Sequence[float] = (),
) -> float:
    """The same where a lying report moves a table's shares by `gain` of itself, and each bit's mean by its own gain.

    `seen`: the measurements without an effect, found once for all features.
    """
    moments = asked.moments
    place, shift = moments.coordinates.places[feature.name], HOSTILE_SHARE * gain
    moved = 0.0
    for category in range(place.start, place.stop):
        for label in (0, 1):
            contrast, values = moments.contrast.copy(), moments.bits.copy()
            contrast[category] += shift * (label - moments.rate)
            contrast[place] -= shift * (label - moments.rate) / (place.stop - place.start)
            for row, bit_gain in enumerate(bit_gains):
                values[row] += HOSTILE_SHARE * bit_gain * moments.signs[row, category] * (2 * label - 1)
            hostile = refit(asked, seen, contrast, values)
            moved = max(moved, float(np.abs(hostile[place] - found.log_odds[place]).max()))
    return moved


def _gain(tally: SurveyTally | BitTally) -> float:
    return SCALE / (tally.mechanism.p - tally.mechanism.q)
