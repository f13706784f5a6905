"""The messages of oblivious averaging: Pathak, Rane and Raj 2010, section 3.2. The aggregator's seat is their Charlie.

Parties are those who told keys, numbered by their tags. The first of them draws the parties' key and a permutation.

1. `SHARES` and `POSTED`: a size is a + b modulo 2^bits. a goes to the party that the permutation names, and b to the
   seat with the permuted number, by a token. The weights go in shares to all parties and the seat.
2. `PERMUTED`: each party tells the ciphertext of the a that it was sent. The seat blinds and permutes them.
3. `COMPARED`: parties decrypt these, and the seat learns which blinded size is the smallest (`comparing`).
4. `NOISE`: the seat tells under its own key an encrypted 1 for that one, and encrypted 0 for the others. Each party
   raises its own to its noise vector, so that the product of all holds the noise of the smallest party alone.
5. `OPENING`: the first party tells the product, under a mask, and each party the sum of the shares that it was sent.
   The seat decrypts, and tells its own sum. All sums together are the weights of all, with one noise.

Weights, noise, mask and shares are plaintexts of the seat's key, each of many entries.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations, count
from math import isqrt
from typing import Final

from attrs import evolve

from anon.crypto import labels
from anon.crypto.curve import G1_SIZE
from anon.crypto.sealing_sizes import PUBLIC_KEY_SIZE
from anon.protocols.board import Pages
from anon.protocols.contract import Place
from anon.protocols.sum.design import shape_of
from anon.protocols.sum.oblivious.comparing import PAIR
from anon.protocols.sum.oblivious.paillier import PaillierKey, RandomBytes
from anon.protocols.vectors.averaging import AveragedWeights
from anon.study.designs import AskedSurvey
from anon.study.manifest import Manifest, Survey
from anon.values import frozen
from anon.wire.cbor import encode

KEYS, AGREED, SHARES, POSTED, PERMUTED, COMPARED, NOISE, OPENING = range(8)
ROUND_OF: Final = (0, 1, 2, 2, 3, 4, 5, 6)
SEATS: Final[Mapping[int, Place]] = {number: ("seat", number) for number in (1, 3, 4, 6)}
"""After which rounds the seat answers: keys, comparisons, the choice, its sum."""
NAME, SEED, SHORT = 16, 32, 4
"""Bytes of what a party finds its own number by, of a seed, and of a size or its share."""
DONE: Final = b"\1"
"""The text of whoever had all that it needs. Zeros end the study."""
_ENTRY: Final = 64
"""Bits of a vector's entry."""


