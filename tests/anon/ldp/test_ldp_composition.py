"""Record-level sums and the paper's eq. 6."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

from anon.ldp import NANO, RawCategory, SurveyCost, build, loss, nano, per_attribute, record_level


def test_a_record_pays_the_dearest_row_of_every_slot() -> None:
    assert record_level([[3, 5, 1], [7], [2, 2]]) == 14
    assert record_level([]) == 0


def test_a_negative_epsilon_never_enters_a_sum() -> None:
    with pytest.raises(ValueError, match="negative"):
        record_level([[5], [-1]])
    with pytest.raises(ValueError, match="negative"):
        SurveyCost(("age",), True, -1)


def paper_design(features: int, histograms: int, epsilon: int) -> list[list[SurveyCost]]:
    """One binning query for each feature and `histograms` disjoint single-feature histograms, as section VII-E
    counts."""
    binning = [[SurveyCost((f"x{index}",), False, epsilon)] for index in range(features)]
    rows = [[SurveyCost((f"x{index}",), True, epsilon)] for index in range(histograms)]
    return binning + rows


@pytest.mark.parametrize(("features", "times"), [(5, 3.5), (6, 4.0), (13, 7.5)])
def test_eq_6_understates_a_record_as_erratum_13_says(features: int, times: float) -> None:
    slots = paper_design(features, 2, NANO // 2)
    assert per_attribute(slots) == NANO
    assert record_level([[row.epsilon for row in slot] for slot in slots]) == times * NANO


def test_with_one_histogram_the_feature_term_binds() -> None:
    """Erratum 14."""
    assert per_attribute(paper_design(3, 1, NANO)) == 2 * NANO


def test_an_attribute_pays_only_the_rows_that_touch_it() -> None:
    slots = [
        [SurveyCost(("age", "sex"), True, 5), SurveyCost(("race",), True, 9)],
        [SurveyCost(("age",), False, 4), SurveyCost(("sex",), False, 8)],
    ]
    assert per_attribute(slots) == 13  # sex: 5 + 8; race: 9; the label: 9; age: 5 + 4
    assert per_attribute([]) == 0
    assert per_attribute([[SurveyCost((), True, 3)]]) == 3


def test_the_record_level_sum_is_tight() -> None:
    """Two reports about one record: the worst joint ratio, by enumeration, is the product of the two worst ratios."""
    first, second = build("krr", 4, nano(1)), build("pq", 2, nano("0.5"))
    worst = Fraction(0)
    left = [first.parse(index.to_bytes(2, "big")) for index in range(4)]
    right = [second.parse(bytes([bits << 6])) for bits in range(4)]
    for here, there in product(left, right):
        chances = [
            first.likelihood(RawCategory(a, 4), here) * second.likelihood(RawCategory(b, 2), there)
            for a, b in product(range(4), range(2))
        ]
        worst = max(worst, max(chances) / min(chances))
    total = record_level([[first.epsilon], [second.epsilon]])
    assert total - 1 <= loss(worst) <= total
