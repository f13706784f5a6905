"""The calibrated rule: vectors and their sensitivity, evidence, calibration and corrections."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import sqrt

import numpy as np
import pytest
from scipy.stats import kstest

from anon.errors import InvalidValue, Malformed
from anon.protocols.contract import Record
from anon.protocols.registry import charge_of
from anon.protocols.sum.standing import RoundSum, arrangement_of, told_before
from anon.protocols.sum.vector import vector_of
from anon.protocols.vectors.residuals import CELLS, ResidualSums, ScoreSums, ruled
from anon.protocols.vectors.rule import (
    CUTS,
    MIDDLES,
    UNIT,
    Calibration,
    DeclaredRule,
    MeanResidual,
    RuleModel,
    ScoreEvidence,
    calibrated,
    codes,
    corrected,
    enough,
    evidence_of,
)
from tests.support.climbing import apart
from tests.support.sums import RULE as STUDY
from tests.support.sums import manifest_of

RULE = DeclaredRule(((-1.0, 0.0, 1.0), (1.0, -1.0), (0.0, 0.0, 0.0, 0.0)), 0.3)
CARDS = (3, 2, 4)
SUMS = ResidualSums(CARDS, 1024, Fraction(2, 5))


@pytest.mark.parametrize("card", [2, 3, 5])
def test_codes_are_the_corners_of_a_regular_simplex(card: int) -> None:
    corners = np.array(codes(card))
    assert corners.shape == (card, card - 1)
    expected = np.full((card, card), -1 / (card - 1)) + np.eye(card) * card / (card - 1)
    assert np.allclose(corners @ corners.T, expected)


def test_the_score_is_the_sum_of_directions_in_its_bin() -> None:
    unit = sqrt(2)
    assert RULE.cards == CARDS and RULE.parts[0] == (-1 / unit, 0.0, 1 / unit)
    bins = [RULE.bin((first, second, 0)) for first, second in product(range(3), range(2))]
    scores = [(a + b) / unit for a, b in product((-1, 0, 1), (1, -1))]
    assert bins == [sum(score >= cut for cut in CUTS) for score in scores] and {*bins} == {0, 1, 2, 3}


def test_a_residual_of_any_two_persons_is_within_the_sensitivity_and_reaches_it() -> None:
    """Every pair of persons at models from far below to far above: one replaces the other. Of all pairs the furthest
    are within a hundredth of the stated distance, which holds their rounding."""
    persons = list(product(range(3), range(2), range(4)))
    vectors = [
        SUMS.vector(person, label, RuleModel(intercept * UNIT, tuple((0,) * card for card in CARDS)))
        for person in persons
        for label in (0, 1)
        for intercept in (-9, -1, 0, 1, 9)
    ]
    stated = SUMS.sensitivity_squared("replace-one")
    furthest = max(apart(one, other) for one in vectors for other in vectors)
    assert 0.98 * stated < furthest <= stated
    assert max(sum(entry**2 for entry in vector) for vector in vectors) <= SUMS.contribution_norm_squared
    assert stated / 1024**2 == pytest.approx(4 * 0.4**2 * len(CARDS), rel=0.02)
    assert SUMS.length == CELLS and {len(vector) for vector in vectors} == {CELLS}


def test_a_mark_of_any_two_persons_is_as_far_as_stated() -> None:
    table = ScoreSums(SUMS)
    vectors = [table.vector(at, label) for at in range(4) for label in (0, 1)]
    assert max(apart(one, other) for one in vectors for other in vectors) == table.sensitivity_squared("replace-one")
    assert {sum(entry**2 for entry in vector) for vector in vectors} == {table.mark**2}
    assert table.mark**2 <= table.contribution_norm_squared == SUMS.contribution_norm_squared
    assert (table.length, table.changed("replace-one"), table.changed("add-remove")) == (SUMS.length, 2, 1)
    cells, people, noise = table.cells(([2 * entry for entry in table.vector(1, 1)], 2, Fraction(table.mark**2)))
    assert (cells, people, noise) == ([0, 0, 0, 2, 0, 0, 0, 0], 2, 1)


def test_the_charge_is_what_a_search_over_all_persons_finds() -> None:
    """Each round's furthest pair of persons, over the noise of one teller, is within its charge and near it."""
    study = manifest_of(STUDY)
    arrangement = arrangement_of(study)
    values = product((10, 40, 70, None), (3, 9, None), ("none", "some", "many", None), (0, 1))
    records = [Record({"age": a, "sleep": s, "cups": c}, label) for a, s, c, label in values]
    sums: list[RoundSum] = []
    for survey, asked in zip(study.surveys, arrangement.sums, strict=True):
        told = told_before(study, survey, sums)
        vectors = [vector_of(study, survey, record, told) for record in records]
        charged = 2 * float(asked.sigma_squared) * survey.epsilon / 1e9
        furthest = max(apart(one, other) for one in vectors for other in vectors)
        assert 0.98 * charged < furthest <= charged * (1 + 1e-6)
        # Of all these members as many say yes as no: later rounds are as far off for both.
        sums.append(RoundSum(tuple(map(sum, zip(*vectors, strict=True))), len(vectors), Fraction(1)))
    assert sum(survey.epsilon for survey in study.surveys) == study.epsilon == charge_of(study).amount


