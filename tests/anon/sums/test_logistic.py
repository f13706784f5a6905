"""Weights lie within `SLACK` of the exact minimum whatever the records are. One record moves them as far as stated.

No solver is the oracle: the gradient with 40 digits certifies the distance (`tests.support.exact_logistic`).
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from math import hypot, sqrt
from random import Random

import pytest

from anon.errors import InvalidValue
from anon.protocols.vectors.logistic import LARGEST, LEAST, SLACK, fit, longest_weights, moved_by_one, steps_for
from tests.support.climbing import Genes, climbed
from tests.support.exact_logistic import certified
from tests.support.tries import every

STRENGTHS = [LARGEST, Fraction(10), Fraction(1), Fraction(1, 10), Fraction(1, 1000), Fraction(1, 10_000), LEAST]
Records = tuple[list[list[float]], list[int]]


def unit(spring: Random, size: int) -> list[float]:
    """A direction, as long as a record's row can be."""
    drawn = [spring.gauss(0, 1) for _ in range(size)]
    length = sqrt(sum(value * value for value in drawn)) * (1 + 2**-40)
    return [value / length for value in drawn]


def cases(strength: Fraction) -> dict[str, Records]:
    spring, slow = Random(1), min(1.0, 2 * sqrt(strength))  # at 2 sqrt(lambda) the weights are longest
    return {
        "one row of norm 1": ([[1.0]], [1]),
        "opposite labels": ([[1.0], [1.0]], [1, 0]),
        "as smooth as stated": ([[1.0]] * 20, [1] * 11 + [0] * 9),
        "a slow direction": ([[slow]], [1]),
        "slow and fast": ([[slow, 0.0], [0.0, 1.0], [0.0, -0.9]], [1, 1, 0]),
        "all alike": ([unit(spring, 3) for _ in range(30)], [1] * 30),
        "by chance": ([unit(spring, 3) for _ in range(30)], [spring.randrange(2) for _ in range(30)]),
        "separable": ([[sign * 0.6, 0.8 * at / 30] for at in range(30) for sign in (1, -1)], [1, 0] * 30),
        "nothing": ([[0.0, 0.0]] * 3, [1, 0, 1]),
    }


@pytest.mark.slow
@pytest.mark.parametrize(("strength", "fewest"), every(3, STRENGTHS, [1, 100]), ids=str)
def test_the_steps_suffice_for_any_records(strength: Fraction, fewest: int) -> None:
    """And the weights are no longer than stated."""
    for name, (rows, labels) in cases(strength).items():
        weights = fit(rows, labels, strength, fewest)
        assert certified(rows, labels, strength, weights, fewest) <= SLACK, name
        assert hypot(*weights) <= longest_weights(strength), name


@pytest.mark.slow
def test_ten_thousand_rows_are_added_up_within_the_slack() -> None:
    """In an order in which partial sums grow by half of the rows before they fall."""
    rows = [[0.9, 0.1]] * 5000 + [[1.0, 0.0]] * 5000
    labels, strength = [1] * 5000 + [0] * 5000, Fraction(1, 10)
    assert certified(rows, labels, strength, fit(rows, labels, strength)) <= SLACK


def test_the_certificate_is_of_the_objective_itself() -> None:
    """From the weights the objective, with 40 digits, rises by (lambda / 2) |step|^2 at least in every direction."""
    strength, spring = Fraction(1, 10), Random(2)
    rows, labels = cases(strength)["by chance"]
    weights = fit(rows, labels, strength)
    slope = certified(rows, labels, strength, weights) * float(strength)

    def height(at: Sequence[float]) -> Decimal:
        with localcontext(prec=40):
            losses = Decimal(0)
            for row, label in zip(rows, labels, strict=True):
                odds = sum((Decimal(a) * Decimal(b) for a, b in zip(at, row, strict=True)), Decimal(0))
                losses += (1 + (odds * (1 - 2 * label)).exp()).ln()
            return losses / len(rows) + sum((Decimal(entry) ** 2 for entry in at), Decimal(0)) / 20

    for size in (1e-6, 1e-3, 1.0):
        step = [size * entry for entry in unit(spring, 3)]
        rise = height([a + b for a, b in zip(weights, step, strict=True)]) - height(weights)
        # the sum of weights and step is rounded by 1e-16, on a slope of size lambda + 1/4
        assert rise >= Decimal((0.05 * size - slope) * size * (1 - 1e-9)) - Decimal(1e-15 * size)


@pytest.mark.parametrize("strength", STRENGTHS, ids=str)
def test_the_steps_are_the_fewest_of_the_contraction(strength: Fraction) -> None:
    """(2 / lambda) log 2 (1 - sqrt(lambda / (1/4 + lambda)))^k is at most (SLACK / 2)^2, and not one step earlier."""
    with localcontext(prec=40):
        mu = Decimal(strength.numerator) / strength.denominator
        start = 2 * Decimal(2).ln() / mu
        kept = 1 - (mu / (mu + Decimal("0.25"))).sqrt()
        wanted = (Decimal(SLACK.numerator) / SLACK.denominator / 2) ** 2
        steps = steps_for(strength)
        assert start * kept**steps <= wanted < start * kept ** (steps - 1)


