"""Subset selection beyond what every mechanism is tested for, and the criterion that "auto" chooses by."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from scipy.stats import chi2

from aggregator.lab.simulation.draws import perturbed_counts
from aggregator.protocols.additive.reconstruct import SurveyTally, reconstruct
from aggregator.protocols.tally import tally
from anon.errors import Malformed, Refused
from anon.ldp import (
    MECHANISMS,
    SCALE,
    Mechanism,
    RawCategory,
    build,
    choose,
    choose_for_label,
    label_contrast_error,
    nano,
)
from anon.ldp.choice import best_set_size
from anon.ldp.subset import SetChoice, SubsetSelection, _choices, _rank, _unrank


@pytest.mark.parametrize(("others", "w"), [(1, 0), (1, 1), (5, 0), (5, 2), (7, 7), (8, 3)])
def test_ranks_number_the_sets_of_others(others: int, w: int) -> None:
    sets = [_unrank(rank, others, w) for rank in range(comb(others, w))]
    assert sorted(sets) == sorted(
        {"".join("01"[i in held] for i in range(others)) for held in combinations(range(others), w)}
    )
    assert [_rank(digits, w) for digits in sets] == list(range(len(sets)))


@pytest.mark.parametrize(("m", "w"), [(2, 1), (5, 2), (128, 34), (4096, 1101)])
def test_random_numbers_mean_sets_almost_evenly_and_none_is_left_over(m: int, w: int) -> None:
    for choice in _choices(m, w):
        assert choice.most - choice.fewest <= 1
        assert Fraction(choice.most, choice.fewest) <= 1 + Fraction(1, 2**64)
        assert choice.rank(b"\xff" * choice.size) == choice.sets - 1
        if choice.sets <= 100:
            assert sum(choice.meant_by(rank) for rank in range(choice.sets)) == 1 << 8 * choice.size


@pytest.mark.parametrize(("m", "epsilon"), [(2, "1"), (4, "0.25"), (9, "1"), (128, "1"), (1024, "0.5"), (4096, "4")])
def test_the_size_of_the_set_is_the_best_one_way_rounded(m: int, epsilon: str) -> None:
    built = SubsetSelection.build(m, nano(epsilon))
    near = {min(max(built.w + step, 1), m - 1) for step in (-1, 0, 1)}
    assert built.squared_error() == min(SubsetSelection.of_size(m, w, nano(epsilon)).squared_error() for w in near)


def test_it_matches_or_beats_the_others_at_every_m() -> None:
    """The reason for having it; random response is its case w = 1, so that a tie is only a matter of last digits."""
    for m, epsilon in product((2, 3, 4, 8, 16, 64, 256, 1024), ("0.25", "0.5", "1", "2", "4")):
        errors = {name: float(build(name, m, nano(epsilon)).squared_error()) for name in MECHANISMS}
        assert errors["subset"] <= min(errors.values()) * (1 + 1e-9), (m, epsilon, errors)


def test_a_size_that_is_none_is_refused() -> None:
    for w in (0, 4, -1):
        with pytest.raises(Refused):
            SubsetSelection.of_size(4, w, nano(1))


def test_bytes_with_another_number_of_bits_are_not_counted() -> None:
    mechanism = SubsetSelection.of_size(9, 3, nano(1))
    assert tally(mechanism, b"\xe0\x00\x70\x00").tolist() == [1, 2, 2, 1, 0, 0, 0, 0, 0]
    with pytest.raises(Malformed):
        tally(mechanism, b"\xe0\x00\xf0\x00")


def pair_chances(mechanism: Mechanism) -> list[list[list[float]]]:
    """By enumeration: for each true category, how likely a report supports each pair of categories."""
    m = mechanism.m
    chances = np.zeros((m, m, m))
    size = mechanism.report_size
    for bits in range(2**m):
        data = (bits << -m % 8).to_bytes(size, "big")
        if mechanism.name == "krr":
            if bits >= m:
                continue
            data = bits.to_bytes(2, "big")
        try:
            report = mechanism.parse(data)
        except Malformed:
            continue
        held = np.array(mechanism.tally([report]))
        for value in range(m):
            chances[value] += float(mechanism.likelihood(RawCategory(value, m), report)) * np.outer(held, held)
    return [[list(map(float, row)) for row in one] for one in chances]


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize(("m", "epsilon"), [(2, "1"), (4, "0.25"), (6, "1"), (8, "2")])
def test_joint_and_the_label_contrast_error_by_enumeration(name: str, m: int, epsilon: str) -> None:
    mechanism = build(name, m, nano(epsilon))
    chances = np.array(pair_chances(mechanism))
    first, second = (float(chance) for chance in mechanism.joint())
    for value, one, other in product(range(m), repeat=3):
        if one != other:
            assert chances[value, one, other] == pytest.approx(first if value in (one, other) else second, abs=1e-12)
    gap = (mechanism.p - mechanism.q) / SCALE
    mean = chances.mean(axis=0)
    total = 0.0
    for cell in range(m // 2):
        one, other = 2 * cell, 2 * cell + 1
        total += (mean[one, one] + mean[other, other] - 2 * mean[one, other]) / gap**2
    assert float(label_contrast_error(mechanism, m // 2, 1)) == pytest.approx(total, rel=1e-9)
    assert float(label_contrast_error(mechanism, m // 2, 50)) == pytest.approx(total / 50, rel=1e-9)


def test_auto_has_the_least_label_contrast_error_of_all_mechanisms_and_set_sizes() -> None:
    for m, epsilon in product((2, 4, 8, 16, 32), ("0.25", "1", "2", "4")):
        target = nano(epsilon)
        chosen = label_contrast_error(choose_for_label(m, target), m // 2, 1)
        sizes = [SubsetSelection.of_size(m, w, target) for w in range(1, m)]
        others = [build(name, m, target) for name in MECHANISMS]
        assert float(chosen) <= min(float(label_contrast_error(one, m // 2, 1)) for one in [*others, *sizes]) * (
            1 + 1e-9
        )
        assert 1 <= best_set_size(m, target) < m


def test_what_auto_picks() -> None:
    """Figures of this criterion, so that a change is seen; the histogram's criterion has no label and serves
    binning."""
    picked = {
        epsilon: [choose_for_label(m, nano(epsilon)).name for m in (2, 4, 8, 16, 128)] for epsilon in ("0.25", "1", "4")
    }
    assert picked == {
        "0.25": ["krr", "subset", "subset", "subset", "subset"],
        "1": ["krr", "krr", "subset", "subset", "subset"],
        "4": ["krr", "krr", "krr", "krr", "subset"],
    }
    assert choose(4, nano("0.25")).name == "subset"


@pytest.mark.slow
@pytest.mark.parametrize("estimates", [1000, 4000])
def test_estimates_of_a_contrast_scatter_as_the_criterion_says(estimates: int) -> None:
    """Squares of so many estimates at m = 6; the tolerance is 5 standard errors (false alarm below 1e-6), seeded."""
    source = random.Random(4)
    for name in MECHANISMS:
        mechanism, m, n = build(name, 6, nano("0.5")), 6, 20
        gap = (mechanism.p - mechanism.q) / SCALE
        squares = []
        for _ in range(estimates):
            values = [source.randrange(m) for _ in range(n)]
            counts = mechanism.tally([mechanism.perturb(RawCategory(value, m), source.randbytes) for value in values])
            contrasts = [(counts[2 * cell + 1] - counts[2 * cell]) / (gap * n) for cell in range(3)]
            squares.append(sum(one * one for one in contrasts))
        error = np.std(squares) / len(squares) ** 0.5
        assert abs(np.mean(squares) - float(label_contrast_error(mechanism, 3, n))) < 5 * error, name


@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_simulated_aggregates_have_the_mean_and_covariance_of_real_ones(epsilon: str) -> None:
    """Chi-square of the mean over 3,000 draws at 1e-6; covariances within 6 standard errors; seeded."""
    mechanism, true, draws = SubsetSelection.build(6, nano(epsilon)), np.array([7, 0, 3, 1, 0, 9]), 3000
    n, m = int(true.sum()), 6
    generator = np.random.default_rng(11)
    drawn = np.array([perturbed_counts(mechanism, true, generator) for _ in range(draws)])
    assert set(drawn.sum(axis=1)) == {n * mechanism.w}
    pairs = np.einsum("v,vij->ij", true, np.array(pair_chances(mechanism)))
    means = [np.array(pair_chances(mechanism))[value].diagonal() for value in range(m)]
    covariance = pairs - sum(true[value] * np.outer(means[value], means[value]) for value in range(m))
    off = drawn.mean(axis=0) - pairs.diagonal()
    statistic = off @ np.linalg.pinv(covariance / draws) @ off
    assert statistic < chi2.isf(1e-6, m - 1)
    spread = np.sqrt((np.outer(covariance.diagonal(), covariance.diagonal()) + covariance**2) / draws)
    assert (abs(np.cov(drawn.T) - covariance) < 6 * spread).all()


def test_the_stated_covariance_is_that_of_the_estimates() -> None:
    """With n so large that the counts are as expected: the stated covariance against the exact one."""
    mechanism, shares, n = build("subset", 4, nano("0.5")), np.array([0.4, 0.1, 0.3, 0.2]), 10**9
    gap, floor = (mechanism.p - mechanism.q) / SCALE, mechanism.q / SCALE
    counts = np.round(n * (floor + gap * shares)).astype(np.int64)
    found = reconstruct(SurveyTally(0, ("x",), (2,), mechanism, counts, n))
    pairs = np.einsum("v,vij->ij", shares, np.array(pair_chances(mechanism)))
    exact = (pairs - np.outer(pairs.diagonal(), pairs.diagonal())) / (n * gap**2)
    assert np.allclose(found.covariance, exact, rtol=1e-4, atol=0)


@pytest.mark.parametrize(("others", "w"), [(3, 1), (5, 2), (7, 3)])
def test_the_loss_counts_the_likeliest_set(others: int, w: int) -> None:
    """Of one random byte: the sets are unevenly likely, and the bounds are those that occur."""
    choice = SetChoice(others, w, 1)
    meant = [sum(choice.rank(bytes([drawn])) == rank for drawn in range(256)) for rank in range(choice.sets)]
    assert (min(meant), max(meant)) == (choice.fewest, choice.most)
