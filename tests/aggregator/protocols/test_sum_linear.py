"""Published sums of moments and gradients: regressions as numpy and scikit-learn find them, and shrunk by known
noise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from aggregator.lab.simulation.sum_noise import simulated_noise
from aggregator.protocols.sum.moments import products, ridge
from aggregator.protocols.sum.published import NoisySum
from anon.errors import Malformed
from anon.protocols.vectors.columns import Column
from anon.protocols.vectors.gradient import Descent, DescentState, GradientSums
from anon.protocols.vectors.moments import MomentSums

NEXT_TO_NONE = Fraction(1, 10**9)
COLUMNS = (
    Column("a", 1.0, 2.0, 40),
    Column("b", -3.0, 4.0, 60),
    Column("one", 0.0, 1.0, 30),
    Column("t", 10.0, 20.0, 90),
)
DESIGN = MomentSums(COLUMNS, 10**5)


def records(count: int, seed: int) -> list[dict[str, float]]:
    """t = 10 + 3 (a - 1) - 2 (b + 3) + noise."""
    spring = np.random.default_rng(seed)
    a, b = spring.uniform(-1, 3, count), spring.uniform(-7, 1, count)
    t = 10 + 3 * (a - 1) - 2 * (b + 3) + spring.normal(0, 1, count)
    return [{"a": float(x), "b": float(y), "one": 1.0, "t": float(z)} for x, y, z in zip(a, b, t, strict=True)]


def summed(vectors: list[list[int]]) -> list[int]:
    return [sum(entries) for entries in zip(*vectors, strict=True)]


def published(exact: list[int], units: int, sigma_squared: Fraction, seed: int = 0) -> NoisySum:
    drawn = simulated_noise(sigma_squared, 2, len(exact), np.random.default_rng(seed))
    return NoisySum(tuple(one + int(noise) for one, noise in zip(exact, drawn, strict=True)), units, sigma_squared, 2)


def test_without_noise_any_column_is_regressed_as_by_least_squares() -> None:
    rows = records(400, 1)
    noisy = published(summed([DESIGN.vector([row]) for row in rows]), 400, NEXT_TO_NONE)
    z = np.array([DESIGN.integers(row) for row in rows], dtype=float)
    assert products(DESIGN, noisy) == pytest.approx(z.T @ z)
    for target in ("t", "a"):
        at = [column.name for column in COLUMNS].index(target)
        found = ridge(DESIGN, target, noisy)
        weights, *_ = np.linalg.lstsq(np.delete(z, at, axis=1), z[:, at], rcond=None)
        reaches = np.delete([column.reach for column in COLUMNS], at)
        assert np.array(found.weights) == pytest.approx(weights * reaches / COLUMNS[at].reach, rel=1e-5)
    assert ridge(DESIGN, "t", noisy).score({"a": 2.0, "b": -2.0, "one": 1.0}) == pytest.approx(11, abs=0.3)


@pytest.mark.slow
def test_noise_shrinks_weights_and_leaves_no_negative_direction() -> None:
    rows = records(300, 2)
    exact = summed([DESIGN.vector([row]) for row in rows])
    lengths = []
    for deviation in (1, 20_000, 400_000):
        noisy = [published(exact, 300, Fraction(deviation) ** 2, seed) for seed in range(20)]
        lengths.append(np.mean([np.linalg.norm(ridge(DESIGN, "t", one).weights) for one in noisy]))
    assert lengths[0] > lengths[1] > lengths[2]


def test_the_shrunk_regression_predicts_better_than_the_plain_one() -> None:
    """30 studies with much noise: the plain solution of the noisy equations is worse in the mean."""
    rows, others = records(300, 3), records(300, 4)
    exact = summed([DESIGN.vector([row]) for row in rows])
    features = np.array([[COLUMNS[place].real(row[COLUMNS[place].name]) for place in range(3)] for row in others])
    truth = np.array([COLUMNS[3].real(row["t"]) for row in others])
    shrunk, plain = [], []
    for seed in range(30):
        noisy = published(exact, 300, Fraction(60_000) ** 2, seed)
        shrunk.append(np.mean((features @ np.array(ridge(DESIGN, "t", noisy).weights) - truth) ** 2))
        matrix = products(DESIGN, noisy)
        direct = np.linalg.solve(matrix[:3, :3], matrix[:3, 3]) * [40, 60, 30] / 90
        plain.append(np.mean((features @ direct - truth) ** 2))
    assert np.mean(shrunk) < np.mean(truth**2) < np.mean(plain)


def test_columns_that_repeat_one_another_still_have_a_model() -> None:
    design = MomentSums((Column("x", 0.0, 1.0), Column("y", 0.0, 1.0), Column("t", 0.0, 1.0)), 3)
    exact = summed([design.vector([{"x": sign, "y": sign, "t": sign}]) for sign in (1, -1, 1)])
    found = ridge(design, "t", published(exact, 3, NEXT_TO_NONE))
    assert found.weights == pytest.approx((0.5, 0.5), abs=1e-3)


def test_moments_of_another_study_are_refused() -> None:
    noisy = published([0] * DESIGN.length, 1, NEXT_TO_NONE)
    with pytest.raises(Malformed, match="name of a column"):
        ridge(DESIGN, "u", noisy)
    with pytest.raises(Malformed, match="expected 10 products, got 9"):
        products(DESIGN, NoisySum(noisy.values[1:], 1, NEXT_TO_NONE, 2))


GRADIENT = GradientSums(COLUMNS[:3], 2**12, Fraction(2))


def labelled(count: int, seed: int) -> list[tuple[dict[str, float], int]]:
    spring = np.random.default_rng(seed + 1000)
    rows = records(count, seed)
    log_odds = np.array([1.5 * COLUMNS[0].real(row["a"]) - 2 * COLUMNS[1].real(row["b"]) + 0.5 for row in rows])
    return [(row, int(hit)) for row, hit in zip(rows, spring.random(count) < 1 / (1 + np.exp(-log_odds)), strict=True)]


def descended(way: Descent, peers: list[tuple[dict[str, float], int]]) -> DescentState:
    """The standing after the last round, each peer's gradient made by the code of a peer."""
    standing = way.start(3)
    for number in range(way.rounds):
        exact = summed([GRADIENT.vector([member], standing.weights) for member in peers])
        standing = way.after(standing, published(exact, len(peers), way.noise / 2, number).values, GRADIENT.scale)
    return standing