@frozen
class Frame:
    """The numbers that lengths follow from: bytes of a modulus, entries of a vector, bits of a size's share."""

    modulus: int
    entries: int
    bits: int

    @property
    def plaintexts(self) -> int:
        """Of a vector, each a number modulo the seat's."""
        return -(-self.entries // self._each)

    @property
    def vector(self) -> int:
        """Bytes of a vector's plaintexts. Their ciphertexts have twice as many."""
        return self.plaintexts * self.modulus

    @property
    def question(self) -> int:
        """Bytes of one comparison's question, and of its reply."""
        return self.bits * PAIR

    @property
    def _each(self) -> int:
        return (8 * self.modulus - 2) // _ENTRY

    def seat(self, number: int, many: int) -> int:
        """Bytes of what the seat says after a round, to so many parties."""
        ciphers = 2 * self.modulus * many
        asks = ciphers + len(pairs(many)) * self.question
        return {1: self.modulus + G1_SIZE, 3: asks, 4: ciphers, 6: self.vector}[number]

    def packed(self, values: Sequence[int]) -> list[int]:
        """The plaintexts of a vector."""
        each = self._each
        parts = (values[at : at + each] for at in range(0, len(values), each))
        return [sum(value << _ENTRY * place for place, value in enumerate(part)) for part in parts]

    def unpacked(self, plaintexts: Sequence[int], modulus: int) -> tuple[int, ...]:
        """The vector of plaintexts, whose entries have signs."""
        values, half = list[int](), 1 << _ENTRY - 1
        for plain in plaintexts:
            left = (plain + modulus // 2) % modulus - modulus // 2
            for _ in range(self._each):
                values.append((left + half) % (2 * half) - half)
                left = left - values[-1] >> _ENTRY
        return tuple(values[: self.entries])


def frame_of(study: Manifest) -> Frame:
    """Of a study."""
    return framed(weights_survey(study), study.survey(AGREED).size)


def framed(survey: AskedSurvey, modulus: int) -> Frame:
    """Of a survey of weights, and the bytes of a modulus."""
    shape = weights_of(survey)
    return Frame(modulus, shape.length, shape.rows.bit_length() + 1)


def weights_survey(study: Manifest) -> Survey:
    """The survey whose vectors are added up."""
    return study.survey(OPENING)


def weights_of(survey: AskedSurvey) -> AveragedWeights:
    """Its sum."""
    shape = shape_of(survey)
    if not isinstance(shape, AveragedWeights):
        raise TypeError(f"no weights: {survey.kind}")
    return shape


def epsilon_of(surveys: Sequence[Survey]) -> int:
    """The cost of the published mean, in 1e-9."""
    return sum(survey.epsilon for survey in surveys)


def spread(shape: AveragedWeights, rows: int, epsilon: int) -> Fraction:
    """The scale of the noise of a party with so many records: its sum's L2 sensitivity over epsilon, in 1e-9."""
    moved = evolve(shape, fewest=rows).sensitivity_squared("replace-one")
    return Fraction((isqrt(moved - 1) + 1) * 10**9, epsilon)


def stream(word: str, *grounds: bytes) -> RandomBytes:
    """Random bytes without end from secret ones, the same again for the same word and grounds."""
    calls, told = count(), encode([labels.OBLIVIOUS, word, *grounds])
    return lambda size: hashlib.shake_256(told + next(calls).to_bytes(8, "big")).digest(size)


def permutation(many: int, random_bytes: RandomBytes) -> list[int]:
    """The numbers below `many` in a random order."""
    return sorted(range(many), key=lambda _: random_bytes(16))


def numbers(data: bytes, size: int) -> list[int]:
    """Big-endian numbers of so many bytes."""
    return [int.from_bytes(data[at : at + size], "big") for at in range(0, len(data), size)]


def spelled(values: Sequence[int], size: int) -> bytes:
    """The same as bytes."""
    return b"".join(value.to_bytes(size, "big") for value in values)


def added(texts: Sequence[bytes], size: int, modulus: int) -> list[int]:
    """The sums of numbers of so many bytes, column by column."""
    columns = zip(*(numbers(text, size) for text in texts), strict=True)
    return [sum(column) % modulus for column in columns]


def parties(pages: Pages) -> dict[bytes, int]:
    """The numbers of those who told keys, by tag."""
    return {tag: number for number, tag in enumerate(pages[0].texts(KEYS))} if 0 in pages else {}


def names(pages: Pages) -> dict[bytes, int]:
    """The same, by what each finds its number by."""
    return {text[PUBLIC_KEY_SIZE:]: number for number, text in enumerate(pages[0].texts(KEYS).values())}


def texts_of(pages: Pages, survey: int) -> list[bytes] | None:
    """The texts of a survey by number, if exactly the parties wrote."""
    said = pages[ROUND_OF[survey]].texts(survey) if ROUND_OF[survey] in pages else {}
    return list(said.values()) if [*said] == [*parties(pages)] else None


def parties_key(pages: Pages) -> PaillierKey:
    """The key that the first party told."""
    return PaillierKey(int.from_bytes(next(iter(pages[1].texts(AGREED).values())), "big"))


def pairs(many: int) -> list[tuple[int, int]]:
    """The comparisons. Number p is that of party p modulo `many`."""
    return list(combinations(range(many), 2))
