"""A test for each erratum of Pathak, Rane and Raj (2010) and Hamm, Cao and Belkin (2016): numbers are those of
docs/errata.md."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from math import exp, hypot, lgamma, log, log1p, prod, sqrt
from pathlib import Path
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from aggregator.protocols.sum.transferred import transferred
from anon.protocols.vectors.averaging import AveragedWeights
from anon.protocols.vectors.columns import Column
from anon.protocols.vectors.logistic import SLACK, fit, moved_by_one
from anon.protocols.vectors.transfer import TransferredVotes
from tests.support.climbing import Genes, apart, climbed, summed
from tests.support.exact_logistic import certified, gradient

ROOT = Path(__file__).resolve().parents[3]
NO_MORE = float(SLACK)
Floats = NDArray[np.float64]


def columns(size: int) -> tuple[Column, ...]:
    return tuple(Column(f"x{place}", 0.0, 1.0) for place in range(size))


def far(one: Sequence[float], other: Sequence[float]) -> float:
    return hypot(*(a - b for a, b in zip(one, other, strict=True)))


def test_every_erratum_of_the_two_tables_has_a_test() -> None:
    text = (ROOT / "docs/errata.md").read_text("utf-8")
    for title, name in (("Pathak, Rane and Raj (2010)", "pathak"), ("Hamm, Cao and Belkin (2016)", "hamm")):
        part = text.partition(f"\n## Errata of {title}\n")[2].partition("\n## ")[0]
        listed = [int(number) for number in re.findall(r"^\| (\d+) \|", part, re.MULTILINE)]
        tested = {int(found[1]) for test in globals() if (found := re.match(rf"test_{name}_(\d+)_", test))}
        assert listed == sorted(tested) == list(range(1, len(listed) + 1)) != []


def test_pathak_1_the_sensitivity_is_that_of_half_the_penalty() -> None:
    """lambda |w|^2 is our penalty for 2 lambda, so it has 1 / (n lambda). For ours that is too little: a pair of 100
    records is known."""
    count, strength, ahead = 100, Fraction(1, 500), 0.5
    printed, halved = float(moved_by_one(strength, count)), float(moved_by_one(2 * strength, count))
    assert halved - 2 * NO_MORE == pytest.approx((printed - 2 * NO_MORE) / 2)
    others, one = [[2.5 * sqrt(strength), 0.0]] * (count - 1), [-ahead, sqrt(1 - ahead**2)]
    ends = [fit([*others, [one[0], side * one[1]]], [1] * count, strength) for side in (1, -1)]
    assert 1.5 * halved < far(*ends) <= printed


def test_pathak_1_it_is_the_sensitivity_of_the_exact_minimum() -> None:
    """Weights whose gradient has norm g may lie g / lambda away: two such sets of weights move by 2 g / lambda more.
    Rows that hardly bend the objective show it, from a solver that takes no step."""
    strength = Fraction(1, 10)
    for side in (1, -1):
        rows = [[side * 0.01]]
        end = fit(rows, [1], strength)
        bound = certified(rows, [1], strength, [0.0])
        assert 0.99 * bound <= abs(end[0]) <= bound + NO_MORE and end[0] * side > 0


def test_pathak_2_coordinates_of_laplace_noise_at_that_scale_are_not_private() -> None:
    """The move has L2 norm S along the diagonal, and the scale is S / epsilon. Exactly, by the set of all outputs that
    lie beyond it in every coordinate: its chance grows by exp(sqrt(d) epsilon)."""
    epsilon, moved = 0.5, 1.0
    for size in (2, 4, 124):
        step, scale = moved / sqrt(size), moved / epsilon
        beyond = (0.5 * exp(-step / scale)) ** size
        assert log(0.5**size / beyond) == pytest.approx(sqrt(size) * epsilon)
        assert 0.5**size > exp(1.4 * epsilon) * beyond


def test_pathak_2_noise_by_the_norm_is_private_at_that_scale() -> None:
    """The density is proportional to exp(-|noise| / scale): by the triangle inequality no output tells more than
    epsilon, and outputs beyond the move tell as much."""
    epsilon, spring = 0.5, Random(7)
    move = [0.5, -0.5, 0.5, 0.5]
    losses = []
    for _ in range(2000):
        output = [spring.gauss(0, 1) for _ in move]
        losses.append(epsilon * abs(hypot(*output) - far(output, move)))
    assert max(losses) <= epsilon * (1 + 1e-12)
    assert epsilon * (hypot(*(2 * entry for entry in move)) - hypot(*move)) == pytest.approx(epsilon)


def test_pathak_3_the_mean_of_k_models_moves_by_a_kth_of_what_one_does() -> None:
    """Exactly, by integers: the other members' weights cancel, whatever they are. So 2 / (n lambda), as printed, is K
    times too large."""
    design = AveragedWeights(columns(2), 2**20, Fraction(1, 10), Fraction(100), 3, "record", 3)
    yes, no, half = ({"x0": 1.0, "x1": 1.0}, 1), ({"x0": 1.0, "x1": 1.0}, 0), ({"x0": 0.5, "x1": -1.0}, 1)
    one, other = design.vector([yes, yes, half]), design.vector([no, yes, half])
    for members in (2, 5, 10):
        others = [design.vector([yes] * (1 + at % 3)) for at in range(members - 1)]
        before, after = summed([one, *others]), summed([other, *others])
        assert [a - b for a, b in zip(before, after, strict=True)] == [a - b for a, b in zip(one, other, strict=True)]
        moved = far(design.mean(before, members), design.mean(after, members)) * sqrt(2)  # in the unit of the rows
        assert moved * members == pytest.approx(sqrt(apart(one, other)) / 2**20)
        assert 0 < moved <= sqrt(design.sensitivity_squared("replace-one")) / 2**20 / members


def census() -> tuple[list[list[float]], list[int]]:
    """100 people of four binary attributes, two columns each, of which 24 are positive. The first attribute is the
    label but for 8 people, the others go with it a little."""
    rows, labels = [], []
    for at in range(100):
        label = int(at < 24)
        traits = [label ^ (at % 12 == 5), int(at % 5 < 2 + label), int(at % 7 < 3 + label), int(at % 2)]
        rows.append([0.5 * (trait == side) for trait in traits for side in (0, 1)])
        labels.append(label)
    return rows, labels


def wrong(weights: Sequence[float]) -> tuple[float, float]:
    """The share of wrong answers, and the largest margin."""
    rows, labels = census()
    margins = [sum(a * b for a, b in zip(weights, row, strict=True)) for row in rows]
    return sum((margin > 0) != label for margin, label in zip(margins, labels, strict=True)) / 100, max(margins)


@pytest.mark.parametrize("strength", [Fraction(1), Fraction(2)], ids=["half the penalty", "as printed"])
def test_pathak_4_at_lambda_1_everybody_is_the_majority(strength: Fraction) -> None:
    """With the classes' balance of Adult. The weights are not 0, but every margin is negative. At lambda .001 the same
    records tell the label."""
    error, largest = wrong(fit(*census(), strength))
    assert error == 0.24 and largest < -0.01
    assert wrong(fit(*census(), Fraction(1, 1000)))[0] <= 0.08


def test_pathak_5_a_scale_by_the_smallest_party_tells_its_size() -> None:
    """Two parties of n and n + 1 records with the same weights: the scales differ, so far outputs tell them apart by
    more than any epsilon."""
    size, epsilon, strength = 4, 0.1, 1.0

    def density(distance: float, records: int) -> float:
        """But for a constant, as a logarithm."""
        scale = 2 / (records * epsilon * strength)
        return -size * log(scale) - distance / scale

    losses = [density(distance, 10) - density(distance, 11) for distance in (1, 100, 10_000)]
    assert losses[0] < losses[1] < losses[2] and losses[2] > 100 * epsilon


def test_pathak_5_a_declared_minimum_tells_nothing() -> None:
    """The bound is a function of the design. A member with fewer records is averaged over the declared minimum;
    averaged over its own it would pass the bound."""
    strength, held = Fraction(1), columns(1)
    yes, no = ({"x0": 1.0}, 1), ({"x0": -1.0}, 1)
    pairs = [([yes] * count, [yes] * (count - 1) + [no]) for count in (1, 2, 5, 9)]
    declared, own = (AveragedWeights(held, 2**20, strength, Fraction(100), few, "record", 9) for few in (5, 1))
    limit, passed = declared.sensitivity_squared("replace-one"), []
    for one, other in pairs:
        assert apart(declared.vector(one), declared.vector(other)) <= limit
        passed.append(apart(own.vector(one), own.vector(other)) > limit)
    assert passed[0] and not passed[-1]


def test_pathak_6_the_smallest_party_can_remove_the_noise() -> None:
    """The sum of all noise vectors, each times its place in the indicator, is that party's own: it has drawn it."""
    sizes, weights, noises = [40, 30, 50], [2, -7, 11], [13, -5, 8]
    picked = sum(noise * (size == min(sizes)) for size, noise in zip(sizes, noises, strict=True))
    published = sum(weights) + len(sizes) * picked
    assert published - len(sizes) * noises[1] == sum(weights) != published


