"""Published sums of tables: moments and their noise as the people and the parties make them, and the model they
give."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from attrs import evolve
from scipy.stats import binom, chi2, kstest

from aggregator.lab.simulation.sum_noise import simulated_noise
from aggregator.protocols.additive.learner import SHIFTS, TAUS, fit, indicator_covariance, measurements, refit
from aggregator.protocols.additive.model import coordinates_of
from aggregator.protocols.additive.moments import Coordinates, NoisyMoments
from aggregator.protocols.additive.noise_test import p_value
from aggregator.protocols.additive.reconstruct import Floats
from aggregator.protocols.additive.results import LearnedStudy, Subject
from aggregator.protocols.sum.published import NoisySum
from aggregator.protocols.sum.table_moments import SummedMoments, gather_sums
from aggregator.protocols.sum.tables import learn_tables
from anon.errors import Malformed
from anon.protocols.models.tables import from_json
from anon.protocols.vectors.tables import Block, TableSums, tables_of
from anon.study.features import Feature, Label, Learning
from tests.support.tries import every

NAMES, CARDS = ("one", "twin", "other"), (3, 3, 2)
FEATURES = tuple(
    Feature(name, "categorical", name, "SELECT 1", str(0), categories=tuple(str(place) for place in range(card)))
    for name, card in zip(NAMES, CARDS, strict=True)
)
SUBJECT = Subject("00" * 32, "title", Label("y", "y", "SELECT 1", ("1",), ("0",), "negative"), FEATURES, {})
LEARNING = Learning("additive", "soft", "auc", 0, 0.3)
SINGLES = tables_of(dict(zip(NAMES, CARDS, strict=True)))
PAIRS = tables_of(dict(zip(NAMES, CARDS, strict=True)), [("one", "twin"), ("one", "other"), ("twin", "other")])
NEXT_TO_NONE = Fraction(1, 10**9)


def people(count: int, seed: int, effect: float = 0.4) -> np.ndarray:
    """Rows one, twin, other, label: `twin` is `one` in four of five, `other` goes with the label half as much."""
    spring = np.random.default_rng(seed)
    one, other = spring.choice(3, count, p=[0.5, 0.3, 0.2]), spring.integers(0, 2, count)
    twin = np.where(spring.random(count) < 0.8, one, spring.choice(3, count, p=[0.5, 0.3, 0.2]))
    label = (spring.random(count) < 0.2 + effect * (one == 0) + effect / 2 * other).astype(int)
    return np.array([one, twin, other, label])


def counted(design: TableSums, columns: np.ndarray) -> list[int]:
    """The exact sum of everybody's contribution, each kind of person once."""
    kinds, often = np.unique(columns, axis=1, return_counts=True)
    total = np.zeros(design.length, dtype=np.int64)
    for kind, times in zip(kinds.T.tolist(), often.tolist(), strict=True):
        total += times * np.array(design.vector(dict(zip(NAMES, kind[:3], strict=True)), kind[3]))
    return [int(cell) for cell in total]


def noisy(design: TableSums, columns: np.ndarray, sigma_squared: Fraction, seed: int, parties: int = 2) -> NoisySum:
    drawn = simulated_noise(sigma_squared, parties, design.length, np.random.default_rng(seed))
    values = tuple(exact + int(one) for exact, one in zip(counted(design, columns), drawn, strict=True))
    return NoisySum(values, columns.shape[1], sigma_squared, parties)


def moments_of(design: TableSums, published: NoisySum, rate: float = 0.5) -> SummedMoments:
    return gather_sums(coordinates_of(FEATURES), design, published, {}, rate)


def indicators(columns: np.ndarray) -> np.ndarray:
    return np.array(
        [columns[row] == category for row, card in enumerate(CARDS) for category in range(card)], dtype=float
    )


def model(design: TableSums, published: NoisySum, with_influence: bool = False) -> LearnedStudy:
    return learn_tables(SUBJECT, design, published, LEARNING, with_influence)


@pytest.mark.parametrize("design", [SINGLES, PAIRS, TableSums((Block(NAMES, CARDS),))])
def test_without_noise_the_moments_are_those_of_the_people(design: TableSums) -> None:
    columns = people(5_000, 1)
    moments = moments_of(design, NoisySum(tuple(counted(design, columns)), 5_000, NEXT_TO_NONE, 1))
    held, label = indicators(columns), columns[3]
    assert moments.rate == pytest.approx(label.mean(), abs=1e-3)
    assert moments.shares == pytest.approx(held.mean(axis=1), abs=1e-6)
    for place in moments.coordinates.places.values():
        true = np.array([np.mean(row * (label - moments.rate)) for row in held[place]])
        assert moments.contrast[place] == pytest.approx(true - true.mean(), abs=1e-9)
    if design is not SINGLES:
        covariance, kept = indicator_covariance(moments)
        assert min(kept.values()) > 0.99
        assert covariance == pytest.approx(np.cov(held, bias=True), abs=1e-3)