@pytest.mark.slow
def test_without_noise_the_descent_ends_at_the_logistic_regression() -> None:
    peers = labelled(150, 5)
    way = Descent(40, Fraction(4), Fraction(4, 5), 150, 2 * NEXT_TO_NONE, 5)
    weights = way.final(descended(way, peers))
    reals = np.array([[column.real(row[column.name]) for column in GRADIENT.columns] for row, _ in peers])
    other = LogisticRegression(C=1e6, fit_intercept=False).fit(reals, [label for _, label in peers])
    assert np.array(weights) == pytest.approx(other.coef_[0], abs=0.05)


def test_noise_alone_takes_few_steps() -> None:
    """At the size of the noise half of all rounds are taken for noise; without the shrinking, weights walk farther."""
    lengths = []
    for believed in (Fraction(2 * 10**8), Fraction(1, 10**6)):
        way = Descent(10, Fraction(2), Fraction(0), 60, believed, 1)
        walked = []
        for seed in range(20):
            standing = way.start(3)
            for number in range(10):
                drawn = published([0, 0, 0], 60, Fraction(10**8), 100 * seed + number)
                standing = way.after(standing, drawn.values, GRADIENT.scale)
            walked.append(float(np.linalg.norm(standing.weights)))
        lengths.append(np.mean(walked))
    assert lengths[0] < 0.75 * lengths[1]


def test_there_are_as_many_rounds_as_declared() -> None:
    way = Descent(2, Fraction(1), Fraction(0), 10, Fraction(8), 1)
    with pytest.raises(Malformed, match="expected 2 rounds, got 0"):
        way.final(way.start(3))
    last = way.after(way.after(way.start(3), (1, 2, 3), 1), (1, 2, 3), 1)
    with pytest.raises(Malformed, match="in at most 2 rounds"):
        way.after(last, (1, 2, 3), 1)
