"""The contract of a mechanism: what it accepts, what it refuses, how it uses randomness."""

from __future__ import annotations

import copy
import pickle
import random

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon.errors import Malformed, Refused
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
    nano,
)
from tests.support.tries import examples

EDGES = (0, 1, 2**63 - 1, 2**63, 2**63 + 1, SCALE - 1)


def bits_of(mechanism: Mechanism, report: PerturbedReport) -> list[int]:
    return mechanism.tally([report])


@st.composite
def perturbations(draw: st.DrawFn) -> tuple[int, int, int]:
    numerator = st.integers(1, SCALE - 1) | st.sampled_from([2**63 - 1, 2**63, 2**63 + 1])
    first, second = draw(numerator), draw(numerator)
    return draw(st.integers(2, 40)), max(first, second), min(first, second)


@settings(max_examples=examples(150), deadline=None)
@given(perturbations(), st.data())
def test_a_unary_bit_is_set_exactly_when_its_64_random_bits_are_below_p_or_q(
    numbers: tuple[int, int, int], data: st.DataObject
) -> None:
    m, p, q = numbers
    try:
        mechanism = from_spec("pq", m, p, q)
    except Refused:
        return
    near = st.sampled_from([*EDGES, p - 1, p, q - 1, q, min(p + 1, SCALE - 1), q + 1]) | st.integers(0, SCALE - 1)
    words = data.draw(st.lists(near, min_size=m, max_size=m))
    value = data.draw(st.integers(0, m - 1))
    report = mechanism.perturb(RawCategory(value, m), lambda _: b"".join(word.to_bytes(8, "big") for word in words))
    expected = [int(word < (p if position == value else q)) for position, word in enumerate(words)]
    assert bits_of(mechanism, report) == expected
    assert mechanism.parse(bytes(report)) == report


