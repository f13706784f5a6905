"""Groups of members: Asplund and Froystad 2015, with another seed for each aggregation. Arithmetic on pages alone.

In the first round each member tells commitments to a value for every aggregation. An aggregation has three rounds.

1. `opened`: members open their values. Those that fit are in the pool. All of them together are the seed. The pool,
   sorted by digests of seed and pseudonym, is cut into groups. The first members of a group are its receivers.
2. `shares`: each member of a group sends its weights in additive shares, modulo 2^64, one to each receiver.
3. `weights`: each receiver tells the sum of the shares that it was sent, with all of the noise. All sums of a group
   together are its weights, with the noise of each receiver.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import count, pairwise
from struct import pack, unpack
from typing import Final, TypeVar

from anon.crypto import labels
from anon.crypto.sealing_sizes import PUBLIC_KEY_SIZE, is_public_key
from anon.protocols.board import BoardPage, Pages
from anon.values import frozen
from anon.wire.cbor import encode

KEYS: Final = 0
OPENED, SHARES, TOLD = range(3)
"""The rounds of an aggregation. Rounds and surveys have the same numbers."""
VALUE, SEED, WIDTH = 32, 32, 8
"""Bytes of a value or a commitment, of a seed, and of a vector's entry."""
MODULUS: Final = 1 << 8 * WIDTH
SHARED: Final = b"\1"
"""The text of a member that sent shares."""
Member = TypeVar("Member")


@frozen
class Group:
    """`number`: from 1 on in its aggregation. `members`: tags, the receivers first."""

    aggregation: int
    number: int
    members: tuple[bytes, ...]
    many: int

    @property
    def receivers(self) -> tuple[bytes, ...]:
        """Those who add up."""
        return self.members[: self.many]


def survey_of(aggregation: int, step: int) -> int:
    """The number of a survey, and of its round. Aggregations count from 0."""
    return 1 + 3 * aggregation + step


def step_of(survey: int) -> tuple[int, int]:
    """Aggregation and step of a survey after the first."""
    return divmod(survey - 1, 3)


def stream(word: str, *grounds: object) -> Callable[[int], bytes]:
    """Random bytes without end from secret ones, the same again for the same word and grounds."""
    calls, told = count(), encode([labels.GROUPS, word, *grounds])
    return lambda size: hashlib.shake_256(told + next(calls).to_bytes(8, "big")).digest(size)


def value_of(seed: bytes, aggregation: int) -> bytes:
    """A member's value for an aggregation, from its one secret of the first round."""
    return stream("value", seed, aggregation)(VALUE)


def commitment(study: bytes, tag: bytes, aggregation: int, value: bytes) -> bytes:
    """The digest by which a member binds itself to a value. It names its member, so that nobody can copy it."""
    return hashlib.sha256(encode([labels.GROUPS, "commitment", study, tag, aggregation, value])).digest()


def pool(study: bytes, pages: Pages, aggregation: int) -> Mapping[bytes, bytes]:
    """The values of those who can be drawn, by tag: they fit their commitments, and a letter can be sealed to them."""
    number = survey_of(aggregation, OPENED)
    if KEYS not in pages or number not in pages:
        return {}
    return _pool(study, pages[KEYS], pages[number], aggregation)


@lru_cache(maxsize=16)
def _pool(study: bytes, keys: BoardPage, opened: BoardPage, aggregation: int) -> Mapping[bytes, bytes]:
    known, at = keys.texts(KEYS), PUBLIC_KEY_SIZE + VALUE * aggregation
    said = opened.texts(survey_of(aggregation, OPENED))
    return {
        tag: value
        for tag, value in said.items()
        if commitment(study, tag, aggregation, value) == known.get(tag, b"")[at : at + VALUE]
        and is_public_key(known[tag][:PUBLIC_KEY_SIZE])
    }


def groups(study: bytes, pages: Pages, aggregation: int, size: int, receivers: int) -> tuple[Group, ...]:
    """The groups of an aggregation, the same everywhere; none where the pool has fewer than one needs."""
    found = pool(study, pages, aggregation)
    return _drawn(study, tuple(found.items()), aggregation, size, receivers)


@lru_cache(maxsize=16)
def _drawn(
    study: bytes, values: tuple[tuple[bytes, bytes], ...], aggregation: int, size: int, receivers: int
) -> tuple[Group, ...]:
    seed = stream("seed", study, aggregation, [value for _tag, value in values])(SEED)
    order = sorted((tag for tag, _value in values), key=lambda tag: stream("order", seed, tag)(SEED))
    return tuple(
        Group(aggregation, number, members, receivers) for number, members in enumerate(cut(order, size), 1)
    )


def cut(order: Sequence[Member], size: int) -> list[tuple[Member, ...]]:
    """Groups of members in this order. A last smaller one joins the one before it; too few for one are in none."""
    cuts = [*(size * number for number in range(len(order) // size)), len(order)]
    return [tuple(order[start:end]) for start, end in pairwise(cuts)]


def came(pages: Pages, group: Group) -> tuple[bytes, ...]:
    """The members of a group that sent shares; nobody where more than half of them did not."""
    number = survey_of(group.aggregation, SHARES)
    said = pages[number].texts(number) if number in pages else {}
    there = tuple(tag for tag in group.members if said.get(tag) == SHARED)
    return there if 2 * len(there) >= len(group.members) else ()


def shares(values: Sequence[int], many: int, random_bytes: bytes) -> list[bytes]:
    """The vector in so many shares. All but one are uniform, and the last is what is left of the vector."""
    drawn, left = stream("shares", random_bytes, list(values)), list(values)
    parts = [list(numbers(drawn(WIDTH * len(values)))) for _ in range(many - 1)]
    for part in parts:
        left = [entry - taken for entry, taken in zip(left, part, strict=True)]
    return [spelled(part) for part in (*parts, left)]


def added(texts: Sequence[bytes]) -> list[int]:
    """The sum of vectors, entry by entry. Each is read as signed."""
    totals = [sum(entry) % MODULUS for entry in zip(*map(numbers, texts), strict=True)]
    return [entry - MODULUS if entry >= MODULUS // 2 else entry for entry in totals]


def numbers(data: bytes) -> tuple[int, ...]:
    """The entries of a vector."""
    return unpack(f">{len(data) // WIDTH}Q", data)


def spelled(values: Sequence[int]) -> bytes:
    """A vector's bytes."""
    return pack(f">{len(values)}Q", *(value % MODULUS for value in values))


def told(pages: Pages, group: Group) -> list[int] | None:
    """The group's weights with all noise; None where a receiver told nothing."""
    number = survey_of(group.aggregation, TOLD)
    said = pages[number].texts(number) if number in pages else {}
    texts = [said.get(tag, b"") for tag in group.receivers]
    return added(texts) if came(pages, group) and all(map(any, texts)) else None
