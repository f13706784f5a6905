"""One test for each erratum of Cyphers & Veeramachaneni 2017 that is about code. All 18 are listed in
docs/errata.md."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import exp, log, sqrt
from pathlib import Path

import numpy as np
import pytest

from aggregator.protocols.additive.reconstruct import SurveyTally, reconstruct
from aggregator.protocols.histogram.classifiers import logistic, soft, tree
from anon.ldp import SCALE, Mechanism, RawCategory, SurveyCost, build, from_spec, nano, per_attribute, record_level
from anon.ldp.simplex import nearest_shares
from anon.ldp.unary import optimum
from anon.protocols.categories import cell, feature_category
from anon.protocols.histogram.binning import MedianSearch, median_start, median_step, threshold
from anon.protocols.sortition import in_score_cohort
from anon.study.features import Feature

ROOT = Path(__file__).resolve().parents[3]


def numeric(low: float = 0.0, high: float = 100.0, bins: int = 2, cuts: tuple[float, ...] = ()) -> Feature:
    return Feature("x", "numeric", "A number.", "SELECT 1", "own", (low, high), 0 if cuts else bins, cuts)


@pytest.mark.parametrize("m", [2, 4, 16])
def test_erratum_1_random_response_loses_ln_of_m_minus_1_times_the_odds(m: int) -> None:
    """Section VII-C prints ln(m p / (1 - p)); used forwards at epsilon 0.5 and m = 2 that gives p < q."""
    mechanism = build("krr", m, nano(1))
    p = mechanism.p / SCALE
    assert mechanism.epsilon / 1e9 == pytest.approx(log((m - 1) * p / (1 - p)), abs=2e-9)
    assert mechanism.epsilon / 1e9 < log(m * p / (1 - p)) - 0.06
    printed = exp(0.5) / (exp(0.5) + 2)
    assert printed < 1 - printed


def test_erratum_2_the_search_starts_in_the_middle_of_the_range() -> None:
    """Algorithm 1 prints (max - min) / 2, from which values near a minimum other than 0 are out of reach."""
    start = median_start(numeric(20, 100))
    assert start == MedianSearch(60.0, 40.0)
    down, up = start, start
    for _ in range(40):
        down, up = median_step(down, 10_000, 2500, 0.75, 0.25), median_step(up, 10_000, 7500, 0.75, 0.25)
    assert down.estimate == pytest.approx(20) and up.estimate == pytest.approx(100)


def test_erratum_3_the_fraction_of_yes_is_debiased_before_it_is_compared() -> None:
    """At epsilon 0.25 and 2,442 peers a true fraction of 0.7 is a raw one of 0.525: decided only once debiased."""
    q = 1 / (exp(0.25) + 1)
    raw = q + (1 - 2 * q) * 0.7
    moved = median_step(MedianSearch(50, 50), 2442, round(2442 * raw), 1 - q, q)
    assert moved == MedianSearch(75, 25)
    margin_as_printed = sqrt(2 * q * (1 - q) / 2442) / (1 - 2 * q)
    assert abs(raw - 0.5) < margin_as_printed


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0])
def test_erratum_4_the_margin_is_one_standard_deviation_of_one_debiased_proportion(epsilon: float) -> None:
    """Just inside sqrt(f (1 - f) / n) / (p - q) the search waits, just outside it moves; eq. 4 is sqrt(2) off."""
    asked, q = 40_000, 1 / (exp(epsilon) + 1)
    gap = 1 - 2 * q
    for yes in range(asked // 2, asked):
        raw = yes / asked
        outside = (raw - 0.5) > sqrt(max(raw * (1 - raw), 1 / (4 * asked)) / asked)
        moved = median_step(MedianSearch(50, 50), asked, yes, 1 - q, q)
        assert (moved.step == 25) is outside
        if outside:
            assert (raw - q) / gap > 0.5
            return
    raise AssertionError("the search never moved")


def test_erratum_5_an_undecided_round_keeps_the_step_and_pools_its_evidence() -> None:
    search = MedianSearch(50, 50)
    for _ in range(3):
        after = median_step(search, 1000, 503, 0.55, 0.45)
        assert (after.estimate, after.step, after.asked) == (50, 50, search.asked + 1000)
        search = after
    decided = median_step(search, 100_000, 52_000, 0.55, 0.45)
    assert (decided.step, decided.asked) == (25, 0)


def test_erratum_6_a_value_on_the_cut_stays_below_and_no_bin_is_empty() -> None:
    """Section VII-B prints [min, median): capital gains, mostly 0, leave it empty when the median is the minimum."""
    feature = numeric(0, 100, cuts=(0.0,))
    assert [feature_category(feature, value, (0.0,)) for value in (-5, 0, 0.01, 100, 900)] == [0, 0, 1, 1, 1]
    assert threshold(numeric(10, 100), MedianSearch(3, 1)) == 10


def test_erratum_7_equation_4_is_the_root_mean_square_error_and_above_the_mean_error() -> None:
    """Exactly, by all reports of 3 peers: the ratio is below 1 and, as stated for k-RR at m = 2, about 0.80 for
    many."""
    mechanism = build("krr", 2, nano(1))
    p, n = mechanism.p / SCALE, 3
    norms = []
    for reports in product((0, 1), repeat=n):
        chance = np.prod([p if one == 0 else 1 - p for one in reports])
        estimate = np.array(mechanism.unbias([reports.count(0), reports.count(1)], n)) / n
        norms.append((chance, float(np.linalg.norm(estimate - [1, 0]))))
    assert sqrt(sum(c * x * x for c, x in norms)) == pytest.approx(mechanism.rmse(n), rel=1e-12)
    assert sum(c * x for c, x in norms) < mechanism.rmse(n)
    scatter = np.random.default_rng(0).normal(size=200_000)
    assert np.abs(scatter).mean() == pytest.approx(0.80, abs=0.005)


@pytest.mark.parametrize("name", ["krr", "pq", "rappor"])
def test_erratum_8_other_peers_support_a_category_with_q(name: str) -> None:
    """The proof of theorem 2 prints B(n - n_i, 1 - q): the same variance, another mean."""
    mechanism = build(name, 3, nano(2))
    supported = sum(
        mechanism.likelihood(RawCategory(0, 3), mechanism.parse(data)) * mechanism.tally([mechanism.parse(data)])[1]
        for data in spellings(mechanism)
    )
    assert supported == Fraction(mechanism.q, SCALE) != 1 - Fraction(mechanism.q, SCALE)


def spellings(mechanism: Mechanism) -> list[bytes]:
    if mechanism.name == "krr":
        return [index.to_bytes(2, "big") for index in range(mechanism.m)]
    return [(bits << (-mechanism.m % 8)).to_bytes(1, "big") for bits in range(2**mechanism.m)]


def test_erratum_9_estimates_are_divided_by_the_number_of_reports_not_by_their_sum() -> None:
    mechanism = from_spec("pq", 2, SCALE // 2, SCALE // 4)
    assert mechanism.unbias([60, 40], 100) == [140.0, 60.0]
    assert nearest_shares([1.4, 0.6]) == pytest.approx((0.9, 0.1))  # and not 0.7, 0.3


def test_erratum_10_negative_estimates_are_kept() -> None:
    mechanism = from_spec("pq", 2, SCALE // 2, SCALE // 4)
    assert mechanism.unbias([10, 50], 100) == [-60.0, 100.0]
    found = reconstruct(SurveyTally(0, ("x",), (1,), mechanism, np.array([10, 50]), 100))
    assert found.shares.tolist() == [-0.6, 1.0]


@pytest.mark.parametrize(("m", "epsilon"), [(2, 7.0), (4, 8.0), (8, 9.5)])
def test_erratum_11_equation_4_is_not_convex_in_p_but_equation_5_is_its_minimum(m: int, epsilon: float) -> None:
    growth = exp(epsilon)

    def error(p: float) -> float:
        q = p / (p + growth * (1 - p))
        return sqrt(((m - 1) * q * (1 - q) + p * (1 - p)) / (p - q) ** 2)

    points = np.linspace(0.001, 0.999, 4001)
    values = np.array([error(p) for p in points])
    assert np.diff(values, 2).min() < 0
    falls = np.diff(values) < 0
    assert (np.diff(falls.astype(int)) <= 0).all()  # falls, then rises: one minimum
    found = float(optimum(m, Decimal(growth)))
    assert error(found) <= values.min() * (1 + 1e-9)


def test_erratum_12_rappor_and_eq_5_are_equal_at_two_categories() -> None:
    assert build("rappor", 2, nano(1)).rmse(1) == pytest.approx(build("pq", 2, nano(1)).rmse(1), rel=1e-12)
    assert 1 < build("rappor", 16, nano(1)).rmse(1) / build("pq", 16, nano(1)).rmse(1) < 1.03


def test_erratum_13_a_whole_record_loses_the_sum_of_its_packets_and_no_less() -> None:
    """By enumeration of what two slots release about (x1, l) and (x2, l): the label alone already reaches the sum."""
    mechanism = build("krr", 4, nano("0.5"))
    law = {
        (x1, x2, label): [
            mechanism.likelihood(RawCategory(2 * x1 + label, 4), mechanism.parse(bytes([0, one])))
            * mechanism.likelihood(RawCategory(2 * x2 + label, 4), mechanism.parse(bytes([0, two])))
            for one, two in product(range(4), repeat=2)
        ]
        for x1, x2, label in product((0, 1), repeat=3)
    }

    def worst(first: tuple[int, int, int], second: tuple[int, int, int]) -> float:
        return log(max(a / b for a, b in zip(law[first], law[second], strict=True)))

    assert worst((0, 0, 0), (1, 0, 0)) == pytest.approx(0.5, abs=1e-8)  # one attribute: eq. 6
    assert worst((0, 0, 0), (1, 1, 1)) == pytest.approx(1.0, abs=1e-8)
    epsilon = int(mechanism.epsilon)
    assert record_level([[epsilon], [epsilon]]) == 2 * epsilon
    slots = [[SurveyCost((name,), False, epsilon)] for name in ("x1", "x2")]
    assert per_attribute(slots) == epsilon < record_level([[epsilon], [epsilon]])


def test_erratum_14_with_one_histogram_packet_a_binned_feature_binds() -> None:
    """k_h = 1 and epsilon_e = epsilon_h: 2 epsilon_h for the feature, where the paper has epsilon_h."""
    histogram, binning = SurveyCost(("x",), True, 1_000), SurveyCost(("x",), False, 1_000)
    assert per_attribute([[histogram], [binning]]) == 2_000


@pytest.mark.parametrize("classifier", [soft, logistic, tree])
def test_erratum_15_classes_are_balanced(classifier: object) -> None:
    """5 % positive, twice as many in one cell: without balance no cell votes positive and an ensemble says no to
    all."""
    mechanism = build("krr", 4, nano(20))
    n = 1_000_000
    counts = np.array([0.9667, 0.0333, 0.9333, 0.0667]) * n / 2
    found = reconstruct(SurveyTally(0, ("x",), (2,), mechanism, counts.astype(np.int64), n))
    contrast = classifier(found, 0.05, frozenset())  # type: ignore[operator]
    assert contrast[0] < 0 < contrast[1]


def test_erratum_16_reports_that_score_took_no_part_in_fitting() -> None:
    """A report scores or trains by its own tag: there are no folds of one histogram, which share its noise."""
    seed, tags = b"s" * 32, [index.to_bytes(48, "big") for index in range(4000)]
    scoring = [in_score_cohort(seed, tag, 0.2) for tag in tags]
    assert scoring == [in_score_cohort(seed, tag, 0.2) for tag in tags]
    assert abs(sum(scoring) / len(tags) - 0.2) < 5 * sqrt(0.16 / len(tags))


def test_erratum_17_the_census_study_has_eleven_features() -> None:
    """Section VIII-A2 counts 6 numeric and 8 categorical less two; the feature file has 5 and 6."""
    for name in ("study.toml", "paper.toml"):
        features = tomllib.loads((ROOT / "examples/census" / name).read_text("utf-8"))["features"]
        kinds = [one["kind"] for one in features]
        assert (kinds.count("numeric"), kinds.count("categorical")) == (5, 6)
        assert not {"fnlwgt", "education", "occupation"} & {one["name"] for one in features}


def test_erratum_18_the_label_is_perturbed_once_within_its_category() -> None:
    """The authors' later code flips every label once more, which is not debiased; and reads ranges from the data."""
    assert [cell((3,), (category,), label) for category, label in product(range(3), (0, 1))] == list(range(6))
    mechanism = build("krr", 6, nano(1))
    own, flipped = (mechanism.likelihood(RawCategory(value, 6), mechanism.parse(b"\x00\x02")) for value in (2, 3))
    assert own / flipped == Fraction(mechanism.p, mechanism.q)
    assert feature_category(numeric(0, 100, cuts=(50.0,)), 1e9, (50.0,)) == 1  # clamped to the declared range