def rising(start: Fraction, count: int) -> Fraction:
    """start (start + 1) ... of so many factors: the moment of this order of a Gamma variable of this shape."""
    return prod((start + at for at in range(count)), start=Fraction(1))


@pytest.mark.parametrize("size", [1, 2, 3, 9, 124])
def test_pathak_7_shares_of_noise_have_the_moments_of_the_whole(size: int) -> None:
    """Exactly, in even moments of the length. Those of sqrt(2 G) Z: the moments of 2 G times those of |Z|^2. Those of
    the density exp(-|noise|): the moments of a Gamma variable of shape d. Gamma variables of m equal parts of a shape
    add up to one of the whole. So do the normal vectors' variances."""
    for power in range(1, 9):
        mixed = 2**power * rising(Fraction(size + 1, 2), power) * 2**power * rising(Fraction(size, 2), power)
        assert mixed == rising(Fraction(size), 2 * power)


def over_gamma(shape: float, value: Callable[[Floats], Floats]) -> float:
    """The mean of a function of a Gamma variable, by the trapezoid rule over its logarithm."""
    grid = np.linspace(-max(30 / shape, 40), 5, 40_001)
    weights = np.exp(shape * grid - np.exp(grid) - lgamma(shape)) * (grid[1] - grid[0])
    return float(weights @ value(np.exp(grid)))


