"""The curve module's promises, and the library's habits that make them necessary."""

from __future__ import annotations

from pathlib import Path

import pytest
from py_arkworks_bls12381 import GT

import anon
from anon.crypto.curve import (
    EIGENVALUE,
    FIELD_ORDER,
    G1,
    GENERATOR_G2,
    IDENTITY_G1,
    IMPLEMENTATION,
    NEGATED_GENERATOR_G2,
    ORDER,
    ROOT,
    FixedBase,
    FixedBases,
    Scalar,
    decode_g1,
    decode_scalar,
    encode_g1,
    hash_to_g1,
    multiexp,
    pairing_product_is_one,
)
from anon.crypto.expand_message import expand_message
from anon.errors import Malformed
from tests.anon.credential.token_forgery import ORDER_THREE, random_scalar

POINTS = [hash_to_g1(bytes([number]), b"test") for number in range(40)]
EDGES = [Scalar(0), Scalar(1), Scalar(EIGENVALUE - 1), Scalar(EIGENVALUE), Scalar(EIGENVALUE + 1), -Scalar(1)]


def slow_sum(points: list[G1], scalars: list[Scalar]) -> G1:
    total = IDENTITY_G1
    for point, scalar in zip(points, scalars, strict=True):
        total = total + point * scalar
    return total


def test_unequal_lists_are_an_error_though_the_library_truncates() -> None:
    scalars = [random_scalar(), random_scalar()]
    if IMPLEMENTATION == "native":
        assert G1.multiexp_unchecked(POINTS[:3], scalars) == slow_sum(POINTS[:2], scalars)
    for count in (1, 3, 40):
        with pytest.raises(ValueError, match="as many scalars as points"):
            multiexp(POINTS[:count], scalars)
    with pytest.raises(ValueError, match="at least one"):
        multiexp([], [])


def test_the_empty_pairing_product_is_an_error_though_the_library_calls_it_one() -> None:
    assert GT.pairing_check([], [])
    with pytest.raises(ValueError, match="at least one pair"):
        pairing_product_is_one([])


def test_pairing_product() -> None:
    scalar = random_scalar()
    assert pairing_product_is_one([(POINTS[0], GENERATOR_G2 * scalar), (POINTS[0] * scalar, NEGATED_GENERATOR_G2)])
    assert not pairing_product_is_one([(POINTS[0], GENERATOR_G2 * scalar), (POINTS[1], NEGATED_GENERATOR_G2)])


def test_the_endomorphism_is_what_the_module_says() -> None:
    assert pow(ROOT, 3, FIELD_ORDER) == 1 != ROOT
    assert (EIGENVALUE * EIGENVALUE + EIGENVALUE + 1) % ORDER == 0
    assert ORDER // EIGENVALUE < 1 << 128


@pytest.mark.parametrize("count", [1, 2, 3, 6, 16, 17, 40])
def test_multiexp_agrees_with_the_slow_sum(count: int) -> None:
    for _ in range(5):
        scalars = [random_scalar() for _ in range(count)]
        assert multiexp(POINTS[:count], scalars) == slow_sum(POINTS[:count], scalars)


@pytest.mark.parametrize("scalar", EDGES, ids=str)
def test_multiexp_and_tables_at_the_edges(scalar: Scalar) -> None:
    assert multiexp(POINTS[:2], [scalar, Scalar(3)]) == POINTS[0] * scalar + POINTS[1] * Scalar(3)
    assert multiexp([IDENTITY_G1, POINTS[1]], [scalar, scalar]) == POINTS[1] * scalar
    assert FixedBase(POINTS[0]).multiply(scalar) == POINTS[0] * scalar


def test_fixed_bases_agree_with_the_slow_sum() -> None:
    bases = FixedBases(POINTS[:11])
    scalars = [random_scalar() for _ in range(11)]
    assert bases.combine(scalars) == slow_sum(POINTS[:11], scalars)
    for count in (10, 12):
        with pytest.raises(ValueError, match="expected 11 scalars"):
            bases.combine((scalars * 2)[:count])


def test_order_three_point() -> None:
    assert ORDER_THREE != IDENTITY_G1
    assert ORDER_THREE + ORDER_THREE + ORDER_THREE == IDENTITY_G1
    with pytest.raises(Malformed, match="subgroup"):
        decode_g1(encode_g1(ORDER_THREE), "point")


def test_a_coordinate_beyond_the_field_is_refused() -> None:
    """x + p is a second spelling of x wherever it fits into 381 bits."""
    point = next(
        point
        for point in (hash_to_g1(bytes([number]), b"test") for number in range(200))
        if (int.from_bytes(encode_g1(point)) & (1 << 381) - 1) + FIELD_ORDER < 1 << 381
    )
    spelled = encode_g1(point)
    flags = int.from_bytes(spelled) >> 381 << 381
    second = (flags | (int.from_bytes(spelled) & (1 << 381) - 1) + FIELD_ORDER).to_bytes(48)
    assert second != spelled
    with pytest.raises(Malformed):
        decode_g1(second, "point")


@pytest.mark.parametrize("size", [0, 47, 49, 96])
def test_point_length(size: int) -> None:
    with pytest.raises(Malformed, match="expected 48 bytes"):
        decode_g1((encode_g1(POINTS[0]) * 2)[:size], "point")


@pytest.mark.parametrize("value", [0, ORDER, ORDER + 1, (1 << 256) - 1])
def test_scalar_range(value: int) -> None:
    with pytest.raises(Malformed, match="scalar"):
        decode_scalar(value.to_bytes(32, "big"), "value")


def test_scalar_ends_and_length() -> None:
    assert int(decode_scalar((1).to_bytes(32, "big"), "value")) == 1
    assert int(decode_scalar((ORDER - 1).to_bytes(32, "big"), "value")) == ORDER - 1
    for size in (0, 31, 33):
        with pytest.raises(Malformed, match="expected 32 bytes"):
            decode_scalar(bytes(size), "value")


def test_expand_message_has_limits() -> None:
    assert len(expand_message(b"", b"tag", 8160)) == 8160
    with pytest.raises(ValueError, match="8160"):
        expand_message(b"", b"tag", 8161)


def test_one_module_alone_imports_the_library() -> None:
    packages = Path(anon.__file__).parent.parent
    importers = [
        str(path.relative_to(packages))
        for package in ("anon", "peer", "aggregator")
        for path in (packages / package).rglob("*.py")
        if "from py_arkworks_bls12381 import" in path.read_text()
    ]
    assert importers == ["anon/crypto/curve/arkworks.py"]
