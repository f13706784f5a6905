"""The secure comparison: Damgard, Geisler and Kroigaard 2007, under ElGamal with plaintexts in exponents, in G1.

The seat encrypts each bit of its number. A party makes of them one ciphertext for each bit. One of these is of zero
exactly if its own number is larger, or smaller, as it chooses; all others are of random plaintexts, in random order.
So the seat learns that one bit, and the party nothing. Only zero is ever told from other plaintexts.

Here two sizes below 2^(bits - 1) are shared modulo 2^bits. The parties have the difference of their shares, the seat
that of its own. The top bit of the sum of both says which size is smaller. It is that of the two differences and of a
carry, which is a comparison of what lies below. The party chooses its direction by its own top bit, so that the seat
learns the sum's top bit alone.
"""

from __future__ import annotations

from anon.crypto.curve import (
    G1,
    G1_SIZE,
    ORDER,
    SCALAR_SIZE,
    Scalar,
    decode_g1,
    encode_g1,
    multiexp,
    scalar_from_uniform,
)
from anon.protocols.sum.oblivious.paillier import RandomBytes

PAIR = 2 * G1_SIZE
"""Bytes of a ciphertext: two points."""
_ONE = G1()


def secret_of(random_bytes: RandomBytes) -> Scalar:
    """A secret key."""
    return scalar_from_uniform(random_bytes(48))


def public_of(secret: Scalar) -> bytes:
    """Its public key, 48 bytes."""
    return encode_g1(_ONE * secret)


def asked(public: bytes, share: int, bits: int, random_bytes: RandomBytes) -> bytes:
    """The seat's encrypted bits, the highest first. `share`: the difference of its shares."""
    # The largest number without a carry. Both sides are doubled, and this one is odd: they never are equal.
    limit, told = 2 * ((1 << bits - 1) - 1 - share % (1 << bits - 1)) + 1, b""
    for at in reversed(range(bits)):
        scalars = [_scalar(limit >> at & 1), secret_of(random_bytes)]
        told += encode_g1(_ONE * scalars[1]) + encode_g1(multiexp([_ONE, decode_g1(public, "key")], scalars))
    return told


def replied(public: bytes, question: bytes, share: int, bits: int, random_bytes: RandomBytes) -> bytes:
    """A party's reply. `share`: the difference of the parties' shares. Raises `Malformed`."""
    own = [2 * share >> at & 1 for at in reversed(range(bits))]
    points, sign = parsed(question), -1 if share >> bits - 1 & 1 else 1
    replies = list[bytes]()
    for place, mine in enumerate(own):
        # Zero where the numbers first differ, in the chosen direction: c - x + 1, or x - c + 1, and 3 for each before.
        blind, fresh = int.from_bytes(random_bytes(48), "big"), secret_of(random_bytes)
        factors = [*(3 - 6 * bit for bit in own[:place]), sign]
        scalars = [_scalar(blind * factor) for factor in factors]
        rest = _scalar(blind * (1 - sign * mine + 3 * sum(own[:place])))
        first = multiexp([*points[: 2 * place + 1 : 2], _ONE], [*scalars, fresh])
        seconds = [*points[1 : 2 * place + 2 : 2], _ONE, decode_g1(public, "key")]
        replies.append(encode_g1(first) + encode_g1(multiexp(seconds, [*scalars, rest, fresh])))
    return b"".join(sorted(replies, key=lambda _: random_bytes(16)))


def smaller(secret: Scalar, reply: bytes, share: int, bits: int) -> bool:
    """True if the first size of a pair is the smaller one. `share`: as asked. Raises `Malformed`."""
    points = parsed(reply)
    zero = any(points[at] * secret == points[at + 1] for at in range(0, len(points), 2))
    return zero != bool(share >> bits - 1 & 1)


def parsed(points_untrusted: bytes) -> list[G1]:
    """The points of some ciphertexts. Raises `Malformed`."""
    places = range(0, len(points_untrusted), G1_SIZE)
    return [decode_g1(points_untrusted[at : at + G1_SIZE], "comparison") for at in places]


def _scalar(number: int) -> Scalar:
    return scalar_from_uniform((number % ORDER).to_bytes(SCALAR_SIZE, "big"))