def test_weights_depend_on_no_order() -> None:
    """Each sum is rounded once: so neither rows nor columns add to the rounding, however many there are."""
    spring = Random(3)
    rows, labels = [unit(spring, 7) for _ in range(50)], [spring.randrange(2) for _ in range(50)]
    weights = fit(rows, labels, Fraction(1, 10))
    assert fit(rows[::-1], labels[::-1], Fraction(1, 10)) == weights
    assert fit([row[::-1] for row in rows], labels, Fraction(1, 10)) == weights[::-1]


def test_lambda_has_two_ends_and_there_is_a_row() -> None:
    for strength in (Fraction(0), Fraction(-1), LEAST / 2, 2 * LARGEST):
        with pytest.raises(InvalidValue, match="lambda: expected a number from 1/100000 to 1000"):
            steps_for(strength)
    for rows, labels in (([], []), ([[1.0]], []), ([[1.0]], [0, 1])):
        with pytest.raises(InvalidValue, match="rows: expected"):
            fit(rows, labels, Fraction(1))


def moved(one: Records, other: Records, strength: Fraction, fewest: int) -> float:
    """How far apart the weights of two lists of records are. Those of none are 0."""
    ends = [fit(*records, strength, fewest) if records[0] else [0.0, 0.0] for records in (one, other)]
    return hypot(*(a - b for a, b in zip(*ends, strict=True)))


ENDS = (-1.0, -0.9, -0.4, -0.1, 0.0, 0.1, 0.4, 0.9, 1.0)


def records_of(genes: Genes) -> Records:
    """Three genes a record: a row, shrunk to the ball, and a label."""
    rows, labels = [], []
    for at in range(0, len(genes), 3):
        length = max(1.0, hypot(*genes[at : at + 2])) * (1 + 2**-40)
        rows.append([gene / length for gene in genes[at : at + 2]])
        labels.append(int(genes[at + 2] > 0))
    return rows, labels


@pytest.mark.slow
@pytest.mark.parametrize(("others", "fewest"), [(0, 1), (0, 3), (1, 3), (2, 3), (3, 3), (5, 1)])
def test_a_search_never_passes_the_stated_sensitivity(others: int, fewest: int) -> None:
    """A record in place of another, and one more: below, at and above `fewest`, and after none.

    At lambda 1 weights are short, and gradients differ by hardly more than 1. So the search ends near the half.
    """
    strength, spring = Fraction(1), Random(others)
    limit = float(moved_by_one(strength, fewest))

    def value(genes: Genes) -> float:
        one, other, rest = records_of(genes[3:]), records_of(genes[:3] + genes[6:]), records_of(genes[6:])
        return max(moved(one, other, strength, fewest), moved(one, rest, strength, fewest))

    opposite = [0.3, 0.9, 1, 0.3, -0.9, 1] + [-1.0, 0.0, 1] * others
    drawn = [spring.choice(ENDS) for _ in range(6 + 3 * others)]
    found = climbed([opposite, drawn], ENDS, value, limit)
    assert found >= 0.4 * limit * fewest / max(fewest, others + 1)


@pytest.mark.slow
def test_a_pair_is_known_that_moves_by_95_percent() -> None:
    """Of 2 / (n lambda), with a record in place of another. Only long weights come near it.

    All records but one are (2.5 sqrt(lambda), 0). They hold w at about (R, 0), R = 1 / (2 sqrt(lambda)), and say
    nothing of the second direction: its curvature is lambda alone. The last record is (-a, b) or (-a, -b), a = 1/4.
    Its margin stays below -4, so that its gradient is nearly as long as its row, and hardly bends. The two gradients
    are nearly 2 b apart. The smaller lambda, the longer R, and the smaller is the a that suffices.
    """
    count, strength, ahead = 1000, Fraction(1, 3000), 0.25
    others = [[2.5 * sqrt(strength), 0.0]] * (count - 1)
    above, below = ([*others, [-ahead, side * sqrt(1 - ahead**2)]] for side in (1, -1))
    weights = fit(above, [1] * count, strength)
    mirrored = [weights[0], -weights[1]]
    limit = float(moved_by_one(strength, count))
    for rows, ends in ((above, weights), (below, mirrored)):
        assert certified(rows, [1] * count, strength, ends) <= SLACK
    assert 0.95 * limit <= 2 * abs(weights[1]) - 2 * float(SLACK) and 2 * abs(weights[1]) <= limit
    assert -weights[0] * ahead + weights[1] < -4 and weights[0] > 0.4 / sqrt(strength)
