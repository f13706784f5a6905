"""Masks that members open together: pages made without a network, with any who drop out and any who lie."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from random import Random

import pytest
from attrs import define, field

from anon.crypto.sealing_sizes import PUBLIC_KEY_SIZE
from anon.protocols.board import BoardEntry, BoardPage
from anon.protocols.sum.masks.masking import (
    CAME,
    KEYS,
    NEIGHBOURS,
    OPENING,
    SHARES,
    VECTOR,
    agreed,
    came,
    commitment,
    hidden,
    masked,
    neighbours,
    opened,
    opening,
    public_of,
    seen,
    threshold,
    torn,
)
from anon.protocols.sum.masks.sharing import SHARE, shares
from anon.wire.letters import TextAndLetters

STUDY, LEAST = b"s" * 32, 3
Texts = Mapping[bytes, bytes]


@define
class Group:
    """So many members and their vectors. `texts`: what everybody wrote, by round."""

    many: int
    length: int = 3
    pages: dict[int, BoardPage] = field(factory=dict)
    letters: dict[bytes, list[bytes]] = field(factory=dict)
    tags: list[bytes] = field(init=False)
    keys: dict[bytes, bytes] = field(init=False)
    own: dict[bytes, bytes] = field(init=False)
    values: dict[bytes, list[int]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        spring = Random(self.many)
        self.tags = [spring.randbytes(48) for _ in range(self.many)]
        self.keys = {tag: spring.randbytes(31) for tag in self.tags}
        self.own = {tag: spring.randbytes(31) for tag in self.tags}
        self.values = {tag: [spring.randrange(-99, 99) for _ in range(self.length)] for tag in self.tags}

    def write(self, number: int, texts: Texts) -> None:
        """The page of a round."""
        entries = {tag: BoardEntry(TextAndLetters(text, ()), b"") for tag, text in sorted(texts.items())}
        self.pages[number] = BoardPage({number: entries}, ())

    def met(self) -> None:
        self.write(KEYS, {tag: bytes(PUBLIC_KEY_SIZE) + public_of(self.keys[tag]) for tag in self.tags})

    def said(self) -> None:
        """Keys, what binds to secrets, and vectors, without letters: enough for all that no text is opened for."""
        self.met()
        self.write(SHARES, {tag: commitment(self.own[tag]) for tag in self.tags})
        self.write(VECTOR, dict.fromkeys(self.tags, bytes(8 * self.length)))

    def begun(self, unshared: Collection[int] = (), away: Collection[int] = ()) -> None:
        """Keys, shares and vectors. `unshared`: those who stay away from the shares on; `away`: from the vectors on."""
        self.met()
        there = [tag for at, tag in enumerate(self.tags) if at not in unshared]
        for tag in there:
            many, needed = len(neighbours(self.pages, tag)), threshold(self.pages, tag)
            pairs = [shares(secret[tag], tag, b"", needed, many) for secret in (self.keys, self.own)]
            self.letters[tag] = [key + own for key, own in zip(*pairs, strict=True)]
        self.write(SHARES, {tag: commitment(self.own[tag]) for tag in there})
        texts = {
            tag: masked(STUDY, self.pages, tag, self.keys[tag], self.own[tag], self.values[tag])
            for tag in there
            if self.tags.index(tag) not in away
        }
        self.write(VECTOR, texts)

    def mail(self, tag: bytes) -> dict[tuple[int, bytes], bytes]:
        found = {}
        for other in neighbours(self.pages, tag):
            if other in self.letters:
                found[SHARES, other] = self.letters[other][neighbours(self.pages, other).index(tag)]
        return found

    def told(self, tag: bytes) -> bytes:
        return opening(self.pages, self.mail(tag), tag, min(self.many - 1, NEIGHBOURS), LEAST)

    def sum(self, silent: Collection[int] = (), lies: Mapping[int, bytes] = {}) -> list[int] | None:
        """Who came, and the opening. `silent`: those who are away by then; `lies`: other texts of members."""
        there = [tag for tag in came(self.pages, LEAST) if self.tags.index(tag) not in silent]
        self.write(CAME, dict.fromkeys(there, seen(self.pages)))
        texts = {tag: lies.get(self.tags.index(tag), self.told(tag)) for tag in there}
        self.write(OPENING, texts)
        return opened(STUDY, self.pages, LEAST, self.length)

    def expected(self) -> list[int]:
        return [sum(self.values[tag][at] for tag in came(self.pages, LEAST)) for at in range(self.length)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("many", "unshared", "away", "silent"),
    [
        (3, (), (), ()), (6, (0,), (), ()), (6, (), (1,), ()), (6, (), (), (2,)), (12, (0,), (1,), (2,)),
        (100, (3, 50), (0, 99, 7), (20, 21)),
    ],
)  # fmt: skip
def test_the_sum_is_that_of_those_who_came(
    many: int, unshared: tuple[int, ...], away: tuple[int, ...], silent: tuple[int, ...]
) -> None:
    """Members drop out before the shares, the vector or the opening; in a large group neighbours stand on a ring."""
    group = Group(many)
    group.begun(unshared, away)
    assert len(neighbours(group.pages, group.tags[0])) == min(many - 1, NEIGHBOURS)
    assert len(came(group.pages, LEAST)) == many - len(unshared) - len(away)
    assert group.sum(silent) == group.expected()


def test_neighbours_are_each_others() -> None:
    group = Group(100)
    group.met()
    near = {tag: neighbours(group.pages, tag) for tag in group.tags}
    assert all(len({*found}) == NEIGHBOURS and tag not in found for tag, found in near.items())
    assert all(tag in near[other] for tag, found in near.items() for other in found)
    assert neighbours(group.pages, b"x" * 48) == ()


def test_nothing_opens_for_too_few_or_for_two_boards() -> None:
    """More than two thirds of those who shared must have signed one board."""
    group = Group(6)
    group.begun()
    assert group.sum(silent=(0, 1)) is None and not agreed(group.pages, LEAST)
    right = seen(group.pages)
    for signed in range(7):
        group.write(CAME, {tag: right if at < signed else b"another" for at, tag in enumerate(group.tags)})
        assert agreed(group.pages, LEAST) == (signed >= 5) and agreed(group.pages, 6) == (signed == 6)

    assert [threshold(group.pages, tag) for tag in group.tags] == [4] * 6


def test_of_nobody_are_both_secrets_opened() -> None:
    """Each part of an opening is of one secret: of whoever came the own mask's, of whoever dropped out the key's."""
    group = Group(6)
    group.begun(away=(5,))
    for tag in group.tags[:5]:
        mail, near = group.mail(tag), neighbours(group.pages, tag)
        parts = [group.told(tag)[at : at + SHARE] for at in range(0, SHARE * len(near), SHARE)]
        for other, part in zip(near, parts, strict=True):
            letter = mail[SHARES, other]
            assert part == (letter[:SHARE] if other == group.tags[5] else letter[SHARE:])


@pytest.mark.parametrize("liars", [1, 2])
def test_lies_about_shares_do_not_change_the_sum(liars: int) -> None:
    """With a threshold of 7 of 10 neighbours, some sets of shares have none of theirs."""
    group = Group(11)
    group.begun(away=(10,))
    false = {at: hashlib.shake_256(b"%d" % at).digest(10 * SHARE) for at in range(liars)}
    assert group.sum(lies=false) == group.expected()


def test_too_many_lies_open_nothing() -> None:
    group = Group(8)
    group.begun()
    false = {at: hashlib.shake_256(b"%d" % at).digest(7 * SHARE) for at in range(5)}
    assert group.sum(lies=false) is None


def test_a_key_of_small_order_hides_nobody_and_stops_nobody() -> None:
    group = Group(5)
    group.begun()
    entries = dict(group.pages[KEYS].entries[KEYS])
    entries[group.tags[0]] = BoardEntry(TextAndLetters(bytes(PUBLIC_KEY_SIZE + 32), ()), b"")
    group.pages[KEYS] = BoardPage({KEYS: entries}, ())
    honest = {
        tag: masked(STUDY, group.pages, tag, group.keys[tag], group.own[tag], group.values[tag])
        for tag in group.tags[1:]
    }
    liar = masked(STUDY, group.pages, group.tags[0], group.keys[group.tags[0]], group.own[group.tags[0]], [0] * 3)
    group.write(VECTOR, honest | {group.tags[0]: liar})
    assert group.sum() is not None  # its own masks with others are its own fault


def test_a_vector_under_masks_is_uniform_without_its_secrets() -> None:
    """One entry of 0 under masks of other studies: its top bits fall as those of uniform numbers. A correct mask fails
    this once in ten thousand choices of the seed, which is fixed."""
    group = Group(3, length=4096)
    group.values = {tag: [0] * 4096 for tag in group.tags}
    group.begun()
    (text, *_) = group.pages[VECTOR].texts(VECTOR).values()
    tops = [text[at] >> 4 for at in range(0, len(text), 8)]
    chi_squared = sum((tops.count(value) - 256) ** 2 / 256 for value in range(16))
    assert chi_squared < 44.3  # 15 degrees of freedom, 1e-4


@pytest.mark.parametrize(("sharing", "safe"), [(1, False), (54, False), (55, True)])
def test_a_page_with_few_sharers_hides_nobody(sharing: int, safe: bool) -> None:
    """An aggregator that shows a member hardly anybody's shares would see its vector under its own mask alone, which
    others open. So the member writes nothing, and whoever is not hidden did not come."""
    group = Group(82)
    group.said()
    ring = [group.tags[0], *neighbours(group.pages, group.tags[0])]
    shown = {tag: commitment(group.own[tag]) for tag in ring[:sharing]}
    group.write(SHARES, shown)
    assert (group.tags[0] in hidden(group.pages, LEAST)) == safe == (group.tags[0] in came(group.pages, LEAST))
    assert not hidden(group.pages, sharing + 1)


def test_an_arc_cannot_be_cut_off_the_ring() -> None:
    """Two gaps of 26 in 40, and the members between them would be opened alone; 15 in 40 are told from a cut."""
    group = Group(160, length=1)
    group.said()
    near = neighbours(group.pages, group.tags[0])[:40]  # in a row on the ring
    for away, cut in ((15, False), (16, True)):
        texts = {tag: text for tag, text in group.pages[VECTOR].texts(VECTOR).items() if tag not in near[:away]}
        pages = dict(group.pages)
        group.write(VECTOR, texts)
        assert torn(group.pages, LEAST) == cut
        group.write(CAME, dict.fromkeys(texts, seen(group.pages)))
        assert agreed(group.pages, LEAST) == (not cut)
        group.pages = pages
    small = Group(81)
    small.said()
    small.write(VECTOR, dict.fromkeys(small.tags[20:], bytes(8 * small.length)))
    assert not torn(small.pages, LEAST)
