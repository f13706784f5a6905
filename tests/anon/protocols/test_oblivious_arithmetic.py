"""The arithmetic of oblivious averaging: encryption by the textbook's formulas, comparisons of all small numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from itertools import count
from math import lcm

import pytest

from anon.crypto import curve
from anon.errors import Malformed
from anon.protocols.sum.oblivious import comparing
from anon.protocols.sum.oblivious.messages import Frame, permutation, stream
from anon.protocols.sum.oblivious.paillier import PaillierKey, below, generated
from tests.support.tries import soaked


def drawn(*grounds: object) -> Callable[[int], bytes]:
    calls = count()
    return lambda size: hashlib.shake_256(repr((grounds, next(calls))).encode()).digest(size)


KEY = generated(512, drawn("key"))
PUBLIC = KEY.public


def textbook(cipher: int) -> int:
    """Paillier 1999, scheme 1: the quotient of two logarithms, with the order of both primes together."""
    n, order = PUBLIC.n, lcm(KEY.p - 1, KEY.q - 1)
    above, below_ = ((pow(base, order, n * n) - 1) // n for base in (cipher, n + 1))
    return above * pow(below_, -1, n) % n


@pytest.mark.parametrize("plain", [0, 1, 12_345, PUBLIC.n // 2, PUBLIC.n - 1])
def test_what_is_encrypted_decrypts_by_the_textbook_too(plain: int) -> None:
    cipher = PUBLIC.encrypt(plain, drawn("cipher", plain))
    assert KEY.decrypt(cipher) == textbook(cipher) == plain


def test_products_add_and_powers_multiply() -> None:
    random_bytes = drawn("sums")
    one, other = PUBLIC.encrypt(7, random_bytes), PUBLIC.encrypt(-9, random_bytes)
    assert textbook(one * other % PUBLIC.n**2) == PUBLIC.n - 2
    assert textbook(PUBLIC.plus(one, -8)) == PUBLIC.n - 1
    assert textbook(PUBLIC.times(one, -6, random_bytes)) == PUBLIC.n - 42


def test_a_power_tells_nothing_of_its_factor() -> None:
    """A ciphertext and its power have no randomness in common: the plain power would be found by trying factors."""
    cipher = PUBLIC.encrypt(0, drawn("zero"))
    power = PUBLIC.times(cipher, 3, drawn("power"))
    assert power != pow(cipher, 3 + PUBLIC.n, PUBLIC.n**2) and textbook(power) == 0


def test_a_key_has_its_bits_and_follows_from_its_seed() -> None:
    for bits in (512, 640, 768):
        key = generated(bits, drawn("bits", bits))
        assert key == generated(bits, drawn("bits", bits)) != generated(bits, drawn("others", bits))
        assert key.public.n.bit_length() == bits
        for prime in (key.p, key.q):
            assert all(pow(base, prime - 1, prime) == 1 for base in range(2, 40))


@pytest.mark.parametrize("cipher", [0, PUBLIC.n, PUBLIC.n**2, PUBLIC.n**2 + 1, KEY.p * 5])
def test_what_is_no_ciphertext_is_told(cipher: int) -> None:
    assert not PUBLIC.valid(cipher) and PUBLIC.valid(PUBLIC.encrypt(0, drawn("valid")))


SECRET = comparing.secret_of(drawn("point"))
POINT = comparing.public_of(SECRET)


def said(first: int, second: int, share: int, bits: int) -> tuple[bool, bytes]:
    """The seat's verdict on two sizes, of whose difference the parties have this share; the reply that it saw."""
    own, random_bytes = (first - second - share) % (1 << bits), drawn(first, second, share, bits)
    question = comparing.asked(POINT, own, bits, random_bytes)
    reply = comparing.replied(POINT, question, share, bits, random_bytes)
    return comparing.smaller(SECRET, reply, own, bits), reply


@pytest.mark.parametrize("bits", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_all_comparisons_of_small_sizes_are_right_for_all_shares(bits: int) -> None:
    sizes = range(1 << bits - 1)
    for first in sizes:
        for second in sizes:
            for share in range(1 << bits):
                assert said(first, second, share, bits)[0] == (first < second), (first, second, share)


@pytest.mark.slow
@pytest.mark.parametrize("bits", soaked(2, (4, 5)))
def test_comparisons_of_more_bits_are_right_for_all_sizes(bits: int) -> None:
    for first in range(1 << bits - 1):
        for second in range(1 << bits - 1):
            for share in (0, 1, (1 << bits - 1) - 1, 1 << bits - 1, (1 << bits) - 1, 5 * first + second):
                assert said(first, second, share % (1 << bits), bits)[0] == (first < second), (first, second)


@pytest.mark.slow
def test_a_reply_has_one_zero_or_none_and_else_no_plaintext_twice() -> None:
    """So a verdict is all that is in it: other plaintexts are as many random points."""
    bits, seen = 4, list[bytes]()
    for share in range(1 << bits):
        verdict, reply = said(3, 5, share, bits)
        points = comparing.parsed(reply)
        plain = [points[at + 1] + -(points[at] * SECRET) for at in range(0, len(points), 2)]
        zeros = sum(point == curve.IDENTITY_G1 for point in plain)
        own = (3 - 5 - share) % (1 << bits)
        assert zeros == (verdict != bool(own >> bits - 1)) and zeros <= 1
        seen += [curve.encode_g1(point) for point in plain if point != curve.IDENTITY_G1]
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("reply", [bytes(96), b"\xff" * 96, bytes(95)])
def test_what_is_no_reply_is_refused(reply: bytes) -> None:
    with pytest.raises(Malformed):
        comparing.smaller(SECRET, reply, 0, 1)


def test_vectors_are_added_as_plaintexts() -> None:
    frame, n = Frame(64, 10, 6), PUBLIC.n
    vectors = [[(-1) ** (place + of) * (9**of + place) for place in range(10)] for of in range(12)]
    total = [sum(column) % n for column in zip(*map(frame.packed, vectors), strict=True)]
    assert frame.plaintexts == 2
    assert frame.unpacked(total, n) == tuple(sum(column) for column in zip(*vectors, strict=True))


def test_numbers_below_a_bound_and_orders_come_alike_often() -> None:
    """Chi-square, seeded: a false alarm once in 1e6 (5 degrees: 35.9; 119 degrees: 205)."""
    random_bytes, many = stream("test"), 6000
    counts = [0] * 6
    for _ in range(many):
        counts[below(6, random_bytes)] += 1
    assert sum((one - many / 6) ** 2 for one in counts) / (many / 6) < 35.9
    orders: dict[tuple[int, ...], int] = {}
    for _ in range(many):
        order = tuple(permutation(5, random_bytes))
        orders[order] = orders.get(order, 0) + 1
    assert len(orders) == 120
    assert sum((one - many / 120) ** 2 for one in orders.values()) / (many / 120) < 205


def test_streams_of_another_word_or_secret_are_others() -> None:
    told = {stream(word, *grounds)(16) for word, grounds in (("a", ()), ("b", ()), ("a", (b"",)), ("a", (b"c",)))}
    assert len(told) == 4 and isinstance(PUBLIC, PaillierKey)
