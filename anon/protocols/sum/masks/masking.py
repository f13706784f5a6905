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
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import count
from struct import pack, unpack
from typing import Final

from anon.crypto import labels
from anon.crypto.nacl import CryptoError, PrivateKey, x25519
from anon.crypto.sealing_sizes import PUBLIC_KEY_SIZE
from anon.protocols.board import Pages
from anon.protocols.sum.masks.sharing import SHARE, recovered
from anon.wire.cbor import encode

KEYS, SHARES, VECTOR, CAME, OPENING = range(5)
NEIGHBOURS: Final = 80
"""The most neighbours of a member, an even number: all others in a small study."""
WIDTH: Final = 8
"""Bytes of an entry under masks."""
MODULUS: Final = 1 << 8 * WIDTH
LETTER: Final = 2 * SHARE
"""A letter has a share of the key's secret, and one of the own mask's."""
GAP: Final = 15
"""Of 40 members in a row on the ring so many may stay away. With a fifth away one of 40 passes it in 500."""


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


def neighbours(pages: Pages, tag: bytes) -> tuple[bytes, ...]:
    """The neighbours of a member, the same everywhere: those before and behind it on a ring that the first page draws.
    Two members are neighbours of each other or not at all."""
    return _circles(pages).get(tag, ())


def _circles(pages: Pages) -> Mapping[bytes, tuple[bytes, ...]]:
    """The neighbours of each member, in the order of the ring."""
    page = pages[KEYS]
    return _drawn(page.digest, tuple(page.entries[KEYS]))


@lru_cache(maxsize=8)
def _drawn(seed: bytes, tags: tuple[bytes, ...]) -> Mapping[bytes, tuple[bytes, ...]]:
    ring = sorted(tags, key=lambda tag: hashlib.sha256(labels.MASK_ORDER + seed + tag).digest())
    many, half = len(ring), NEIGHBOURS // 2
    if many - 1 <= NEIGHBOURS:
        return {tag: tuple(other for other in ring if other != tag) for tag in ring}
    around = [*ring[-half:], *ring, *ring[:half]]
    return {tag: (*around[at : at + half], *around[at + half + 1 : at + 2 * half + 1]) for at, tag in enumerate(ring)}


def sharers(pages: Pages) -> dict[bytes, bytes]:
    """Those who shared their secrets: what each said of its own mask, by tag."""
    known = pages[KEYS].texts(KEYS)
    return {tag: text for tag, text in pages[SHARES].texts(SHARES).items() if tag in known}


def hidden(pages: Pages, least: int) -> set[bytes]:
    """The members whose vector would be hidden: `least` members shared secrets, itself among them, and so did as many
    of its neighbours as open one. Else a page that shows hardly anybody would leave it bare: nothing is written."""
    shared = sharers(pages)
    if len(shared) < least:
        return set()
    near = _circles(pages)
    return {tag for tag in shared if len(shared.keys() & near[tag]) >= most_of(len(near[tag]))}


def came(pages: Pages, least: int) -> dict[bytes, bytes]:
    """Those whose vector is there, under masks that hide it."""
    under = hidden(pages, least)
    return {tag: text for tag, text in pages[VECTOR].texts(VECTOR).items() if tag in under}


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
    ring, there = list(_circles(pages)), came(pages, least)
    half = NEIGHBOURS // 2
    if len(ring) - 1 <= NEIGHBOURS:
        return False
    missing = [tag not in there for tag in ring]
    twice = [*missing, *missing[: half - 1]]
    return any(sum(twice[at : at + half]) > GAP for at in range(len(ring)))


def seen(pages: Pages) -> bytes:
    """A digest of the pages of keys, shares and vectors: what members sign with their next packet."""
    return hashlib.sha256(b"".join(pages[number].digest for number in (KEYS, SHARES, VECTOR))).digest()


# The sum


def masked(
    study: bytes, pages: Pages, tag: bytes, key_secret: bytes, own_secret: bytes, values: Sequence[int]
) -> bytes:
    """A member's vector under its masks, as its text. `values`: with its noise."""
    known, shared, key = members(pages), sharers(pages), key_of(key_secret)
    masks = [own_mask(study, own_secret, len(values))]
    for other in neighbours(pages, tag):
        if other in shared:
            masks.append(pair_mask(study, key, tag, other, known[other], len(values)))
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
    entries, near, points = pages[OPENING].entries[OPENING], _circles(pages), dict[int, bytes]()
    for place, other in enumerate(near[tag], 1):
        at = SHARE * near[other].index(tag)
        part = entries[other].written.text[at : at + SHARE] if other in entries else b""
        if part.strip(b"\0"):
            points[place] = part
    return points


def noise_bytes(seed: bytes, values: Sequence[int]) -> Callable[[int], bytes]:
    """Random bytes without end for the noise of a vector, from 32 secret ones. Two boards see one noise of one vector,
    and two vectors never one noise: their difference would else be plain."""
    calls = count()
    told = encode([labels.MASK_NOISE, seed, list(values)])
    return lambda size: hashlib.shake_256(told + next(calls).to_bytes(8, "big")).digest(size)
