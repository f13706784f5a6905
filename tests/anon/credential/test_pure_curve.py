"""The curve in Python against the native library: equal bytes and equal verdicts, on random, edge and hostile
inputs."""

from __future__ import annotations

import hashlib
import random
from math import gcd, prod

import py_arkworks_bls12381 as native
import pytest

from anon.crypto.bls12381 import EFFECTIVE_COFACTOR, EIGENVALUE, FIELD_ORDER, ORDER, PARAMETER
from anon.crypto.pure.curve import G1, G2, Scalar, jacobian, multiexp, pairing_product_is_one
from anon.crypto.pure.curve.fp2 import multiply2, power2, square_root, square_root2
from anon.crypto.pure.curve.hash_to_curve import EXCEPTION, map_to_curve, simplified_swu
from anon.crypto.pure.curve.isogeny import CURVE_A, CURVE_B
from benchmarks.vectors.small_orders import COFACTOR_PRIMES, torsion

RANDOM = random.Random(20261121)
EDGES = [
    0,
    1,
    2,
    3,
    15,
    16,
    17,
    31,
    32,
    33,
    EIGENVALUE - 1,
    EIGENVALUE,
    EIGENVALUE + 1,
    2**127,
    2**128,
    ORDER - 2,
    ORDER - 1,
]
ORDER_THREE = b"\x80" + bytes(47)
INFINITY = b"\xc0" + bytes(47)


def hashed(number: int) -> bytes:
    return G1.hash_to_curve(number.to_bytes(2, "big"), b"test").to_compressed_bytes()


def both(data: bytes) -> tuple[G1, native.G1Point]:
    return G1.from_compressed_bytes_unchecked(data), native.G1Point.from_compressed_bytes_unchecked(data)


def cleared(element: int) -> bytes:
    """The native library's map clears the cofactor too."""
    return G1(jacobian.multiply(map_to_curve(element), PARAMETER + 1)).to_compressed_bytes()


def scalars(value: int) -> tuple[Scalar, native.Scalar]:
    return Scalar(value), native.Scalar.from_be_bytes(value.to_bytes(32, "big"))


def outside_g1() -> list[bytes]:
    """Points of the curve outside the subgroup, by first coordinate."""
    found = [x for x in range(200) if square_root(x**3 + 4) is not None]
    return [(1 << 383 | x).to_bytes(48, "big") for x in found]


def outside_g2() -> list[bytes]:
    words = ((1 << 767 | b << 384 | a).to_bytes(96, "big") for a in range(8) for b in range(8))
    return [word for word in words if decodes(G2, word)]


def decodes(group: type, data: bytes) -> bool:
    try:
        group.from_compressed_bytes_unchecked(data)  # type: ignore[attr-defined]
    except ValueError:
        return False
    return True


def is_fine(group: type, data: bytes) -> bool:
    """As `curve` decides: decodes, canonical, in the subgroup."""
    if not decodes(group, data):
        return False
    point = group.from_compressed_bytes_unchecked(data)  # type: ignore[attr-defined]
    return bytes(point.to_compressed_bytes()) == data and point.is_in_subgroup()


# Hashing


@pytest.mark.parametrize("size", [0, 1, 31, 32, 64, 500])
@pytest.mark.parametrize("dst", [b"t", b"QUUX-V01-CS02-with-BLS12381G1_XMD:SHA-256_SSWU_RO_", bytes(255)], ids=len)
def test_hash_to_curve_gives_the_native_bytes(size: int, dst: bytes) -> None:
    message = RANDOM.randbytes(size)
    point = G1.hash_to_curve(message, dst)
    assert point.to_compressed_bytes() == bytes(native.G1Point.hash_to_curve(message, dst).to_compressed_bytes())
    assert point.is_in_subgroup()


def test_hash_to_curve_vector_of_rfc_9380() -> None:
    """Appendix J.9.1, the empty message and `abc`."""
    dst = b"QUUX-V01-CS02-with-BLS12381G1_XMD:SHA-256_SSWU_RO_"
    for message, x in (
        (b"", 0x052926ADD2207B76CA4FA57A8734416C8DC95E24501772C814278700EED6D1E4E8CF62D9C09DB0FAC349612B759E79A1),
        (b"abc", 0x03567BC5EF9C690C2AB2ECDF6A96EF1C139CC0B2F284DCA0A9A7943388A49A3AEE664BA5379A7655D3C68900BE2F6903),
    ):
        place = G1.hash_to_curve(message, dst).affine()
        assert place is not None and place[0] == x


@pytest.mark.parametrize(
    "element", [0, 1, FIELD_ORDER - 1, *(RANDOM.randrange(FIELD_ORDER) for _ in range(20))], ids=str
)
def test_the_map_gives_the_native_bytes(element: int) -> None:
    x, y = simplified_swu(element)
    assert (y * y - x**3 - CURVE_A * x - CURVE_B) % FIELD_ORDER == 0
    assert cleared(element) == bytes(native.G1Point.map_from_fp_be(element.to_bytes(48, "big")).to_compressed_bytes())


