"""Faults that were planted in the accounting once and went unnoticed: one test for each."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from anon.accounting.central import SlotCurve
from anon.accounting.privacy_loss import Loss, _on_lattice, compose
from anon.ldp import build, nano

ONE = 1 << 96


def test_a_loss_between_two_multiples_of_the_step_becomes_the_upper() -> None:
    low, masses = _on_lattice(Loss({-15: 1, -10: 2, 0: 3, 5: 4, 11: 5}), 10)
    assert {(low + index) * 10: mass for index, mass in enumerate(masses) if mass} == {-10: 3, 0: 3, 10: 4, 20: 5}


def test_a_coarse_composition_is_never_below_the_exact_one() -> None:
    """Two losses whose only common step is 1 nano-epsilon, so that a coarser lattice must be taken."""
    first, second = Loss.of_response(1_000_000_007, 0.5), Loss.of_response(777_777_777, 0.4)
    total = compose([first, second])
    for epsilon in (0.2, 1.0, 1.5, 1.7, 1.77):
        exact = sum(
            Fraction(before * after, ONE * ONE) * max(Fraction(-math.expm1(epsilon - (loss + other) / 1e9)), 0)
            for loss, before in first.masses.items()
            for other, after in second.masses.items()
        )
        assert total.delta(epsilon) >= exact


@pytest.mark.parametrize(("epsilon", "amplified"), [("8", True), ("8.000001", False), ("12", False)])
def test_no_crowd_is_computed_beyond_a_local_epsilon_of_eight(epsilon: str, amplified: bool) -> None:
    mechanism = build("krr", 4, nano(epsilon))
    assert (mechanism.epsilon <= nano("8")) is amplified
    assert (SlotCurve.of([(mechanism, 1)], 1000).curve is not None) is amplified
