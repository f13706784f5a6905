"""Black-box audit of every mechanism, position and category, m up to 16.

One audit counts every position set, every position clear and every ordered pair of positions, for every category;
its bounds hold together except with probability FALSE_ALARM. Honest mechanisms at epsilon 3: 28 audits of TRIALS
reports for each category, so by the union bound the file accuses an honest one with probability below 28 * 1e-4.
Seeded: rolled once and for all.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from math import comb

import pytest

from anon.ldp import MECHANISMS, PerturbedReport, RandomBytes, RawCategory, build, nano
from tests.privacy.black_box_audit import Finding, Perturb, View, audit, one_hot_view, unary_view, upper_bound

pytestmark = pytest.mark.slow

FALSE_ALARM = 1e-4
TRIALS = 10_000
STATED = nano(3)
LOUDER = nano("3.6")
SIZES = (2, 3, 5, 8, 9, 12, 16)
"""Reports of one byte and of two, full and padded. The others up to 16 are soak."""


def view_of(name: str, m: int) -> View:
    return one_hot_view(m) if name == "krr" else unary_view(m)


def run(name: str, m: int, perturb: Perturb, trials: int = TRIALS) -> Finding:
    seeded = random.Random(f"{name} {m} {trials}").randbytes
    return audit(perturb, view_of(name, m), m, trials, FALSE_ALARM, seeded)


def audit_sizes(name: str, sizes: Iterable[int]) -> None:
    """The honest mechanism passes, closely, and one that is a fifth louder is found."""
    for m in sizes:
        finding = run(name, m, build(name, m, STATED).perturb)
        assert not finding.exceeds(STATED), (m, finding)
        assert finding.exceeds(nano("2.5")), ("the audit has lost its power", m, finding)
        finding = run(name, m, build(name, m, LOUDER).perturb)
        assert finding.exceeds(STATED), (m, finding)


@pytest.mark.parametrize("name", MECHANISMS)
def test_no_mechanism_loses_more_than_it_states_and_a_louder_copy_is_found(name: str) -> None:
    audit_sizes(name, SIZES)


@pytest.mark.soak
@pytest.mark.parametrize("name", MECHANISMS)
def test_the_same_for_the_other_sizes(name: str) -> None:
    audit_sizes(name, sorted(set(range(2, 17)) - set(SIZES)))


def with_a_clear_bit(name: str, m: int, position: int, only_category: int | None = None) -> Perturb:
    """Return a copy that tells the truth about one bit of its report: of the m, or of the category's binary digits."""
    mechanism = build(name, m, STATED)
    width = 16 if name == "krr" else m + -m % 8
    mask = 1 << (position if name == "krr" else width - 1 - position)

    def perturb(category: RawCategory, random_bytes: RandomBytes) -> PerturbedReport:
        noisy = int.from_bytes(mechanism.perturb(category, random_bytes).data, "big")
        truth = category.value if name == "krr" else 1 << (width - 1 - category.value)
        if only_category in (None, category.value):
            noisy = noisy & ~mask | truth & mask
        return mechanism.parse(noisy.to_bytes(width // 8, "big"))

    return perturb


@pytest.mark.parametrize(("name", "m", "positions"), [("krr", 16, 4), ("pq", 16, 16), ("rappor", 16, 16), ("pq", 3, 3)])
def test_a_copy_that_leaves_a_single_bit_un_noised_is_found_at_every_position(
    name: str, m: int, positions: int
) -> None:
    for position in range(positions):
        finding = run(name, m, with_a_clear_bit(name, m, position), trials=1500)
        assert finding.exceeds(STATED), (position, finding)


@pytest.mark.parametrize("name", ["pq", "rappor"])
def test_a_bit_un_noised_for_a_single_category_is_found_for_every_category(name: str) -> None:
    for category in range(16):
        finding = run(name, 16, with_a_clear_bit(name, 16, category, category), trials=1500)
        assert finding.exceeds(STATED), (category, finding)
        assert str(category) in finding.event


def test_the_bound_holds_as_often_as_it_says() -> None:
    """Exact: for each true chance, the probability that the bound falls below it is at most the risk."""
    trials, risk = 60, 0.01
    bounds = [upper_bound(count, trials, risk) for count in range(trials + 1)]
    assert bounds[-1] == 1.0
    for chance in (0.001, 0.02, 0.1, 0.5, 0.93, 0.999):
        weights = [
            comb(trials, count) * chance**count * (1 - chance) ** (trials - count) for count in range(trials + 1)
        ]
        assert sum(weight for weight, bound in zip(weights, bounds, strict=True) if bound < chance) <= risk


@pytest.mark.soak
@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize(
    ("epsilon", "louder", "trials"),
    [("0.5", "0.6", 500_000), ("1", "1.2", 120_000), ("2", "2.4", 100_000), ("4", "4.8", 60_000)],
)
def test_the_same_at_other_epsilons(name: str, epsilon: str, louder: str, trials: int) -> None:
    for m in (2, 4, 16):
        honest = run(name, m, build(name, m, nano(epsilon)).perturb, trials)
        assert not honest.exceeds(nano(epsilon)), (m, honest)
        loud = run(name, m, build(name, m, nano(louder)).perturb, trials)
        assert loud.exceeds(nano(epsilon)), (m, loud)
