"""A charge: an amount with all that it is worth nothing without."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon.errors import Malformed
from anon.protocols.charge import LOCAL, Budget, Charge, Measure, Neighbours, Unit, local
from anon.protocols.registry import charge_of, exposure_of
from tests.support.fake_aggregator import DECLARED, FakeAggregator

IF = "one of two servers keeps its share to itself"


def test_a_histogram_study_costs_local_epsilon_of_a_person() -> None:
    manifest = FakeAggregator.with_study(DECLARED).manifest
    assert charge_of(manifest) == exposure_of(manifest) == local(manifest.epsilon)
    assert charge_of(manifest).budget == LOCAL


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: local(-1),
        lambda: Charge(Measure.LOCAL, 1.0),  # type: ignore[arg-type]
        lambda: Charge(Measure.LOCAL, True),
        lambda: Charge(Measure.LOCAL, 1, condition=IF),
        lambda: Charge(Measure.ZCDP, 1),
        lambda: Charge(Measure.CENTRAL, 1, condition=" "),
        lambda: Charge(Measure.CENTRAL, 1, condition="two\nlines"),
    ],
)
def test_a_charge_that_cannot_be(wrong) -> None:
    with pytest.raises(Malformed):
        wrong()


def test_to_replace_is_to_remove_and_to_add() -> None:
    """The released count of a two-sided geometric noise: both relations by its probabilities, worst case over
    outputs."""
    ratio = 0.5  # P(noise = k) is proportional to ratio**|k|
    added, replaced = (max(abs(k - moved) - abs(k) for k in range(-9, 10)) * -math.log(ratio) for moved in (1, 2))
    assert replaced == pytest.approx(2 * added)
    pure = Charge(Measure.CENTRAL, 5, neighbours=Neighbours.ADD_REMOVE, condition=IF).replacing()
    rho = Charge(Measure.ZCDP, 5, Unit.RECORD, Neighbours.ADD_REMOVE, IF).replacing()
    assert (pure.amount, rho.amount, rho.neighbours) == (10, 20, Neighbours.REPLACE_ONE)
    assert rho.budget == Budget(Measure.ZCDP, Unit.RECORD) and rho.budget.symbol == "rho" and LOCAL.symbol == "epsilon"


@given(st.sampled_from(Measure), st.integers(0, 2**60), st.sampled_from(Unit), st.sampled_from(Neighbours))
def test_what_a_budget_books_is_never_less(measure: Measure, amount: int, unit: Unit, neighbours: Neighbours) -> None:
    one = Charge(measure, amount, unit, neighbours, "" if measure is Measure.LOCAL else IF)
    assert one.replacing().amount >= amount and one.replacing().replacing() == one.replacing()
