"""Masks of a sum: Bonawitz and others 2017, with neighbours on a ring as Bell and others 2020.

A member's vector leaves under a mask of its own and one with each neighbour, of which one adds what the other takes
away. Shares of its two secrets are at its neighbours. Once enough members said who came, they open one of each member:
of one that came its own mask, and of one that dropped out its key, from which its masks with others follow. Of nobody
both are opened, or its vector would be bare.

All of it is arithmetic on the pages of the board, so that everybody finds the same sum.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import count
from struct import pack, unpack
from typing import Final

from anon.crypto import labels
from anon.crypto.nacl import CryptoError, PrivateKey, x25519
from anon.crypto.sealing_sizes import PUBLIC_KEY_SIZE
from anon.protocols.board import BoardPage, Pages
from anon.wire.cbor import encode

KEYS, SHARES, VECTOR, CAME, OPENING = range(5)
NEIGHBOURS: Final = 80
"""The most neighbours of a member, an even number: all others in a small study."""
WIDTH: Final = 8
"""Bytes of an entry under masks."""
MODULUS: Final = 1 << 8 * WIDTH
SECRET: Final = 31
"""Bytes of each of the two secrets, so that it lies below `PRIME`."""
SHARE: Final = 32
PRIME: Final = 2**255 - 19
LETTER: Final = 2 * SHARE
"""A letter has a share of the key's secret, and one of the own mask's."""
GAP: Final = 15
"""Of 40 members in a row on the ring so many may stay away. With a fifth away one of 40 passes it in 500."""
_TRIES: Final = 400
"""Sets of shares that are tried where some were lies."""


def key_of(secret: bytes) -> bytes:
    """The X25519 secret of a member's masks with others, from what is shared of it."""
    return hashlib.shake_256(encode([labels.MASK_KEY, secret])).digest(32)


def public_of(secret: bytes) -> bytes:
    """Its public key (32 bytes)."""
    return bytes(PrivateKey(key_of(secret)).public_key)


def commitment(secret: bytes) -> bytes:
    """The digest by which a member binds itself to its own mask's secret before anybody opens it."""
    return hashlib.sha256(encode([labels.MASK_OWN, b"commitment", secret])).digest()


def expanded(grounds: Sequence[object], length: int) -> list[int]:
    """So many entries below `MODULUS`, uniform as long as SHAKE-256 is a pseudorandom function."""
    data = hashlib.shake_256(encode(list(grounds))).digest(WIDTH * length)
    return list(unpack(f">{length}Q", data))


def own_mask(study: bytes, secret: bytes, length: int) -> list[int]:
    """The mask that a member shares with nobody."""
    return expanded([labels.MASK_OWN, study, secret], length)


def pair_mask(study: bytes, secret: bytes, own: bytes, other: bytes, public: bytes, length: int) -> list[int]:
    """The mask of two members as `own` adds it: the other takes the same away. Nothing with a key of small order.

    `secret`: the X25519 secret of `own`; `public`: the other's key; both tags are their pseudonyms.
    """
    try:
        shared = x25519(secret, public)
    except CryptoError:
        return [0] * length
    mask = expanded([labels.MASK_PAIR, study, shared, min(own, other), max(own, other)], length)
    return mask if own < other else [-entry % MODULUS for entry in mask]


# Who is there


def members(pages: Pages) -> dict[bytes, bytes]:
    """Those who told keys: the public key of the masks, by tag."""
    return {tag: text[PUBLIC_KEY_SIZE:] for tag, text in pages[KEYS].texts(KEYS).items()}


def neighbours(pages: Pages, tag: bytes) -> list[bytes]:
    """The neighbours of a member, the same everywhere: those before and behind it on a ring that the first page draws.
    Two members are neighbours of each other or not at all."""
    ring = _ring(pages[KEYS])
    if tag not in ring:
        return []
    at, others = ring.index(tag), len(ring) - 1
    if others <= NEIGHBOURS:
        return [one for one in ring if one != tag]
    half = NEIGHBOURS // 2
    return [ring[(at + step) % len(ring)] for step in (*range(-half, 0), *range(1, half + 1))]


@lru_cache(maxsize=8)
def _ring(page: BoardPage) -> tuple[bytes, ...]:
    seed = digest_of(page)
    return tuple(sorted(page.texts(KEYS), key=lambda tag: hashlib.sha256(labels.MASK_ORDER + seed + tag).digest()))