@settings(max_examples=examples(100), deadline=None)
@given(st.integers(2, 4096), st.integers(1, 20 * NANO), st.data())
def test_random_response_cuts_the_64_bit_draws_into_p_and_then_q_each(
    m: int, epsilon: int, data: st.DataObject
) -> None:
    mechanism = build("krr", m, NanoEpsilon(epsilon))
    assert mechanism.p + (m - 1) * mechanism.q == SCALE
    step = data.draw(st.integers(1, m - 1))
    start = mechanism.p + (step - 1) * mechanism.q
    value = data.draw(st.integers(0, m - 1))
    for draw, steps in [(0, 0), (mechanism.p - 1, 0), (start, step), (start + mechanism.q - 1, step)]:
        report = mechanism.perturb(RawCategory(value, m), lambda _, draw=draw: draw.to_bytes(8, "big"))  # type: ignore[misc]
        assert int.from_bytes(report.data, "big") == (value + steps) % m


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("m", [2, 7, 8, 9, 128, 4096])
def test_every_category_costs_one_call_for_the_same_number_of_bytes(name: str, m: int) -> None:
    mechanism = build(name, m, nano(1))
    calls: list[int] = []

    def recording(size: int) -> bytes:
        calls.append(size)
        return bytes(size)

    values = sorted({0, 1, m // 2, m - 1})
    reports = [mechanism.perturb(RawCategory(value, m), recording) for value in values]
    assert calls == [mechanism.random_size] * len(values)
    assert {len(bytes(report)) for report in reports} == {mechanism.report_size}


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_source_that_gives_too_little_is_not_used(name: str) -> None:
    with pytest.raises(ValueError, match="randomness"):
        build(name, 5, nano(1)).perturb(RawCategory(0, 5), lambda size: bytes(size - 1))


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_category_of_another_survey_is_not_perturbed(name: str) -> None:
    with pytest.raises(ValueError, match="among 6"):
        build(name, 5, nano(1)).perturb(RawCategory(0, 6), bytes)


BAD_REPORTS = {
    "krr empty": ("krr", 5, b""),
    "krr short": ("krr", 5, b"\x01"),
    "krr long": ("krr", 5, b"\x00\x01\x00"),
    "krr m itself": ("krr", 5, b"\x00\x05"),
    "krr little-endian": ("krr", 5, b"\x01\x00"),
    "pq empty": ("pq", 9, b""),
    "pq short": ("pq", 9, b"\xff"),
    "pq long": ("pq", 9, b"\xff\x80\x00"),
    "pq first stray bit": ("pq", 9, b"\x00\x40"),
    "pq last stray bit": ("pq", 9, b"\xff\x81"),
    "subset one too few": ("subset", 9, b"\x80\x00"),
    "subset one too many": ("subset", 9, b"\xe0\x00"),
    "subset stray bit": ("subset", 9, b"\x80\x40"),
    "subset short": ("subset", 9, b"\xc0"),
    "rappor stray bit": ("rappor", 2, b"\x20"),
}


@pytest.mark.parametrize("case", BAD_REPORTS)
def test_a_report_that_perturb_could_not_have_written_is_malformed(case: str) -> None:
    name, m, data = BAD_REPORTS[case]
    with pytest.raises(Malformed):
        build(name, m, nano(1)).parse(data)


@settings(max_examples=examples(50), deadline=None)
@given(st.sampled_from(list(MECHANISMS)), st.integers(2, 300), st.binary(max_size=40))
def test_what_parses_has_one_spelling(name: str, m: int, data: bytes) -> None:
    mechanism = build(name, m, nano(1))
    try:
        report = mechanism.parse(data)
    except Malformed:
        return
    assert bytes(report) == data
    assert len(data) == mechanism.report_size


BAD_SPECS = {
    "unknown name": ("oue", 4, 2, 1),
    "auto is no mechanism": ("auto", 4, 2**63, 2**62),
    "one category": ("pq", 1, 2**63, 2**62),
    "too many categories": ("pq", 4097, 2**63, 2**62),
    "negative m": ("pq", -4, 2**63, 2**62),
    "p equals q": ("pq", 4, 2**63, 2**63),
    "p below q": ("pq", 4, 2**62, 2**63),
    "q zero": ("pq", 4, 2**63, 0),
    "q negative": ("pq", 4, 2**63, -1),
    "p is the scale": ("pq", 4, SCALE, 2**62),
    "p beyond the scale": ("pq", 4, 2**65, 2**62),
    "p is a float": ("pq", 4, 2.0**63, 2**62),
    "m is a bool": ("krr", True, 2**63, 2**63),
    "loss above 20": ("pq", 4, SCALE - 1, 1),
    "krr does not add up": ("krr", 4, 2**63, 2**62),
    "krr adds up to less": ("krr", 4, 2**62, 2**61),
    "subset does not add up": ("subset", 4, 2**63, 2**62),
    "subset of none": ("subset", 4, 2**63, 2**61),
    "rappor does not add up": ("rappor", 4, 2**63, 2**62),
}


@pytest.mark.parametrize("case", BAD_SPECS)
def test_a_document_cannot_describe_a_mechanism_that_does_not_exist(case: str) -> None:
    with pytest.raises(Refused):
        from_spec(*BAD_SPECS[case])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "m", "epsilon"),
    [
        ("pq", 1, NANO),
        ("krr", 4097, NANO),
        ("rappor", 4, 0),
        ("auto", 4, -1),
        ("pq", 4, 20 * NANO + 1),
        ("laplace", 4, NANO),
    ],
)
def test_a_study_cannot_ask_for_one_either(name: str, m: int, epsilon: int) -> None:
    with pytest.raises(Refused):
        build(name, m, NanoEpsilon(epsilon))


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mechanism_survives_its_description(name: str) -> None:
    mechanism = build(name, 10, nano("1.5"))
    spec = mechanism.spec()
    again = from_spec(str(spec["name"]), int(spec["m"]), int(spec["p"]), int(spec["q"]))
    assert again == mechanism
    assert again.spec() == spec
    assert pickle.loads(pickle.dumps(mechanism)).perturb(RawCategory(3, 10), bytes) == mechanism.perturb(
        RawCategory(3, 10), bytes
    )


def test_raw_and_perturbed_are_frozen_and_raw_is_silent() -> None:
    category = RawCategory(3, 10)
    assert "3" not in repr(category)
    assert "3" not in f"{category!s}{[category]}"
    report = build("krr", 10, nano(1)).perturb(category, random.Random(1).randbytes)
    assert copy.copy(report) == report
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        category.value = 4  # type: ignore[misc]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        report.data = b""  # type: ignore[misc]
    with pytest.raises(TypeError, match="only a mechanism"):
        PerturbedReport(b"\x00\x03", object())


@pytest.mark.parametrize(("value", "m"), [(-1, 4), (4, 4)])
def test_a_category_lies_in_its_survey_and_the_error_does_not_quote_it(value: int, m: int) -> None:
    with pytest.raises(ValueError, match=r"lies in 0\.\.3") as caught:
        RawCategory(value, m)
    assert str(value) not in str(caught.value).replace("4 categories", "")