def test_shapes_that_cannot_be_are_refused() -> None:
    for cards, scale, clip in (((), 1, Fraction(1)), (CARDS, 0, Fraction(1)), (CARDS, 1, Fraction(2))):
        with pytest.raises(InvalidValue):
            ResidualSums(cards, scale, clip)
    with pytest.raises(Malformed, match="the table of score by label"):
        ruled(RULE, SUMS, [])
    for sums in ([([0] * 7, 5, Fraction(1))], [([0] * 8, 5, Fraction(1)), ([0] * 9, 5, Fraction(1))]):
        with pytest.raises(Malformed, match="expected 8 entries"):
            ruled(RULE, SUMS, sums)


def people(
    count: int, slope: float, spring: np.random.Generator, shares: tuple[float, ...] = (0.3, 0.3, 0.25, 0.15)
) -> np.ndarray:
    """The table of `count` people whose log-odds are -1 + slope times the middle of their bin."""
    bins = spring.choice(4, count, p=shares)
    chance = 1 / (1 + np.exp(1 - slope * np.array(MIDDLES)[bins]))
    return np.bincount(2 * bins + (spring.random(count) < chance), minlength=CELLS).astype(float)


@pytest.mark.parametrize(("guess", "noise"), [(0.27, 300.0), (0.5, 600.0), (0.4, 300.0)])
def test_without_any_effect_the_evidence_is_normal_whatever_was_guessed(guess: float, noise: float) -> None:
    """Kolmogorov-Smirnov over 1,500 studies of 400 people from a fixed seed, at a level of 1 in 1,000."""
    spring = np.random.default_rng(5)
    found = [
        evidence_of((people(400, 0.0, spring) + spring.normal(0, sqrt(noise), CELLS)).tolist(), 400, noise, guess)
        for _ in range(1500)
    ]
    assert kstest([one.z for one in found], "norm").pvalue > 0.001
    assert kstest([one.chance for one in found], "uniform").pvalue > 0.001


def test_slope_and_way_are_found_where_there_is_little_noise() -> None:
    """Slopes of 60 tables deviate by .044, and intercepts by .056 at most: the bounds are 4 deviations away."""
    spring = np.random.default_rng(7)
    for slope in (0.5, 1.2, -0.8):
        found = calibrated(people(20000, slope, spring).tolist(), 20000, 4.0, 0.5)
        assert found.slope == pytest.approx(slope, abs=0.2) and found.intercept == pytest.approx(-1, abs=0.25)
        assert (found.evidence.z > 0) == (slope > 0) and found.evidence.chance < 1e-6
        assert found.evidence.against == pytest.approx(0.0 if slope < 0 else 1.0, abs=1e-6)