def test_the_maps_exceptional_elements() -> None:
    """0 and the roots of -1 / 11, where the general formula divides by zero."""
    roots = [root for root in [square_root(-pow(11, -1, FIELD_ORDER) % FIELD_ORDER)] if root]
    for element in [0, *roots, *(FIELD_ORDER - root for root in roots)]:
        assert simplified_swu(element)[0] in (EXCEPTION, 11 * element * element * EXCEPTION % FIELD_ORDER)
        assert cleared(element) == bytes(
            native.G1Point.map_from_fp_be(element.to_bytes(48, "big")).to_compressed_bytes()
        )


# Arithmetic


@pytest.mark.parametrize("value", EDGES, ids=str)
def test_multiples_at_the_edges(value: int) -> None:
    mine, theirs = both(hashed(1))
    own, other = scalars(value)
    expected = bytes((theirs * other).to_compressed_bytes())
    assert (mine * own).to_compressed_bytes() == multiexp([mine], [own]).to_compressed_bytes() == expected
    assert multiexp([mine, G1.identity(), -mine], [own, own, own]) == G1.identity()
    assert multiexp([mine, mine, mine], [own, own, own]) == mine * own * Scalar(3)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 17])
def test_sums_of_multiples(count: int) -> None:
    for _ in range(4):
        values = [RANDOM.choice([RANDOM.randrange(ORDER), *EDGES]) for _ in range(count)]
        data = [RANDOM.choice([hashed(RANDOM.randrange(9)), INFINITY]) for _ in range(count)]
        total = native.G1Point.identity()
        for one, value in zip(data, values, strict=True):
            total = total + both(one)[1] * scalars(value)[1]
        found = multiexp([both(one)[0] for one in data], [Scalar(value) for value in values])
        assert found.to_compressed_bytes() == bytes(total.to_compressed_bytes())


def test_unequal_lists_are_an_error() -> None:
    point = G1()
    for points, values in (([point], []), ([], [Scalar(1)]), ([point] * 3, [Scalar(1)] * 2)):
        with pytest.raises(ValueError, match="zip"):
            multiexp(points, values)


def test_additions_that_the_formulas_leave_out() -> None:
    for data in (hashed(3), ORDER_THREE, INFINITY):
        mine, theirs = both(data)
        for first, second in (
            (mine + mine, theirs + theirs),
            (mine - mine, theirs - theirs),
            (mine + -mine + mine, theirs),
        ):
            assert first.to_compressed_bytes() == bytes(second.to_compressed_bytes())
        scaled = G1(jacobian.add(jacobian.double(mine._point), (-mine)._point))
        assert scaled == mine and (scaled + mine) == mine + mine and (scaled - mine) == G1.identity()
    low = both(ORDER_THREE)[0]
    assert low + low + low == G1.identity() and low != G1.identity() and low * Scalar(4) == low


def test_multiples_of_g2() -> None:
    for value in (*EDGES[:6], ORDER - 1, RANDOM.randrange(ORDER)):
        own, other = scalars(value)
        assert (G2() * own).to_compressed_bytes() == bytes((native.G2Point() * other).to_compressed_bytes())
    for data in outside_g2()[:3]:
        mine, theirs = G2.from_compressed_bytes_unchecked(data), native.G2Point.from_compressed_bytes_unchecked(data)
        assert (mine + G2()).to_compressed_bytes() == bytes((theirs + native.G2Point()).to_compressed_bytes())
        assert (mine + mine - mine) == mine and (mine - mine) == G2.identity()


def test_scalars() -> None:
    for value in (*EDGES, *(RANDOM.randrange(ORDER) for _ in range(50))):
        own, other = scalars(value)
        second = Scalar(value * 7 + 5)
        assert own.to_be_bytes() == bytes(other.to_be_bytes()) and own.to_le_bytes() == bytes(other.to_le_bytes())
        assert int(own + second - second) == int(other) and int(-own) == int(-other)
        assert int(own * second) == int(other * scalars(int(second))[1])
        if value:
            assert int(own.inverse()) == int(other.inverse())
    wide = RANDOM.randbytes(48)
    assert int(Scalar.from_be_bytes_mod_order(wide)) == int(native.Scalar.from_be_bytes_mod_order(wide))
    for bad in (ORDER.to_bytes(32, "big"), b"\xff" * 32):
        for group in (Scalar, native.Scalar):
            with pytest.raises(ValueError):
                group.from_be_bytes(bad)
    for group in (Scalar, native.Scalar):
        with pytest.raises(ZeroDivisionError):
            group(0).inverse()
        with pytest.raises(OverflowError):
            group(-1)
    assert "5" not in repr(Scalar(5))


