"""Made-up people for planning: declared or assumed marginals, and weak signals that go with the label.

The assumptions, because nothing private may be looked at: features lean on one common factor, in one study more than
in another; about two thirds of them go with the label, with effects that lean the same way. In some studies these are
alike, in others one feature has nearly all. A feature of which staff say what they expect always goes with it, and
`RIGHT` says how often they are right. All together, in categories, rank people with a ROC AUC of `signal` if nothing is
hidden. Studies differ: that AUC is Phi(d / sqrt(2)), and ln d is normal around a middle that grows with the number of
features, wider above it (`STRONGER`) than below (`WEAKER`).

Categories have the declared `shares`, else random ones, and each category an effect of its own. Numbers are spread over
their declared range (in its scale) with a random skew; where cuts are declared, with the declared shares between them,
else random ones. The effect of a number is a line with a random bend, which may turn back on itself as age does with
income, or a step at a random place. A plan compares designs on the same people, so that these assumptions matter less
for the choice than for the figures.
"""

from __future__ import annotations

from math import exp, expm1, log, log1p, sqrt
from typing import Protocol

import numpy as np
from attrs import frozen
from scipy.special import ndtr, ndtri

from aggregator.lab.simulation.people import FeatureColumn, People, split
from aggregator.lab.simulation.simulate import HELD_OUT
from aggregator.protocols.additive.reconstruct import Counts, Floats
from anon.study.features import Feature

STRENGTH, WEAKER, STRONGER, GROWTH, RIGHT = 0.05, 1.3, 1.5, 0.6, 0.95
"""Of d with eight features; of their number, the power with which d grows; how often staff are right. Chosen so that
the mean miss on 198 of the sets that `benchmarks.forecasts` had seen is 0; it judges on others."""

LOADINGS, SHARED, CONCENTRATION, THRESHOLDS = (0.7, 1.0), 2.0, 1.0, 1 / 3
"""The least and most of a study's largest loading; the mean weight of a loading in its feature's effect; the mean of
ln(effect)'s spread; the share of numbers whose effect is a step. Fitted on how much of the signal the best column
has, the second and the mean one, in the sets of `benchmarks.forecast_sets`."""

BEND = 0.7
"""The most that the part of a number's effect which goes with its square weighs, against 1 for the line."""

_GOLDEN = (sqrt(5) - 1) / 2
_LEVELS = 64
_PARTS = 4
"""Of a number without declared cuts, where the signal is measured."""
_BEYOND = 5
"""Standard deviations of chi-square."""
_SEARCHED = 2000
"""So many people suffice to find how strong the signal must be."""


@frozen
class Assumptions:
    """How strong the label's signal is assumed to be (None: as in one study or another), and how many people are made
    up. `file`: last year's people, who take the place of made-up ones."""

    signal: float | None = None
    people: int = 5_000
    test: int = 2_000
    file: People | None = None

    def signal_of(self, number: int, features: int) -> float:
        """Of the numbered population of a study of so many features: the next of a sequence that soon covers all
        strengths evenly."""
        if self.signal is not None:
            return self.signal
        place = float(ndtri((number * _GOLDEN + 0.5) % 1))
        middle = STRENGTH + GROWTH * log(features / 8)
        return float(ndtr(exp(middle + (STRONGER if place > 0 else WEAKER) * place) / sqrt(2)))


MADE_UP = Assumptions()


class Declaration(Protocol):
    """The part of a study that its made-up people follow from."""

    @property
    def features(self) -> tuple[Feature, ...]: ...

    @property
    def learning(self) -> BaseRate: ...


class BaseRate(Protocol):
    """The declared share of positive labels."""

    @property
    def base_rate(self) -> float: ...


def made_up(
    study: Declaration, assumed: Assumptions, generator: np.random.Generator, number: int = 0
) -> tuple[People, People]:
    """Peers and people to score on, of one made-up population; of last year's file, a new split of it."""
    if assumed.file is not None:
        kept, held = split(len(assumed.file), HELD_OUT, generator)
        return assumed.file.take(kept), assumed.file.take(held)
    count = assumed.people + assumed.test
    common = generator.standard_normal(count)
    most, shared = generator.uniform(*LOADINGS), SHARED * generator.exponential()
    spread = CONCENTRATION * generator.exponential()
    total, coarse = np.zeros(count), np.zeros(count)
    columns: dict[str, FeatureColumn] = {}
    for feature in study.features:
        loading = generator.uniform(-most, most)
        told = feature.kind == "numeric"  # of categories `_column` has the declared signs already
        expects = (feature.expects[0] if told else 1) if feature.expects else 0
        effect = shared * loading + generator.standard_normal() if generator.random() < 2 / 3 or expects else 0.0
        effect *= exp(spread * generator.standard_normal())
        if effect * expects * (1 if not (told and expects) or generator.random() < RIGHT else -1) < 0:
            effect, loading = -effect, -loading
        leaning = loading * common + np.sqrt(1 - loading**2) * generator.standard_normal(count)
        columns[feature.name], seen = _column(feature, ndtr(leaning), generator)
        total += effect * seen
        coarse += effect * _coarse(feature, columns[feature.name], seen)
    labels = _labels(total, coarse, study.learning.base_rate, assumed.signal_of(number, len(study.features)), generator)
    everyone = People(columns, labels)
    order = np.arange(count)
    return everyone.take(order[: assumed.people]), everyone.take(order[assumed.people :])