@pytest.mark.slow
def test_little_evidence_leaves_the_prior_and_much_turns_it() -> None:
    """At 100 people and the noise of epsilon 1, a table against the declared way keeps its sign; at 3,000 not."""
    spring = np.random.default_rng(8)
    few = [calibrated((people(100, -1, spring) + spring.normal(0, 24, 8)).tolist(), 100, 600.0, 0.3) for _ in range(20)]
    many = [
        calibrated((people(3000, -1, spring) + spring.normal(0, 24, 8)).tolist(), 3000, 600.0, 0.3) for _ in range(20)
    ]
    assert sum(one.slope > 0 for one in few) >= 18 and all(one.slope < 0 for one in many)


def told(means: list[float], noise: float, rounds: int = 1) -> tuple[float, ...]:
    found = Calibration(ScoreEvidence(0.5, 3.0), 1.0, 0.0)
    return corrected((2, 2, 2, 2), found, 1000, [MeanResidual(tuple(means), noise)] * rounds)


def test_corrections_are_what_was_heard_less_what_noise_explains() -> None:
    assert corrected((2, 3), Calibration(ScoreEvidence(0.5, 3.0), 1.0, 0.0), 1000, []) == (0.0, 0.0, 0.0)
    faint, clear = told([0.01, -0.01, 0.0, 0.005], 1e-4), told([0.1, 0.0, 0.0, -0.1], 1e-6)
    assert max(map(abs, faint)) < 0.02
    assert clear[0] == pytest.approx(-clear[3]) and clear[0] > 0.5 and abs(clear[1]) < 1e-9
    assert told([0.1, 0.0, 0.0, -0.1], 1e-2)[0] < clear[0] / 5


def test_corrections_come_to_rest_where_residuals_do() -> None:
    """People whose log-odds are 1.5 of one code: eight rounds without noise come near it."""
    found, target = Calibration(ScoreEvidence(0.5, 3.0), 1.0, 0.0), 1.5
    heard: list[MeanResidual] = []
    weights = corrected((2, 2), found, 100_000, heard)
    for _ in range(8):
        gap = 1 / (1 + np.exp(-target)) - 1 / (1 + np.exp(-weights[0]))
        heard.append(MeanResidual((float(gap), 0.0), 1e-9))
        weights = corrected((2, 2), found, 100_000, heard)
    assert weights[0] == pytest.approx(target, abs=0.25) and abs(weights[1]) < 0.01


def test_a_model_adds_the_slope_of_each_direction_and_the_corrections() -> None:
    found = Calibration(ScoreEvidence(0.3, 3.0), 0.8, -0.5)
    model = RULE.model(found, (0.0, 0.0, 0.25, 0.0, 0.0, 0.0))
    assert model.intercept == -0.5 * UNIT and model.tables[2] == (0, 0, 0, 0)
    assert model.tables[0] == tuple(round(UNIT * 0.8 * one / sqrt(2)) for one in (-1, 0, 1))
    assert model.tables[1] == (round(UNIT * (0.8 / sqrt(2) + 0.25)), round(UNIT * (-0.8 / sqrt(2) - 0.25)))
    total = (model.intercept + model.tables[0][2] + model.tables[1][0]) / UNIT
    assert model.chance((2, 0, 3)) == pytest.approx(1 / (1 + np.exp(-total)))


def test_enough_people_find_a_wrong_rule_out() -> None:
    """The answers of so many people contradict a weak rule that is turned around, and those of a fifth as many hardly
    ever. Of 4,000 studies it is .928 where scores fill all bins alike, .864 in uneven bins, and .075 of a fifth. Each
    bound is four deviations of 1,000 studies away."""
    spring, size = np.random.default_rng(9), enough(600.0, 0.3)
    assert 1000 < size < 3000 and enough(2400.0, 0.3) > size

    def share(count: int, *shares: tuple[float, ...]) -> float:
        tables = (people(count, -0.5, spring, *shares) + spring.normal(0, sqrt(600), 8) for _ in range(1000))
        found = [evidence_of(table.tolist(), count, 600.0, 0.3) for table in tables]
        return float(np.mean([one.against <= 0.015 for one in found]))

    assert share(size, (0.25,) * 4) > 0.89 and share(size) > 0.82 and share(size // 5) < 0.12