ASKED_TWICE = TableSums((*PAIRS.blocks[1:], Block(("one", "other"), (3, 2)), Block(("one",), (3,))))


@pytest.mark.parametrize("times", [100, pytest.param(600, marks=pytest.mark.slow)])
@pytest.mark.parametrize("design", every(2, [PAIRS, ASKED_TWICE]))
@pytest.mark.slow
def test_contrasts_scatter_as_their_noise_says(design: TableSums, times: int) -> None:
    """People and noise drawn anew so many times: 5 independent directions; a false alarm in 1e-3."""
    found = []
    for seed in range(times):
        columns = people(300, seed, 0.0)
        # No feature goes with another or with the label.
        columns[1] = np.random.default_rng(seed).permutation(columns[1])
        found.append(moments_of(design, noisy(design, columns, Fraction(9), seed)))
    values = np.array([one.contrast for one in found])
    stated = np.mean([one.noise(np.zeros(8)) for one in found], axis=0)
    basis = np.zeros((8, 5))  # per feature, directions that sum to 0
    for column, (start, card) in enumerate([(0, 3), (0, 3), (3, 3), (3, 3), (6, 2)]):
        step = column % 2 + 1 if card == 3 else 1
        basis[start : start + step, column], basis[start + step, column] = 1.0, -step
    distances = np.einsum("ij,jk,ik->i", values @ basis, np.linalg.inv(basis.T @ stated @ basis), values @ basis)
    low, high = chi2.ppf([5e-4, 1 - 5e-4], 5 * len(found))
    assert low < distances.sum() < high


def test_chance_in_who_took_part_counts_alike_where_no_table_relates_features() -> None:
    """Raised for each of many others, it made p-values of large studies far too large."""
    columns, rows = people(5_000, 9), []
    columns[1] = np.random.default_rng(9).permutation(columns[1])
    for design in (SINGLES, PAIRS):
        moments = moments_of(design, NoisySum(tuple(counted(design, columns)), 5_000, NEXT_TO_NONE, 1))
        rows.append(
            moments.noise(np.zeros(8))[:3, :3] - moments.rate_error**2 * np.outer(*[moments.shares[:3] - 1 / 3] * 2)
        )
    turn = np.array([1.0, -1.0, 0.0])
    assert turn @ rows[0] @ turn == pytest.approx(turn @ rows[1] @ turn, rel=0.01)


def test_every_party_adds_its_noise() -> None:
    columns, sigma_squared = people(300, 2), Fraction(9)
    one, two = (
        moments_of(SINGLES, NoisySum(tuple(counted(SINGLES, columns)), 300, sigma_squared, parties))
        for parties in (1, 2)
    )
    assert two.contrast_variance == pytest.approx(2 * one.contrast_variance, rel=1e-3)


def test_a_wrong_guess_of_shares_is_no_effect() -> None:
    columns = people(2_000, 3, 0.0)
    published = NoisySum(tuple(counted(SINGLES, columns)), 2_000, Fraction(400), 2)
    plain, misled = (
        gather_sums(coordinates_of(FEATURES), SINGLES, published, guess, 0.3)
        for guess in ({}, {"one": (0.05, 0.05, 0.9)})
    )
    assert plain.contrast == pytest.approx(misled.contrast, abs=1e-12)
    assert abs(plain.shares - misled.shares).max() > 0.05