@lru_cache(maxsize=16)
def digest_of(page: BoardPage) -> bytes:
    """A digest of all packets of a page."""
    return hashlib.sha256(b"".join(packet.to_bytes() for packet in page.packets)).digest()


def sharers(pages: Pages) -> dict[bytes, bytes]:
    """Those who shared their secrets: what each said of its own mask, by tag."""
    known = pages[KEYS].texts(KEYS)
    return {tag: text for tag, text in pages[SHARES].texts(SHARES).items() if tag in known}


def hidden(pages: Pages, tag: bytes, least: int) -> bool:
    """True if a vector of this member would be hidden: `least` members shared secrets, itself among them, and so did as
    many of its neighbours as open one. Else a page that shows hardly anybody would leave it bare: nothing is written.
    """
    shared = sharers(pages)
    near = sum(other in shared for other in neighbours(pages, tag))
    return tag in shared and len(shared) >= least and near >= threshold(pages, tag)


def came(pages: Pages, least: int) -> dict[bytes, bytes]:
    """Those whose vector is there, under masks that hide it."""
    texts = pages[VECTOR].texts(VECTOR)
    return {tag: text for tag, text in texts.items() if hidden(pages, tag, least)}


def threshold(pages: Pages, tag: bytes) -> int:
    """So many neighbours open a member's secret: more than two thirds of them.

    Each neighbour opens one of the two secrets. So to have both opened takes dishonest neighbours that open both: of k
    neighbours and a threshold t at least 2 t - k, which is more than a third.
    """
    return most_of(len(neighbours(pages, tag)))


def most_of(many: int) -> int:
    """More than two thirds of so many."""
    return 2 * many // 3 + 1


def agreed(pages: Pages, least: int) -> bool:
    """True if at least `least` members, and more than two thirds of those who shared secrets, signed this board, and
    nowhere on the ring too many are missing: of two boards both can only have that with dishonest members."""
    shared = sharers(pages)
    said = Counter(text for tag, text in pages[CAME].texts(CAME).items() if tag in shared)
    return said[seen(pages)] >= max(least, most_of(len(shared))) and not torn(pages, least)


def torn(pages: Pages, least: int) -> bool:
    """True if more than `GAP` of some 40 members in a row on the ring did not come. Two such gaps, helped by dishonest
    neighbours, would cut an arc off the ring: its sum would open alone, with the noise of a few."""
    ring, there = _ring(pages[KEYS]), came(pages, least)
    half = NEIGHBOURS // 2
    if len(ring) - 1 <= NEIGHBOURS:
        return False
    missing = [tag not in there for tag in ring]
    twice = [*missing, *missing[: half - 1]]
    return any(sum(twice[at : at + half]) > GAP for at in range(len(ring)))


def seen(pages: Pages) -> bytes:
    """A digest of the pages of keys, shares and vectors: what members sign with their next packet."""
    return hashlib.sha256(b"".join(digest_of(pages[number]) for number in (KEYS, SHARES, VECTOR))).digest()


# Sharing (Shamir 1979)


def shares(secret: bytes, seed: bytes, word: bytes, needed: int, many: int) -> list[bytes]:
    """So many shares of a secret of 31 bytes, of which `needed` tell it. `seed`: 32 random bytes."""
    drawn = hashlib.shake_256(encode([labels.MASK_SHARES, word, seed])).digest(48 * (needed - 1))
    coefficients = [int.from_bytes(drawn[at : at + 48], "big") % PRIME for at in range(0, len(drawn), 48)]
    polynomial = [int.from_bytes(secret, "big"), *coefficients]
    return [_value_at(place, polynomial).to_bytes(SHARE, "big") for place in range(1, many + 1)]


def _value_at(place: int, polynomial: Sequence[int]) -> int:
    total = 0
    for coefficient in reversed(polynomial):
        total = (total * place + coefficient) % PRIME
    return total


def recovered(points: Mapping[int, bytes], needed: int, fits: Callable[[bytes], bool]) -> bytes | None:
    """The secret of enough shares, by their places from 1 on; None where no set of them that was tried fits.

    Some may be lies. The sets that are tried follow from the shares alone, so that everybody tries the same.
    """
    places = sorted(points)
    if len(places) < needed:
        return None
    for tried in _sets(places, needed):
        value = _at_zero({place: int.from_bytes(points[place], "big") % PRIME for place in tried})
        if value < 1 << 8 * SECRET and fits(secret := value.to_bytes(SECRET, "big")):
            return secret
    return None


