"""Composition of privacy-loss distributions: against exact sums, against reference values, and never below the
truth."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from itertools import product
from pathlib import Path

import pytest

from anon.accounting.central import DELTA, SlotCurve, central, signal, slot_loss, solve
from anon.accounting.privacy_loss import Loss, compose, connect
from anon.ldp import MECHANISMS, NANO, Mechanism, RawCategory, build, from_spec, nano

REFERENCE = json.loads((Path(__file__).parent / "pld_reference.json").read_text("utf-8"))


def exact_delta(pairs: Iterable[tuple[float, float]], epsilon: float) -> float:
    """Over every combination of what (epsilon, signal) responses can lose."""
    points = [[(one, a), (0.0, 1 - a - a * math.exp(-one)), (-one, a * math.exp(-one))] for one, a in pairs]
    total = 0.0
    for combination in product(*points):
        loss, chance = sum(one for one, _ in combination), math.prod(one for _, one in combination)
        total += chance * max(1 - math.exp(epsilon - loss), 0)
    return total


PAIRS = [(0.5, 0.3), (0.5, 0.3), (1.0, 0.4), (0.25, 0.5), (0.7, 0.1)]


def test_a_composition_is_above_the_exact_sum_and_close_to_it() -> None:
    total = compose([Loss.of_response(nano(one), a) for one, a in PAIRS])
    for epsilon in (0.0, 0.3, 0.9, 1.7, 2.6, 2.94):
        true = exact_delta(PAIRS, epsilon)
        assert true <= total.delta(epsilon) <= true * (1 + 1e-6) + 1e-12
    assert total.delta(2.95) < 1e-12 < total.delta(2.9)
    assert total.highest == pytest.approx(2.95)


@pytest.mark.parametrize("name", MECHANISMS)
def test_epsilon_and_signal_are_the_whole_loss_of_a_report(name: str) -> None:
    """The hockey-stick divergence between two categories, over every report, at several epsilons."""
    mechanism = build(name, 5, nano("1.3"))
    spelled = (
        [index.to_bytes(2, "big") for index in range(5)]
        if name == "krr"
        else [bytes([bits << 3]) for bits in range(32)]
    )
    first, second = (law(mechanism, spelled, value) for value in (0, 3))
    loss = Loss.of_response(mechanism.epsilon, signal(mechanism))
    for epsilon in (-1.0, 0.0, 0.4, 1.0, 1.29):
        true = sum(max(one - math.exp(epsilon) * other, 0.0) for one, other in zip(first, second, strict=True))
        assert loss.delta(epsilon) == pytest.approx(true, rel=1e-6)


def law(mechanism: Mechanism, spelled: list[bytes], value: int) -> list[float]:
    found = []
    for data in spelled:
        try:
            found.append(float(mechanism.likelihood(RawCategory(value, 5), mechanism.parse(data))))
        except Exception:  # what cannot be a report has no likelihood
            found.append(0.0)
    assert sum(found) == pytest.approx(1)
    return found


@pytest.mark.parametrize("case", REFERENCE["cases"], ids=lambda case: case["name"])
def test_the_same_as_dp_accounting(case: dict[str, object]) -> None:
    """Reference values made by dp-accounting, see the file; its own discretisation is 1e-4 and also rounds up."""
    losses = [Loss.of_response(nano(one), a) for one, a, count in case["responses"] for _ in range(count)]  # type: ignore[attr-defined]
    total = compose(losses)
    for epsilon, delta in case["deltas"]:  # type: ignore[attr-defined]
        assert total.delta(epsilon) <= delta * (1 + 1e-3) + 1e-12
        assert total.delta(epsilon) >= delta * 0.985 - 1e-9
    for delta, epsilon in case["epsilons"]:  # type: ignore[attr-defined]
        assert solve(total.delta, delta, total.highest) == pytest.approx(epsilon, rel=2e-3)


@pytest.mark.slow
def test_connected_points_lie_above_the_curve_and_near_it() -> None:
    rows = [(build("krr", 4, nano(1)), 1)]
    curve = SlotCurve.of(rows, 2000)
    loss = connect(curve.delta, nano("0.002"), 60)
    for epsilon in (-0.05, 0.0, 0.013, 0.03, 0.0612, 0.1):
        positive = curve.delta(abs(epsilon))
        true = positive if epsilon >= 0 else 1 - math.exp(epsilon) * (1 - positive)
        assert true - 1e-12 <= loss.delta(epsilon) <= true * 1.02 + 1e-6


@pytest.mark.slow
def test_two_slots_cost_more_than_one_and_less_than_twice() -> None:
    rows = [(build("krr", 8, nano(1)), 1)]
    one, two, many = (central([rows] * count, [5000] * count, count * NANO).epsilon for count in (1, 2, 12))
    assert one < two < 2 * one
    assert many == pytest.approx(one * 12**0.5, rel=0.15)


@pytest.mark.slow
def test_slots_of_different_kinds_are_composed() -> None:
    slots = [[(build("krr", 8, nano(1)), 1)], [(build("pq", 16, nano("0.5")), 1)], [(build("krr", 2, nano("0.25")), 1)]]
    apart = [central([one], [3000], one[0][0].epsilon).epsilon for one in slots]
    together = central(slots, [3000] * 3, nano("1.75")).epsilon
    assert max(apart) < together < sum(apart)


def test_among_nobody_the_central_epsilon_is_the_local_one() -> None:
    rows = [(build("krr", 8, nano(1)), 1)]
    for honest in (0, 1):
        found = central([rows, rows], [honest] * 2, 2 * NANO)
        assert (found.epsilon, found.amplified) == (2.0, False)
    assert central([rows], [1000], NANO).amplified


@pytest.mark.slow
def test_more_honest_reports_hide_better() -> None:
    rows = [(build("subset", 16, nano(1)), 3), (build("krr", 2, nano(1)), 1)]
    found = [central([rows], [honest], NANO).epsilon for honest in (10, 100, 1000, 10_000)]
    assert found == sorted(found, reverse=True)


def test_a_slot_whose_rows_differ_is_bounded_by_its_dearest_row() -> None:
    cheap, dear = build("krr", 4, nano("0.5")), build("pq", 8, nano(2))
    mixed, only = slot_loss([(cheap, 1), (dear, 1)]), slot_loss([(dear, 1)])
    for epsilon in (0.0, 0.2, 0.6, 1.9):
        assert mixed.delta(epsilon) >= max(only.delta(epsilon), slot_loss([(cheap, 1)]).delta(epsilon))
    assert SlotCurve.of([(cheap, 1), (dear, 1)], 10_000).epsilon(DELTA) < 2


def test_probabilities_that_are_none_are_our_own_mistake() -> None:
    for epsilon, chance in [(0, 0.5), (NANO, 0.9), (NANO, 0.0)]:
        with pytest.raises(ValueError, match="signal"):
            Loss.of_response(epsilon, chance)


def test_a_document_with_a_tiny_epsilon_is_accounted_too() -> None:
    weak = from_spec("krr", 2, 2**63 + 2**40, 2**63 - 2**40)
    assert central([[(weak, 1)]] * 3, [500] * 3, 3 * weak.epsilon).epsilon <= 3 * weak.epsilon / NANO
