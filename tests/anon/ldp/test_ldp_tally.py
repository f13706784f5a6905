"""The aggregator's fast counts against the mechanisms' own and against plain unpacking."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.protocols.tally import tally, tally_krr, tally_unary
from anon.errors import Malformed
from anon.ldp import MECHANISMS, RawCategory, build, nano
from tests.support.tries import examples


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 3000) | st.sampled_from([4095, 4096, 4097, 12_289]), st.integers(2, 200), st.integers(0, 2**32))
def test_bit_planes_count_what_unpacking_counts(n: int, m: int, seed: int) -> None:
    packed = np.random.default_rng(seed).integers(0, 256, (n, (m + 7) // 8), dtype=np.uint8)
    packed[:, -1] &= 0xFF << (-m % 8) & 0xFF
    assert tally_unary(packed, m).tolist() == np.unpackbits(packed, axis=1).sum(axis=0)[:m].tolist()


@pytest.mark.parametrize(("n", "width"), [(200_003, 16), (9000, 128), (300, 512), (70_000, 1)])
def test_all_ones_count_to_n(n: int, width: int) -> None:
    packed = np.full((n, width), 255, dtype=np.uint8)
    assert set(tally_unary(packed, 8 * width).tolist()) == {n}


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("m", [2, 9, 128])
def test_the_fast_tally_agrees_with_the_mechanism(name: str, m: int) -> None:
    mechanism, source = build(name, m, nano(1)), random.Random(5)
    reports = [mechanism.perturb(RawCategory(source.randrange(m), m), source.randbytes) for _ in range(501)]
    expected = mechanism.tally(reports)
    assert tally(mechanism, reports).tolist() == expected
    assert tally(mechanism, b"".join(bytes(report) for report in reports)).tolist() == expected
    assert tally(mechanism, reports[:0]).tolist() == [0] * m == tally(mechanism, b"").tolist()


def test_a_strided_view_is_counted_too() -> None:
    packed = np.random.default_rng(2).integers(0, 256, (5000, 6), dtype=np.uint8)
    assert tally_unary(packed[::2, 1:3], 16).tolist() == np.unpackbits(packed[::2, 1:3], axis=1).sum(axis=0).tolist()
    high = (packed & 1).astype(np.uint8)[::2, :2]
    assert tally_krr(high, 300).sum() == 2500


@pytest.mark.parametrize(
    ("name", "data"), [("krr", b"\x00\x09"), ("krr", b"\x00"), ("pq", b"\x00\x01"), ("pq", b"\x00" * 3)]
)
def test_bytes_that_do_not_parse_are_not_counted(name: str, data: bytes) -> None:
    with pytest.raises(Malformed):
        tally(build(name, 9, nano(1)), data)


def test_reports_of_another_survey_are_not_counted() -> None:
    report = build("pq", 24, nano(1)).perturb(RawCategory(0, 24), bytes)
    other = build("pq", 8, nano(1)).perturb(RawCategory(0, 8), bytes)
    with pytest.raises(Malformed):
        tally(build("pq", 16, nano(1)), [report, other])


@pytest.mark.parametrize("packed", [np.zeros((3, 3), np.uint8), np.zeros(16, np.uint8), np.zeros((3, 2), np.int64)])
def test_an_array_of_another_shape_is_our_own_mistake(packed: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> None:
    with pytest.raises(ValueError, match="shape"):
        tally_unary(packed, 16)