@pytest.mark.parametrize("studies", [60, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_noise_alone_is_rarely_shown(studies: int) -> None:
    """Shuffled labels: at most 2 % are shown, within what so many studies may scatter to at 1e-3."""
    shown = 0
    for seed in range(studies):
        columns = people(150, seed)
        columns[3] = np.random.default_rng(seed + 1).permutation(columns[3])
        moments = gather_sums(coordinates_of(FEATURES), SINGLES, noisy(SINGLES, columns, Fraction(50), seed), {}, 0.3)
        shown += fit(moments).chance <= 0.015
    assert shown <= binom.ppf(1 - 1e-3, studies, 0.02)


@pytest.mark.slow
def test_chances_of_noise_alone_are_uniform() -> None:
    """2,000 people, 1,000 studies whose labels and features go with nothing, by Kolmogorov and Smirnov at 1 %."""
    found = []
    for seed in range(1000):
        spring, columns = np.random.default_rng(seed + 1), people(2_000, seed)
        columns[1], columns[3] = spring.permutation(columns[1]), spring.permutation(columns[3])
        asked = measurements(moments_of(SINGLES, noisy(SINGLES, columns, Fraction(400), seed), 0.3))
        found.append(p_value(asked.seen(), TAUS[1:], SHIFTS))
    assert kstest(found, "uniform").pvalue > 0.01


def test_pairs_tell_a_copy_from_a_cause() -> None:
    columns = people(20_000, 4)
    published = noisy(PAIRS, columns, Fraction(400), 1)
    learned = model(PAIRS, published)
    one, twin, other = ([table.log_odds[0] - table.log_odds[-1] for table in learned.model.tables])
    assert abs(twin) < 0.25 * one and other < -0.3
    assert learned.learnable
    single = model(SINGLES, noisy(SINGLES, columns, Fraction(400), 1)).model.tables[1]
    assert single.log_odds[0] - single.log_odds[-1] > 2 * abs(twin)


@pytest.mark.slow
def test_noise_draws_effects_towards_none() -> None:
    columns = people(400, 5)
    spans = []
    for sigma_squared in (Fraction(100), Fraction(2_500), Fraction(40_000)):
        drawn = [
            model(SINGLES, noisy(SINGLES, columns, sigma_squared, seed)).model.tables[0].log_odds for seed in range(8)
        ]
        spans.append(np.mean([np.ptp(one) for one in drawn]))
    assert spans[0] > spans[1] > spans[2]


def test_the_model_is_a_pure_function_of_the_published_sum() -> None:
    columns = people(800, 6)
    published = noisy(PAIRS, columns, Fraction(100), 3)
    one, again = model(PAIRS, published, True), model(PAIRS, NoisySum(tuple(published.values), 800, Fraction(100), 2))
    assert one.model.to_json() == again.model.to_json()
    assert from_json(one.model.to_json()) == one.model
    assert one.model.to_json() != model(PAIRS, noisy(PAIRS, columns, Fraction(100), 4)).model.to_json()
    assert {result.n for result in one.partitions} == {800} and all(result.influence > 0 for result in one.partitions)


def test_a_feature_that_no_table_asks_about_says_nothing() -> None:
    design = tables_of({"one": 3, "other": 2})
    learned = model(design, noisy(design, people(500, 7), Fraction(9), 1))
    assert np.ptp(learned.model.tables[1].log_odds) < 1e-9 < np.ptp(learned.model.tables[0].log_odds)


def test_sums_of_another_study_are_refused() -> None:
    published = noisy(SINGLES, people(50, 8), Fraction(9), 1)
    with pytest.raises(Malformed, match="expected 25 cells"):
        learn_tables(SUBJECT, TableSums((*SINGLES.blocks, Block(("one", "twin"), (3, 3), False))), published, LEARNING)
    with pytest.raises(Malformed, match="other features or categories"):
        gather_sums(Coordinates(NAMES, (2, 3, 2), (False,) * 3, (False,) * 3), SINGLES, published, {}, 0.5)
    for units, sigma_squared, parties in ((0, Fraction(1), 1), (1, Fraction(0), 1), (1, Fraction(1), 0)):
        with pytest.raises(Malformed, match="at least one contribution"):
            NoisySum((1,), units, sigma_squared, parties)


@pytest.mark.parametrize("design", [SINGLES, PAIRS])
def test_a_fit_to_other_sums_of_the_same_noise_is_the_fit_to_them(design: TableSums) -> None:
    """To the bit: the report's influences are recomputed by every audit."""
    moments, generator = moments_of(design, noisy(design, people(300, 2), Fraction(30), 3)), np.random.default_rng(5)
    asked = measurements(moments)
    seen = asked.seen()
    for size in (0.0, 0.02, 0.5):
        contrast = moments.contrast + size * generator.standard_normal(len(moments.contrast))
        anew = fit(evolve(moments, contrast=contrast))
        assert refit(asked, seen, contrast, moments.bits).tolist() == anew.log_odds.tolist()


def test_the_noise_of_a_sum_is_found_once_however_many_lies_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 1,000 cells it was found 2,000 times: two fifths of all that learning took."""
    calls: list[NoisyMoments] = []

    def counted_covariance(moments: NoisyMoments) -> tuple[Floats, dict[tuple[str, str], float]]:
        calls.append(moments)
        return indicator_covariance(moments)

    for module in ("additive.learner", "sum.table_moments"):
        monkeypatch.setattr(f"aggregator.protocols.{module}.indicator_covariance", counted_covariance)
    learned = model(SINGLES, noisy(SINGLES, people(2_000, 5), Fraction(4), 6), with_influence=True)
    assert all(result.influence > 0 for result in learned.partitions)
    assert len(calls) == 3  # once as noise, and once for each set of measurements
