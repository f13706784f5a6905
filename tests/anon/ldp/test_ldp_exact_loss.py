"""Exact facts about the mechanisms, by enumerating every report: loss, bias, variance, eq. 4, eq. 5, errata."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon.ldp import (  # fmt: skip
    MECHANISMS,
    NANO,
    SCALE,
    Mechanism,
    NanoEpsilon,
    PerturbedReport,
    RawCategory,
    build,
    from_spec,
    loss,
    nano,
)
from anon.ldp.epsilon import exponential
from anon.ldp.subset import SubsetSelection
from anon.ldp.unary import optimum
from tests.support.tries import examples

SMALL = [(name, m, epsilon) for name in MECHANISMS for m in (2, 3, 5, 8) for epsilon in ("0.000001", "0.3", "2", "20")]


def every_report(mechanism: Mechanism) -> Iterator[PerturbedReport]:
    if mechanism.name == "krr":
        yield from (mechanism.parse(index.to_bytes(2, "big")) for index in range(mechanism.m))
    else:
        shift = -mechanism.m % 8
        sizes = {mechanism.w} if isinstance(mechanism, SubsetSelection) else set(range(mechanism.m + 1))
        yield from (
            mechanism.parse((bits << shift).to_bytes(mechanism.report_size, "big"))
            for bits in range(2**mechanism.m)
            if bits.bit_count() in sizes
        )


def likelihoods(mechanism: Mechanism) -> list[list[Fraction]]:
    categories = [RawCategory(value, mechanism.m) for value in range(mechanism.m)]
    return [[mechanism.likelihood(category, report) for category in categories] for report in every_report(mechanism)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "m", "epsilon"), SMALL)
def test_the_worst_ratio_over_all_reports_is_the_stated_epsilon_and_within_the_target(
    name: str, m: int, epsilon: str
) -> None:
    mechanism = build(name, m, nano(epsilon))
    table = likelihoods(mechanism)
    assert [sum(column) for column in zip(*table, strict=True)] == [1] * m
    worst = max(max(row) / min(row) for row in table)
    assert (
        loss(worst) == mechanism.epsilon
        if name != "subset"
        else mechanism.epsilon - 1 <= loss(worst) <= mechanism.epsilon
    )
    assert mechanism.epsilon <= nano(epsilon) <= mechanism.epsilon + 1
    with localcontext(prec=120):
        assert Decimal(worst.numerator) / Decimal(worst.denominator) <= (Decimal(mechanism.epsilon) / NANO).exp()


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from([*MECHANISMS, "auto"]), st.integers(2, 4096), st.integers(1, 20 * NANO))
def test_no_target_is_exceeded_nor_wasted(name: str, m: int, epsilon: int) -> None:
    mechanism = build(name, m, NanoEpsilon(epsilon))
    assert epsilon - 1 <= mechanism.epsilon <= epsilon
    assert mechanism.report_size == (2 if mechanism.name == "krr" else (m + 7) // 8)


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(2, 6), st.integers(1, SCALE - 2), st.integers(2, SCALE - 1))
def test_any_probabilities_a_document_may_state_have_the_loss_of_theorem_1(m: int, first: int, second: int) -> None:
    p, q = max(first, second), min(first, second)
    ratio = Fraction(p * (SCALE - q), (SCALE - p) * q)
    if p == q or loss(ratio) > 20 * NANO:
        return
    mechanism = from_spec("pq", m, p, q)
    assert mechanism.epsilon == loss(ratio) == loss(max(max(row) / min(row) for row in likelihoods(mechanism)))


@pytest.mark.parametrize(("name", "m", "epsilon"), [case for case in SMALL if case[1] <= 5])
def test_the_estimate_is_unbiased_and_its_variance_and_eq_4_are_exact(name: str, m: int, epsilon: str) -> None:
    mechanism = build(name, m, nano(epsilon))
    total = Fraction(0)
    supports = [mechanism.tally([report]) for report in every_report(mechanism)]
    for position in range(m):
        mean = sum(row[0] * support[position] for row, support in zip(likelihoods(mechanism), supports, strict=True))
        chance = Fraction(mechanism.p if position == 0 else mechanism.q, SCALE)
        exact = position == 0 or mechanism.name != "subset"  # whose sets are even to within 2**-64
        assert mean == chance if exact else abs(mean / chance - 1) < Fraction(1, 2**63)
        variance = chance * (1 - chance) / Fraction(mechanism.p - mechanism.q, SCALE) ** 2
        assert mechanism.variance(float(position == 0), 1) == pytest.approx(float(variance), rel=1e-12)
        total += variance
    assert mechanism.squared_error() == total
    assert mechanism.rmse(400) == pytest.approx(float(total) ** 0.5 / 20, rel=1e-12)


def test_unbias_inverts_the_expected_counts() -> None:
    mechanism = from_spec("pq", 3, SCALE // 2, SCALE // 4)
    assert mechanism.unbias([50, 25, 25], 100) == [100.0, 0.0, 0.0]
    assert mechanism.unbias([0, 100, 25], 100) == [-100.0, 300.0, 0.0]


def squared_error(m: int, p: Decimal, growth: Decimal) -> Decimal:
    q = p / (p + growth * (1 - p))
    return ((m - 1) * q * (1 - q) + p * (1 - p)) / (p - q) ** 2


@pytest.mark.parametrize("m", [2, 3, 16, 200, 4096])
@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "2", "7", "12"])
def test_eq_5_is_where_brute_force_finds_the_minimum(m: int, epsilon: str) -> None:
    with localcontext(prec=60):
        growth = exponential(nano(epsilon))
        low, high = Decimal(0), Decimal(1)
        for _ in range(140):
            left, right = low + (high - low) / 3, high - (high - low) / 3
            if squared_error(m, left, growth) < squared_error(m, right, growth):
                high = right
            else:
                low = left
        found = optimum(m, growth)
        assert abs(found - low) < Decimal("1e-15")
        assert squared_error(m, found, growth) <= squared_error(m, low, growth) * (1 + Decimal("1e-30"))


@pytest.mark.parametrize(("epsilon", "last"), [("0.25", 5), ("0.5", 6), ("1", 9), ("2", 20), ("4", 132)])
def test_random_response_beats_eq_5_up_to_the_known_m(epsilon: str, last: int) -> None:
    """Figures of an exact enumeration done beforehand; the paper only says "for low m and high epsilon"."""
    errors = [
        {name: build(name, m, nano(epsilon)).squared_error() for name in ("krr", "pq")} for m in range(2, last + 20)
    ]
    assert [min(error, key=error.__getitem__) for error in errors] == ["krr"] * (last - 1) + ["pq"] * 19


def test_auto_is_never_worse_than_any_named_mechanism() -> None:
    for m in (2, 9, 10, 64):
        for epsilon in ("0.1", "1", "5"):
            best = build("auto", m, nano(epsilon)).squared_error()
            assert best == min(build(name, m, nano(epsilon)).squared_error() for name in MECHANISMS)


@pytest.mark.parametrize(("m", "ratio"), [(2, 3.4), (4, 1.5)])
def test_random_response_as_printed_would_add_noise(m: int, ratio: float) -> None:
    """Erratum 1: solving the printed ln(m p / (1 - p)) for p at epsilon 1 multiplies the error by this."""
    odds = Fraction(exponential(nano(1))) / m
    p = float(odds / (1 + odds))
    q = (1 - p) / (m - 1)
    printed = (((m - 1) * q * (1 - q) + p * (1 - p)) ** 0.5) / (p - q)
    assert printed / build("krr", m, nano(1)).rmse(1) == pytest.approx(ratio, abs=0.06)


def test_rappor_equals_eq_5_at_two_categories_and_comes_within_3_percent_at_16() -> None:
    """Erratum 12."""
    for epsilon in ("0.25", "0.5", "1"):
        target = nano(epsilon)
        assert build("rappor", 2, target).rmse(1) == pytest.approx(build("pq", 2, target).rmse(1), rel=1e-12)
        assert 1 < build("rappor", 16, target).rmse(1) / build("pq", 16, target).rmse(1) < 1.03


def test_eq_5_tends_to_optimised_unary_encoding() -> None:
    for m, epsilon, margin in [(4, "1", 0.01), (16, "1", 0.01), (4, "2", 0.054), (16, "4", 0.099), (4096, "1", 1e-4)]:
        q = int(SCALE / (Fraction(exponential(nano(epsilon))) + 1)) + 1
        encoding = from_spec("pq", m, SCALE // 2, q)
        assert 1 <= encoding.rmse(1) / build("pq", m, nano(epsilon)).rmse(1) <= 1 + margin