# Decoding: the native library's verdict is the expected one


def spellings(size: int, good: list[bytes]) -> list[bytes]:
    """Good points and every kind of damage to them."""
    bits = size * 8
    found = [*good, b"", bytes(size), b"\xff" * size, *(good[0][:length] for length in (1, size - 1)), good[0] + b"\0"]
    for data in good[:3]:
        word = int.from_bytes(data, "big")
        found += [(word ^ 1 << bits - flag).to_bytes(size, "big") for flag in (1, 2, 3)]
        found += [(word ^ 1 << RANDOM.randrange(bits)).to_bytes(size, "big") for _ in range(12)]
        x = word & (1 << 381) - 1
        found += [(word - x | x + FIELD_ORDER).to_bytes(size, "big")] if x + FIELD_ORDER < 1 << 381 else []
    for first in (0xC0, 0xE0, 0x40, 0x20, 0x60):
        found += [bytes([first]) + bytes(size - 1), bytes([first]) + bytes(size - 2) + b"\1"]
    found += [
        (1 << bits - 1 | value).to_bytes(size, "big") for value in (FIELD_ORDER - 1, FIELD_ORDER, FIELD_ORDER + 1)
    ]
    return found


@pytest.mark.slow
def test_g1_is_decoded_as_the_native_library_and_our_rules_do() -> None:
    data = spellings(48, [*(hashed(number) for number in range(6)), *outside_g1(), ORDER_THREE, INFINITY])
    verdicts = [is_fine(G1, one) for one in data]
    assert verdicts == [is_fine(native.G1Point, one) for one in data]
    assert {True, False} == set(verdicts)
    assert len(outside_g1()) > 50 and not any(is_fine(G1, one) for one in outside_g1())


@pytest.mark.slow
def test_g2_is_decoded_as_the_native_library_and_our_rules_do() -> None:
    good = [(G2() * Scalar(value)).to_compressed_bytes() for value in (1, 2, ORDER - 1, RANDOM.randrange(ORDER))]
    data = spellings(96, [*good, *outside_g2(), G2.identity().to_compressed_bytes()])
    high = [
        (1 << 767 | real | imaginary << 384).to_bytes(96, "big")
        for real, imaginary in ((FIELD_ORDER, 1), (1, FIELD_ORDER))
    ]
    verdicts = [is_fine(G2, one) for one in data + high]
    assert verdicts == [is_fine(native.G2Point, one) for one in data + high]
    assert all(verdicts[:4]) and len(outside_g2()) > 20 and not any(is_fine(G2, one) for one in outside_g2())


@pytest.mark.slow
def test_small_subgroups_of_the_curve_are_outside() -> None:
    """One point of each prime order that divides the cofactor, 3 * 11^2 * 10177^2 * 859267^2 * 52437899^2."""
    cofactor = (PARAMETER + 1) ** 2 // 3
    for prime in (3, 11, 10177, 859267, 52437899):
        assert cofactor % prime == 0
        others = cofactor * ORDER
        while others % prime == 0:
            others //= prime
        points = (jacobian.multiply(both(one)[0]._point, others) for one in outside_g1())
        point = next(found for found in points if found[2])
        further = jacobian.multiply(point, prime)
        point = further if further[2] else point
        small = G1(point)
        assert not G1(jacobian.multiply(point, prime)).affine()
        assert not small.is_in_subgroup() and not (small + both(hashed(1))[0]).is_in_subgroup()


def test_the_effective_cofactor_leaves_of_any_point_a_part_in_the_subgroup() -> None:
    """By both libraries, whose product has to take no short cut that holds in the subgroup alone."""
    assert prod(COFACTOR_PRIMES) == EFFECTIVE_COFACTOR and gcd(EFFECTIVE_COFACTOR, ORDER) == 1
    mine, theirs = scalars(EFFECTIVE_COFACTOR)
    for data in outside_g1():
        one, other = both(data)
        assert (one * mine).to_compressed_bytes() == (other * theirs).to_compressed_bytes()
        assert (one * mine).is_in_subgroup() and (other * theirs).is_in_subgroup()
    for prime in COFACTOR_PRIMES:
        one, other = both(bytes(torsion(prime).to_compressed_bytes()))
        assert one * mine == G1.identity() and other * theirs == native.G1Point.identity()