def tells(people: People) -> bool:
    """True if anything in these many people goes with the label: chi-square of all features, far beyond chance."""
    rate, excess, levels = float(people.labels.mean()), 0.0, 0
    for column in people.columns.values():
        counts = np.bincount(column.index)
        positive = np.bincount(column.index, weights=people.labels)
        met = counts > 0
        excess += float(((positive - counts * rate)[met] ** 2 / (counts[met] * max(rate * (1 - rate), 1e-9))).sum())
        levels += int(met.sum())
    return excess - levels > _BEYOND * sqrt(2 * levels)


def _column(feature: Feature, at: Floats, generator: np.random.Generator) -> tuple[FeatureColumn, Floats]:
    """Values whose ranks are `at`, and what of them goes with the label (standardised)."""
    if feature.kind == "categorical":
        shares = _shares(feature, len(feature.categories), generator)
        index = np.searchsorted(np.cumsum(shares)[:-1], at).astype(np.int64)
        effects = generator.standard_normal(len(feature.categories))
        if feature.expects:
            effects = np.abs(effects) * feature.expects * (1 if generator.random() < RIGHT else -1)
        return FeatureColumn(tuple(feature.categories), index), _standard(effects[index])
    bend = generator.uniform(-BEND, BEND)
    index = np.minimum((at * _LEVELS).astype(np.int64), _LEVELS - 1)
    line = _standard(index.astype(float))
    places = _places(feature, generator)
    values = tuple(_value(feature, float(position)) for position in places)
    if generator.random() < THRESHOLDS:
        return FeatureColumn(values, index), _standard((at > generator.uniform(0.1, 0.9)).astype(float))
    return FeatureColumn(values, index), _standard(line + bend * _standard(line**2))


def _coarse(feature: Feature, column: FeatureColumn, seen: Floats) -> Floats:
    """The part of `seen` that is left in categories: its mean in each. Shape (people,)."""
    if feature.kind == "categorical":
        return seen
    part = np.searchsorted(feature.cuts, column.numbers) if feature.cuts else np.arange(_LEVELS) * _PARTS // _LEVELS
    place = part[column.index]
    means: Floats = np.bincount(place, weights=seen) / np.maximum(np.bincount(place), 1)
    return means[place]


def _places(feature: Feature, generator: np.random.Generator) -> Floats:
    """Where in the range, 0 to 1 and increasing, each of `_LEVELS` equally common levels lies."""
    ranks = (np.arange(_LEVELS) + 0.5) / _LEVELS
    skew = float(np.exp(generator.uniform(-0.5, 1.5)))
    if not feature.cuts:
        skewed: Floats = ranks**skew
        return skewed
    shares = _shares(feature, len(feature.cuts) + 1, generator)
    ends = [0.0, *(_place(feature, cut) for cut in feature.cuts), 1.0]
    reached = np.concatenate([[0.0], np.cumsum(shares)])
    part = np.minimum(np.searchsorted(reached[1:-1], ranks), len(shares) - 1)
    within = (ranks - reached[part]) / shares[part]
    low, high = np.array(ends)[part], np.array(ends)[part + 1]
    places: Floats = low + (high - low) * np.clip(within, 0, 1) ** skew
    return places


def _shares(feature: Feature, count: int, generator: np.random.Generator) -> Floats:
    found = np.array(feature.shares[:count]) if feature.shares else generator.dirichlet(np.full(count, 2.0))
    shares: Floats = found / found.sum()
    return shares


def _place(feature: Feature, value: float) -> float:
    low, high = feature.range
    if feature.scale == "log":
        return (log1p(value) - log1p(low)) / (log1p(high) - log1p(low))
    return (value - low) / (high - low)


def _value(feature: Feature, position: float) -> float:
    low, high = feature.range
    if feature.scale == "log":
        return expm1(log1p(low) + position * (log1p(high) - log1p(low)))
    return low + position * (high - low)


def _standard(values: Floats) -> Floats:
    spread = values.std()
    standard: Floats = (values - values.mean()) / spread if spread > 0 else np.zeros(len(values))
    return standard


def _labels(total: Floats, coarse: Floats, rate: float, signal: float, generator: np.random.Generator) -> Counts:
    """Labels by a logistic of the total, with the declared share of positive ones: stretched until `coarse`, which is
    left of it in categories, ranks as well as `signal`, or as well as it can."""
    direction = _standard(total)
    low, high = 0.0, 20.0
    order = np.argsort(coarse[:_SEARCHED])
    for _ in range(15):
        strength = (low + high) / 2
        chance = _chances(strength * direction[:_SEARCHED], rate)
        low, high = (strength, high) if _expected_auc(chance[order]) < signal else (low, strength)
    return (generator.random(len(total)) < _chances(low * direction, rate)).astype(np.int64)


def _chances(log_odds: Floats, rate: float) -> Floats:
    """1/(1 + exp(-(log_odds + b))) with b such that the mean is `rate`."""
    low, high, against, wanted = -60.0, 60.0, np.exp(-log_odds), rate * len(log_odds)
    for _ in range(25):
        middle = (low + high) / 2
        chance: Floats = 1 / (1 + against * exp(-middle))
        low, high = (middle, high) if float(chance.sum()) < wanted else (low, middle)
    return chance


def _expected_auc(ordered: Floats) -> float:
    """Of people in this order with these chances of a positive label."""
    below = np.cumsum(1 - ordered) - (1 - ordered) / 2
    return float(ordered @ below / (ordered.sum() * (1 - ordered).sum()))