@pytest.mark.parametrize("parts", [1, 4, 10])
def test_pathak_7_the_characteristic_function_is_a_product_over_shares(parts: int) -> None:
    """(1 + |t|^2)^(-(d + 1) / 2), by integrals: of the density in one and three dimensions, and of each share."""
    for slope in (0.3, 1.0, 2.5):
        base = 1 + slope**2

        def in_one(radius: Floats, slope: float = slope) -> Floats:
            return np.cos(slope * radius)

        def in_three(radius: Floats, slope: float = slope) -> Floats:
            return np.sin(slope * radius) / (slope * radius)

        def share(drawn: Floats, slope: float = slope) -> Floats:
            return np.exp(-drawn * slope**2)

        for size, wave in ((1, in_one), (3, in_three)):
            assert over_gamma(size, wave) == pytest.approx(base ** (-(size + 1) / 2), abs=1e-9)
            assert over_gamma((size + 1) / (2 * parts), share) ** parts == pytest.approx(base ** (-(size + 1) / 2))


def near(distance: float, size: int, shares: Fraction) -> float:
    """The density at this distance from 0 of a part of all shares."""
    return over_gamma(
        float((size + 1) * shares / 2),
        lambda drawn: np.exp(-(distance**2) / (4 * drawn) - size / 2 * np.log(4 * np.pi * drawn)),
    )


@pytest.mark.parametrize(("size", "parts"), [(2, 3), (4, 5), (4, 10), (6, 3)])
def test_pathak_7_without_a_few_shares_the_density_has_a_pole(size: int, parts: int) -> None:
    """Where (d + 1) k / m <= d for k shares of m. A move takes the pole elsewhere, so no epsilon bounds the ratio of
    the two densities. Up to d + 1 shares, one that is missing, or known to a party, is enough."""
    whole = [near(distance, size, Fraction(1)) for distance in (1e-2, 1e-4)]
    assert whole[0] == pytest.approx(exp(-0.01 + 0.0001) * whole[1], rel=1e-6)
    for lost in range(1, 4 if parts == 10 else 2):
        kept = Fraction(parts - lost, parts)
        first, second, third = (near(distance, size, kept) for distance in (1e-2, 1e-3, 1e-4))
        grows = (size + 1) * kept <= size
        assert (third - second > 0.9 * (second - first)) is grows and grows is (lost >= Fraction(parts, size + 1))


def people(side: int) -> list[tuple[dict[str, object], int]]:
    return [({"x0": 1.0, "x1": 1.0}, side)] * 20