def _sets(places: Sequence[int], needed: int) -> Iterator[Sequence[int]]:
    yield places[:needed]
    if len(places) > needed:
        for number in range(_TRIES):
            drawn = {place: hashlib.sha256(pack(">2I", number, place)).digest() for place in places}
            yield sorted(places, key=drawn.__getitem__)[:needed]


def _at_zero(points: Mapping[int, int]) -> int:
    """The value at 0 of the polynomial through these points (Lagrange)."""
    total = 0
    for x, y in points.items():
        above = below = 1
        for other in points:
            if other != x:
                above, below = above * other % PRIME, below * (other - x) % PRIME
        total += y * above * pow(below, -1, PRIME)
    return total % PRIME


# The sum


def masked(
    study: bytes, pages: Pages, tag: bytes, key_secret: bytes, own_secret: bytes, values: Sequence[int]
) -> bytes:
    """A member's vector under its masks, as its text. `values`: with its noise."""
    known, shared = members(pages), sharers(pages)
    masks = [own_mask(study, own_secret, len(values))]
    for other in neighbours(pages, tag):
        if other in shared:
            masks.append(pair_mask(study, key_of(key_secret), tag, other, known[other], len(values)))
    entries = [sum(entry) % MODULUS for entry in zip(values, *masks, strict=True)]
    return pack(f">{len(entries)}Q", *entries)


def opening(pages: Pages, mail: Mapping[tuple[int, bytes], bytes], tag: bytes, seats: int, least: int) -> bytes:
    """A member's text of the last round: of each neighbour that came the share of its own mask, of each that dropped
    out afterwards that of its key. Zeros where there is none."""
    there, shared = came(pages, least), sharers(pages)
    parts = []
    for other in neighbours(pages, tag):
        letter = mail.get((SHARES, other), b"")
        known = other in shared and len(letter) == LETTER
        part = letter[SHARE:] if other in there else letter[:SHARE]
        parts.append(part if known else bytes(SHARE))
    return b"".join(parts).ljust(seats * SHARE, b"\0")


def opened(study: bytes, pages: Pages, least: int, length: int) -> list[int] | None:
    """The sum of all vectors that came, signed; None where too few agreed, or a secret cannot be told."""
    if not agreed(pages, least):
        return None
    there, shared, known = came(pages, least), sharers(pages), members(pages)
    total = [0] * length
    for tag, text in there.items():
        own = recovered(_points(pages, tag), threshold(pages, tag), partial(_fits, commitment, shared[tag]))
        if own is None:
            return None
        _add(total, unpack(f">{length}Q", text), 1)
        _add(total, own_mask(study, own, length), -1)
    for tag in shared.keys() - there.keys():
        left = [other for other in neighbours(pages, tag) if other in there]
        key = recovered(_points(pages, tag), threshold(pages, tag), partial(_fits, public_of, known[tag]))
        if key is None:
            if left:
                return None
            continue
        for other in left:
            # The one that dropped out would have added the opposite of what is left of it.
            _add(total, pair_mask(study, key_of(key), tag, other, known[other], length), 1)
    return [entry - MODULUS if entry >= MODULUS // 2 else entry for entry in total]


def _fits(said: Callable[[bytes], bytes], expected: bytes, told: bytes) -> bool:
    return said(told) == expected


def _add(total: list[int], entries: Sequence[int], sign: int) -> None:
    total[:] = [(one + sign * other) % MODULUS for one, other in zip(total, entries, strict=True)]


def _points(pages: Pages, tag: bytes) -> dict[int, bytes]:
    """The shares of a member's secret that its neighbours opened, by the place of each in its own order."""
    texts, points = pages[OPENING].texts(OPENING), dict[int, bytes]()
    for place, other in enumerate(neighbours(pages, tag), 1):
        at = SHARE * neighbours(pages, other).index(tag)
        part = texts.get(other, b"")[at : at + SHARE]
        if part.strip(b"\0"):
            points[place] = part
    return points


def noise_bytes(seed: bytes, values: Sequence[int]) -> Callable[[int], bytes]:
    """Random bytes without end for the noise of a vector, from 32 secret ones. Two boards see one noise of one vector,
    and two vectors never one noise: their difference would else be plain."""
    calls = count()
    told = encode([labels.MASK_NOISE, seed, list(values)])
    return lambda size: hashlib.shake_256(told + next(calls).to_bytes(8, "big")).digest(size)
