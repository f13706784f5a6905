"""The histogram protocol's shared part: the total map, the draw, cuts from counts, Algorithm 1 with the errata."""

from __future__ import annotations

import random
from math import inf, nan

import pytest

from anon.ldp import NanoEpsilon, build
from anon.protocols import categories
from anon.protocols import sortition as tables
from anon.protocols.histogram import binning
from anon.study.features import Feature, Label
from anon.study.slots import Row, Slot

AGE = Feature("age", "numeric", "age", "SELECT 1", "own", range=(0.0, 100.0), bins=4)
GAIN = Feature("gain", "numeric", "gain", "SELECT 1", 0.0, range=(0.0, 100_000.0), bins=2, scale="log")
SEX = Feature("sex", "categorical", "sex", "SELECT 1", "Male", categories=("Female", "Male"))
CODE = Feature("code", "categorical", "code", "SELECT 1", "own", categories=("1", "2"))
LABEL = Label("out", "out", "SELECT 1", (">50K", 1), ("<=50K", 0), "negative")


@pytest.mark.parametrize(("value", "expected"), [
    (-5.0, 0), (25.0, 0), (25.0001, 1), (50.0, 1), (75.5, 3), (1e300, 3), (None, 4), ("old", 4), (nan, 4), (inf, 4),
])
def test_numeric_map_is_total(value: categories.Value, expected: int) -> None:
    assert categories.feature_category(AGE, value, (25.0, 50.0, 75.0)) == expected


@pytest.mark.parametrize(("feature", "value", "expected"), [
    (SEX, "Female", 0), (SEX, "Male", 1), (SEX, None, 1), (SEX, "?", 1), (SEX, 3.0, 1), (CODE, 1.0, 0), (CODE, "2", 1),
    (CODE, 7.0, 2),
])
def test_categorical_map_is_total(feature: Feature, value: categories.Value, expected: int) -> None:
    assert categories.feature_category(feature, value, ()) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(">50K", 1), ("<=50K", 0), (1.0, 1), (0.0, 0), ("?", 0), (None, 0), (nan, 0)]
)
def test_label_map_is_total(value: categories.Value, expected: int) -> None:
    assert categories.label_category(LABEL, value) == expected


def test_cells_are_mixed_radix_with_the_label_last() -> None:
    seen = {categories.cell((3, 2), (a, b), y) for a in range(3) for b in range(2) for y in range(2)}
    assert seen == set(range(12))
    assert categories.cell((3, 2), (2, 1), 1) == 11
    assert categories.cell((3, 2), (0, 0), 1) == 1


def test_the_draw_follows_the_weights() -> None:
    """Chi-square with 2 degrees of freedom; seeded tags, critical value at a false-alarm rate of 1e-6: 27.6."""
    slot = Slot(0, (Row(4, 1), Row(5, 3), Row(6, 6)))
    rng = random.Random(7)
    counts = {4: 0, 5: 0, 6: 0}
    for _ in range(20_000):
        counts[tables.draw(slot, b"seed", rng.randbytes(48))] += 1
    expected = {4: 2_000, 5: 6_000, 6: 12_000}
    assert sum((counts[k] - expected[k]) ** 2 / expected[k] for k in counts) < 27.6


def test_the_draw_depends_on_seed_slot_and_tag() -> None:
    wide = tuple(Row(k, 1) for k in range(100_000))
    first = tables.draw(Slot(0, wide), b"a", b"t")
    others = {
        tables.draw(Slot(0, wide), b"b", b"t"),
        tables.draw(Slot(1, wide), b"a", b"t"),
        tables.draw(Slot(0, wide), b"a", b"u"),
    }
    assert first not in others
    assert len(others) == 3


def test_score_cohort_has_its_share() -> None:
    """Binomial(20000, .2): 6 standard deviations are 340, a false alarm in 2e-9."""
    rng = random.Random(8)
    hits = sum(tables.in_score_cohort(b"s", rng.randbytes(48), 0.2) for _ in range(20_000))
    assert abs(hits - 4_000) < 340


def test_levels_divide_the_range() -> None:
    assert binning.level_edges(AGE, 4) == (25.0, 50.0, 75.0)
    edges = binning.level_edges(GAIN, 16)
    assert len(edges) == 15
    assert 0 < edges[0] < 2 < edges[-1] < 100_000


def test_projection_is_onto_the_simplex() -> None:
    shares = binning.nearest_shares([0.5, -0.2, 0.7])
    assert sum(shares) == pytest.approx(1)
    assert shares == pytest.approx((0.4, 0.0, 0.6))
    assert binning.nearest_shares([0.0, 0.0, 0.0, 0.0]) == (0.25,) * 4


@pytest.mark.parametrize("seed", range(20))
def test_projection_is_the_nearest_point_whatever_the_sum(seed: int) -> None:
    """The projection is the one point of the simplex with (x - P x).(y - P x) <= 0 for every corner y."""
    rng = random.Random(seed)
    given = [rng.gauss(0.2, 0.5) for _ in range(8)]
    nearest = binning.nearest_shares(given)
    assert sum(nearest) == pytest.approx(1)
    assert min(nearest) >= 0
    away = [x - y for x, y in zip(given, nearest, strict=True)]
    inside = sum(one * y for one, y in zip(away, nearest, strict=True))
    assert all(corner <= inside + 1e-12 for corner in away)