def test_hamm_1_the_unit_is_a_party_and_not_a_record() -> None:
    """All records of a party move its weights by more than one record may. Votes have no bound but that of a party:
    the number of its records is not in it, and the votes of any records fit."""
    record, person = (
        AveragedWeights(columns(2), 1000, Fraction(1, 10), Fraction(1), 20, unit, 20) for unit in ("record", "person")
    )
    moved = apart(record.vector(people(1)), record.vector(people(0)))
    assert record.sensitivity_squared("replace-one") < moved <= person.sensitivity_squared("replace-one")
    votes = [TransferredVotes(columns(2), 1000, 1, rows) for rows in (1, 22, 10_000)]
    assert len({one.sensitivity_squared("replace-one") for one in votes}) == 1
    turned = apart(*(votes[1].vector([vote], [votes[1].row({"x0": 1.0, "x1": 1.0})]) for vote in (0, 1)))
    assert 0.99 * 1000**2 <= turned <= votes[1].sensitivity_squared("replace-one")


def voted(votes: Sequence[Sequence[int]], rows: Sequence[Sequence[float]], strength: Fraction) -> list[float]:
    """The minimum of `soft`: the mean loss over all rows and members, each with its vote."""
    return fit([*rows] * len(votes), [vote for member in votes for vote in member], strength)


@pytest.mark.slow
def test_hamm_2_both_sensitivities_are_halved_for_the_logistic_loss() -> None:
    """l(-z) - l(z) = z. One member's votes move the minimum of `soft` by 1 / (M lambda), and that of the majority by
    1 / lambda."""
    for odds in (-3.0, -0.5, 0.0, 2.0):
        assert log1p(exp(odds)) - log1p(exp(-odds)) == pytest.approx(odds)
    for strength, members in product((Fraction(1, 10), Fraction(10)), (1, 2, 3)):
        limit, spring = float(1 / (members * strength)) + 2 * NO_MORE, Random(members)

        def value(genes: Genes, members: int = members, strength: Fraction = strength) -> float:
            rows = [[gene / sqrt(2) for gene in genes[at : at + 2]] for at in (0, 2)]
            votes = [[int(gene > 0) for gene in genes[at : at + 2]] for at in range(4, 6 + 2 * members, 2)]
            return far(voted(votes[1:], rows, strength), voted([*votes[2:], votes[0]], rows, strength))

        alike = [1.0] * 6 + [-1.0] * (2 * members)
        found = climbed([alike, [spring.choice((-1.0, 1.0)) for _ in alike]], (-1.0, -0.3, 0.3, 1.0), value, limit, 40)
        assert found >= 0.95 * limit or strength < 1  # near 0 the objective bends by 1/4, beside lambda


CROSSED = [[0.6, 0.0], [0.0, 0.6], [0.3, 0.3], [0.3, 0.3], [0.2, -0.7]]
"""The first two rows add up to what the next two do."""


def test_hamm_3_soft_depends_on_the_votes_by_s_alone() -> None:
    """Other votes with the same s have the same minimum, which s alone gives. The gradient is that of half votes, less
    s. So noise in s is for 1 / M, and lambda is chosen afterwards."""
    design, strength = TransferredVotes(columns(2), 2**20, 5), Fraction(1, 10)
    one, other, rest = [1, 1, 0, 0, 1], [0, 0, 1, 1, 1], [1, 0, 1, 0, 0]
    ends = [voted([votes, rest], CROSSED, strength) for votes in (one, other)]
    mean = design.mean(summed([design.vector(votes, CROSSED) for votes in (one, rest)]), 2)
    assert far(*ends) <= 2 * NO_MORE and far(ends[0], transferred(CROSSED, mean, strength)) < 2**-18 / float(strength)
    at = [0.7, -1.9]
    slope = gradient(CROSSED * 2, [*one, *rest], strength, at)
    half = gradient(CROSSED * 2, [1] * 5 + [0] * 5, strength, at)
    assert [float(a - b) for a, b in zip(half, slope, strict=True)] == pytest.approx(mean, abs=2**-19)
    for members in (1, 4, 1000):
        moved = sqrt(design.sensitivity_squared("replace-one")) / (members * 2**20)
        assert moved == pytest.approx(1 / members, rel=1e-5)


def test_hamm_4_no_votes_are_collected() -> None:
    """A contribution is d numbers, not N votes, and different votes have the same ones. Of those a teller sees a share:
    all shares but one are uniform (`tests/anon/vdaf/test_vdaf_view.py`)."""
    design = TransferredVotes(columns(2), 2**20, 5)
    one, other = (design.vector(votes, CROSSED) for votes in ([1, 1, 0, 0, 1], [0, 0, 1, 1, 1]))
    assert one == other and len(one) == design.length == 2
