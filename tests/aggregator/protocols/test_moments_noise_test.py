"""Sums of products against noise alone: p-values where nothing goes with the target, errors that repetitions have, and
models that say which they are."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from attrs import evolve
from scipy.stats import kstest

from aggregator.protocols.additive.noise_test import LEVEL
from aggregator.protocols.additive.reconstruct import Floats
from aggregator.protocols.sum.moments import ridge, ridge_errors
from aggregator.protocols.sum.moments_noise_test import chance_of_products
from aggregator.protocols.sum.published import NoisySum
from anon.errors import Malformed
from anon.protocols.vectors.columns import CONSTANT, Column
from anon.protocols.vectors.moments import MomentSums

REACH = 16
MULTIPLIER = 4.2
"""Of the sensitivity: the noise of each of two tellers at epsilon 1 and delta 1e-6, about."""


def design_of(features: int, norm: float = 1.0, weight: int = 1) -> MomentSums:
    names = [CONSTANT, *(f"x{number}" for number in range(features))]
    columns = (*(Column(name, 0.0, 1.0, REACH) for name in names), Column("y", 0.0, 1.0, REACH * weight))
    return MomentSums(columns, max(1, int(norm**2 * sum(column.reach**2 for column in columns))))


def records(spring: np.random.Generator, design: MomentSums, count: int, middle: float, share: float) -> Floats:
    """Features that go together, around a middle, and a target that goes with none, as integers that are shrunk."""
    features = len(design.columns) - 2
    alike, own = spring.normal(0, 0.2, (count, 1)), spring.normal(0, 0.3, (count, features))
    x = np.clip(middle + alike + own, -1, 1)
    y = np.where(spring.random(count) < share, 1.0, -1.0)
    z = np.rint(np.column_stack([np.ones(count), x, y]) * [column.reach for column in design.columns])
    shrunk = np.minimum(1.0, np.sqrt(design.radius_squared / (z**2).sum(axis=1)))
    found: Floats = np.trunc(z * shrunk[:, None])
    return found


def published(spring: np.random.Generator, design: MomentSums, z: Floats, multiplier: float = MULTIPLIER) -> NoisySum:
    """With normal noise: a draw of it is quicker than one of the tellers' own."""
    exact = (z.T @ z)[np.triu_indices(len(design.columns))]
    sigma = multiplier * design.sensitivity_squared("replace-one") ** 0.5
    noisy = np.rint(exact + spring.normal(0, sigma * 2**0.5, len(exact)))
    return NoisySum(tuple(map(int, noisy)), len(z), Fraction(sigma**2), 2)


def chances(many: int, people: int, design: MomentSums, middle: float, share: float, multiplier: float) -> Floats:
    spring = np.random.default_rng(people)
    drawn = (published(spring, design, records(spring, design, people, middle, share), multiplier) for _ in range(many))
    return np.array([chance_of_products(design, noisy) for noisy in drawn])


@pytest.mark.slow
@pytest.mark.parametrize(
    "people, design, middle, share, multiplier",
    [
        (300, design_of(4), 0.2, 0.3, MULTIPLIER),
        (1000, design_of(12), 0.2, 0.3, MULTIPLIER),
        (1000, design_of(8, norm=0.5), 0.2, 0.3, MULTIPLIER / 2),
        (2000, design_of(8, norm=0.5), 0.2, 0.3, MULTIPLIER),
        (5000, design_of(12), 0.2, 0.3, MULTIPLIER),
    ],
)
def test_chances_are_uniform_where_nothing_goes_with_the_target(
    people: int, design: MomentSums, middle: float, share: float, multiplier: float
) -> None:
    """Kolmogorov and Smirnov at 1 in 1,000."""
    assert kstest(chances(1000, people, design, middle, share, multiplier), "uniform").pvalue > 0.001