def test_projection_does_not_divide_by_the_sum() -> None:
    """Erratum 9: unary estimates may sum to anything; a common shift moves nothing and a sum below 0 is no special
    case."""
    assert binning.nearest_shares([0.9, 0.5, 0.4]) == pytest.approx((0.9 - 0.8 / 3, 0.5 - 0.8 / 3, 0.4 - 0.8 / 3))
    assert binning.nearest_shares([-0.3, -0.8, -1.2]) == pytest.approx((0.75, 0.25, 0.0))
    assert binning.nearest_shares([0.7, 0.2, -0.2]) == pytest.approx((0.75, 0.25, 0.0))


def test_cuts_come_from_estimates_over_n() -> None:
    """n = 100 and a sum of 480: over n the two high levels hold .45 each, over the sum only .29."""
    assert binning.edges_from_histogram((1.0, 2.0, 3.0), [100.0, 100.0, 140.0, 140.0], 100, 2) == (3.0,)


@pytest.mark.parametrize("name", ["rappor", "pq", "krr"])
def test_projected_estimates_centre_on_the_truth(name: str) -> None:
    """Shares far from the edge of the simplex, where projection is rarely anything but a shift: the mean of 300 trials
    is within 5 standard errors of each of the 4 shares (a false alarm in 2e-6 per mechanism)."""
    rng = random.Random(11)
    truth, n, trials = (0.4, 0.3, 0.2, 0.1), 2_000, 300
    mechanism = build(name, 4, NanoEpsilon(2_000_000_000))
    p, q = mechanism.p / 2**64, mechanism.q / 2**64
    found: list[tuple[float, ...]] = []
    for _ in range(trials):
        counts = [
            round(rng.gauss(mean := n * (q + (p - q) * share), (mean * (1 - mean / n)) ** 0.5)) for share in truth
        ]
        found.append(binning.nearest_shares([one / n for one in mechanism.unbias(counts, n)]))
    for cell, share in enumerate(truth):
        seen = [one[cell] for one in found]
        mean = sum(seen) / trials
        deviation = (sum((one - mean) ** 2 for one in seen) / (trials - 1)) ** 0.5
        assert abs(mean - share) < 5 * deviation / trials**0.5


def test_cuts_without_any_answer_divide_the_levels() -> None:
    assert binning.edges_from_histogram((1.0, 2.0, 3.0), [0.0] * 4, 0, 2) == (2.0,)


def test_cuts_share_out_what_a_spike_leaves() -> None:
    """91 % in the first level takes one bin; the other bins divide the rest (erratum 6: no bin is empty)."""
    counts = [910.0, 0, 0, 0, 30.0, 0, 30.0, 30.0]
    edges = tuple(float(k) for k in range(1, 8))
    assert binning.edges_from_histogram(edges, counts, 1000, 4) == (1.0, 5.0, 7.0)


def test_cuts_of_an_even_histogram_are_quantiles() -> None:
    edges = tuple(float(k) for k in range(1, 16))
    assert binning.edges_from_histogram(edges, [10.0] * 16, 160, 4) == (4.0, 8.0, 12.0)


@pytest.mark.parametrize("seed", range(20))
def test_cuts_are_increasing_whatever_the_counts(seed: int) -> None:
    rng = random.Random(seed)
    edges = tuple(float(k) for k in range(1, 16))
    cuts = binning.edges_from_histogram(edges, [rng.gauss(0, 100) for _ in range(16)], 100, rng.randrange(2, 17))
    assert list(cuts) == sorted(set(cuts))


def _search(truth: float, peers: int, rounds: int, seed: int) -> float:
    """Algorithm 1 on values that are uniform around a median of `truth`, through real binary random response."""
    rng = random.Random(seed)
    mechanism = build("krr", 2, NanoEpsilon(1_000_000_000))
    p, q = mechanism.p / 2**64, mechanism.q / 2**64
    state = binning.median_start(AGE)
    for _ in range(rounds):
        cut = binning.threshold(AGE, state)
        yes = 0
        for _ in range(peers):
            greater = min(max(truth + rng.uniform(-20, 20), 0), 100) > cut
            yes += rng.random() < (p if greater else q)
        state = binning.median_step(state, peers, yes, p, q)
    return binning.threshold(AGE, state)


def test_algorithm_1_starts_in_the_middle_and_finds_a_median_anywhere_in_range() -> None:
    """Erratum 2: with the printed start (max-min)/2 and a range not at 0 the upper part could not be reached."""
    shifted = Feature("t", "numeric", "t", "SELECT 1", "own", range=(1000.0, 1100.0), bins=2)
    assert binning.threshold(shifted, binning.median_start(shifted)) == 1050.0
    for truth in (22.0, 50.0, 78.0):
        assert _search(truth, 4_000, 12, seed=3) == pytest.approx(truth, abs=4)


def test_an_undecided_round_keeps_the_step_and_pools() -> None:
    """Erratum 5."""
    state = binning.median_start(AGE)
    undecided = binning.median_step(state, 100, 50, 0.7, 0.3)
    assert (undecided.estimate, undecided.step, undecided.asked) == (state.estimate, state.step, 100)
    assert binning.median_step(undecided, 100, 50, 0.7, 0.3).asked == 200


def test_the_fraction_is_debiased_before_the_comparison() -> None:
    """Erratum 3: at p = .55 a raw fraction of .53 means .8, far above one half once 10,000 said so."""
    moved = binning.median_step(binning.median_start(AGE), 10_000, 5_300, 0.55, 0.45)
    assert moved.estimate == 75.0
    assert moved.asked == 0


def test_a_round_without_answers_changes_nothing() -> None:
    state = binning.median_start(AGE)
    assert binning.median_step(state, 0, 0, 0.7, 0.3) == state