def test_points_of_both_coordinates_are_read_alike() -> None:
    """Good ones, and each wrong in one way."""
    point = both(hashed(5))[0].to_xy_bytes_be()
    x, y = int.from_bytes(point[:48], "big"), int.from_bytes(point[48:], "big")
    pairs = [(x, y), (x, FIELD_ORDER - y), (0, 2), (0, FIELD_ORDER - 2), (0, 0), (x, y ^ 1), (x ^ 1, y), (y, x)]
    pairs += [(x + FIELD_ORDER, y), (x, y + FIELD_ORDER), (FIELD_ORDER, 2), (FIELD_ORDER, FIELD_ORDER), (0, 1 << 382)]
    data = [a.to_bytes(48, "big") + b.to_bytes(48, "big") for a, b in pairs] + [point[1:], point + b"\0", b""]
    found = [(_xy(G1, one), _xy(native.G1Point, one)) for one in data]
    assert [mine for mine, _ in found] == [theirs for _, theirs in found]
    assert [mine for mine, _ in found] == [one if at < 5 else None for at, one in enumerate(data)]


def _xy(group: type[G1 | native.G1Point], data: bytes) -> bytes | None:
    try:
        return bytes(group.from_xy_bytes_unchecked_be(data).to_xy_bytes_be())
    except ValueError:
        return None


def test_the_two_subgroup_checks_are_sound() -> None:
    """The degrees of the endomorphisms are those that the docstrings and decision 0019 claim."""
    assert PARAMETER**4 - PARAMETER**2 + 1 == ORDER
    trace, cofactor = 1 - PARAMETER, (PARAMETER + 1) ** 2 // 3
    twist_order = FIELD_ORDER**2 + 1 - _twist_trace()
    assert (PARAMETER**2 + trace * PARAMETER + FIELD_ORDER) == cofactor * ORDER  # the degree of psi + PARAMETER
    assert twist_order % ORDER == 0 and gcd(cofactor, twist_order // ORDER) == 1


def _twist_trace() -> int:
    """The trace over Fp2 of the twist whose order the group order divides."""
    trace = 1 - PARAMETER
    second = trace**2 - 2 * FIELD_ORDER
    root = (4 * FIELD_ORDER**2 - second**2) // 3
    conductor = _integer_root(root)
    return next(
        one
        for one in ((sign * 3 * conductor + side * second) // 2 for sign in (1, -1) for side in (1, -1))
        if (FIELD_ORDER**2 + 1 - one) % ORDER == 0
    )


def _integer_root(value: int) -> int:
    from math import isqrt

    root = isqrt(value)
    assert root * root == value
    return root


# Fields and pairings


def test_square_roots() -> None:
    for _ in range(20):
        value = (RANDOM.randrange(FIELD_ORDER), RANDOM.choice([0, RANDOM.randrange(FIELD_ORDER)]))
        square = multiply2(value, value)
        root = square_root2(square)
        assert root is not None and multiply2(root, root) == square
        other = square_root2(value)
        is_square = power2(value, (FIELD_ORDER**2 - 1) // 2) == (1, 0)
        assert (other is not None) == is_square
    for value in ((0, 0), (FIELD_ORDER - 1, 0), (4, 0), (0, 1), (0, 2)):
        root = square_root2(value)
        assert root is not None and multiply2(root, root) == value


@pytest.mark.slow
def test_pairing_products_have_the_native_verdict() -> None:
    first, second = 5, RANDOM.randrange(ORDER)
    a, b = G1.from_compressed_bytes_unchecked(hashed(1)), G1.from_compressed_bytes_unchecked(hashed(2))
    generator = G2()
    cases: list[list[tuple[G1, G2]]] = [
        [(a * Scalar(first), generator), (a, -(generator * Scalar(first)))],
        [(a * Scalar(second), generator), (a, -(generator * Scalar(second)))],
        [(a * Scalar(second), generator), (b, -(generator * Scalar(second)))],
        [(a, generator), (-a, generator)],
        [(a, generator), (a, generator)],
        [(a, generator)],
        [(G1.identity(), generator)],
        [(a, G2.identity())],
        [(G1.identity(), generator), (a, generator)],
        [(a, generator), (b, generator), (-(a + b), generator)],
    ]
    for pairs in cases:
        firsts = [native.G1Point.from_compressed_bytes(one.to_compressed_bytes()) for one, _ in pairs]
        seconds = [native.G2Point.from_compressed_bytes(two.to_compressed_bytes()) for _, two in pairs]
        assert pairing_product_is_one(pairs) == native.GT.pairing_check(firsts, seconds)
    assert [pairing_product_is_one(pairs) for pairs in cases] == [
        True, True, False, True, False, False, True, True, False, True,
    ]


def test_a_pinned_sum_of_many_multiples() -> None:
    """So that both libraries cannot change together."""
    points = [both(hashed(number))[0] for number in range(4)]
    values = [Scalar(int.from_bytes(hashlib.sha256(bytes([number])).digest(), "big")) for number in range(4)]
    assert hashlib.sha256(multiexp(points, values).to_compressed_bytes()).hexdigest()[:16] == PINNED


PINNED = "da19e2ad432a553e"