@pytest.mark.slow
def test_alarms_are_more_where_features_are_published_with_much_more_noise_than_the_target() -> None:
    """.0263 of 12,000 studies, where .02 is promised: the features' covariance is as noisy as people are. Of 2,000 more
    than .04 are once in 5,000 seeds."""
    found = chances(2000, 1000, design_of(4, weight=3), 0.2, 0.5, MULTIPLIER / 2)
    assert np.mean(found <= LEVEL) <= 0.04


@pytest.mark.slow
@pytest.mark.parametrize("people, features, norm", [(100, 12, 1.0), (300, 12, 1.0), (300, 4, 0.5), (1000, 12, 1.0)])
def test_alarms_stay_rare_where_columns_and_target_are_far_from_their_centres(
    people: int, features: int, norm: float
) -> None:
    """A prior that leaned on the noise in the features' means made a third of such studies alarms. Of 20,000 with 300
    people and 12 features .0197 are: 1,000 of them have more than .034 once in 1,000 seeds."""
    found = chances(1000, people, design_of(features, norm), 0.5, 0.95, MULTIPLIER)
    assert np.mean(found <= LEVEL) <= 0.034


def connected(spring: np.random.Generator, design: MomentSums, count: int, strength: float = 4) -> Floats:
    """The target goes with the first feature, half as much with the second, and with no other."""
    features = len(design.columns) - 2
    x = np.clip(spring.normal(0, 0.4, (count, features)), -1, 1)
    y = np.where(spring.random(count) < 1 / (1 + np.exp(strength * (x[:, 1] / 2 - x[:, 0]))), 1.0, -1.0)
    found: Floats = np.rint(np.column_stack([np.ones(count), x, y]) * REACH)
    return found


def test_a_connection_is_found_and_its_absence_is_not() -> None:
    design, spring = design_of(4), np.random.default_rng(1)
    z = connected(spring, design, 2000)
    assert chance_of_products(design, published(spring, design, z)) <= 0.001
    z[:, -1] = spring.permutation(z[:, -1])
    assert chance_of_products(design, published(spring, design, z)) > LEVEL


def test_without_a_feature_nothing_is_found() -> None:
    design = MomentSums((Column(CONSTANT, 0.0, 1.0, REACH), Column("y", 0.0, 1.0, REACH)), 2 * REACH**2)
    assert chance_of_products(design, NoisySum((5, 5, 5), 5, Fraction(1), 2)) == 1


@pytest.mark.parametrize("place", [1, 7, 20])
def test_a_sum_that_no_members_make_shows_nothing(place: int) -> None:
    """A liar under masks adds a number of any size to an entry."""
    design, spring = design_of(4), np.random.default_rng(1)
    noisy = published(spring, design, connected(spring, design, 2000))
    assert chance_of_products(design, noisy) <= 0.001
    for added in (10**7, 2**90):
        values = [value + added * (number == place) for number, value in enumerate(noisy.values)]
        assert chance_of_products(design, evolve(noisy, values=tuple(values))) == 1


def test_sums_of_another_length_are_refused() -> None:
    with pytest.raises(Malformed, match="expected 21 products"):
        chance_of_products(design_of(4), NoisySum((1, 2), 5, Fraction(1), 2))


def deviations(found: Sequence[Sequence[float]]) -> Floats:
    spread: Floats = np.std(np.array(found), axis=0)
    return spread


@pytest.mark.slow
@pytest.mark.parametrize("people, multiplier", [(2000, MULTIPLIER), (2000, 1e-3)])
def test_errors_are_those_of_repeated_studies(people: int, multiplier: float) -> None:
    design, spring = design_of(4), np.random.default_rng(7)
    weights, errors = [], []
    for _ in range(400):
        noisy = published(spring, design, connected(spring, design, people, 1.5), multiplier)
        weights.append(ridge(design, "y", noisy).weights)
        errors.append(ridge_errors(design, "y", noisy))
    assert deviations(weights) == pytest.approx(np.mean(errors, axis=0), rel=0.15)
