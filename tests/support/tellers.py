"""Two to four tellers in one study, members with credentials, and the aggregator that relays between them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

from attrs import define, evolve, field, frozen

from anon.credential import (
    Credential,
    PublicKey,
    commit,
    finalize,
    present,
    pseudonym,
    public_key,
    signer_nym_entropy,
)
from anon.crypto.nacl import SigningKey
from anon.sharing.arrangement import Arrangement, Sum
from anon.sharing.combine import CombinedSum, combine
from anon.sharing.sealed_shares import sealed_shares
from anon.sharing.statements import AcceptedList
from anon.teller.journal import Journal
from anon.teller.session import Teller
from anon.transparency.closing import CLOSING, Bodies
from anon.transparency.documents import body_digest, encode_chain
from anon.vdaf.circuits import blocks
from anon.wire.messages import Enrolment, credential_header
from anon.wire.packets import Occasion, Packet
from tests.support import draws
from tests.support.fake_aggregator import DECLARED, FakeAggregator
from tests.support.reopened_teller import reopened

LENGTHS = (2, 3)
SILENT = Fraction(1, 1000)
"""A variance whose noise is 0, but for one draw in 10^200."""
MANIFEST = b"manifest"
"""A teller keeps it, and reads nothing in it."""
PLACES = [[0, 2], [1, 0], [1, 2], [0, 1], [1, 1]]


def a_sum(round_number: int = 0, slot: int = 0, sigma_squared: Fraction = SILENT) -> Sum:
    circuit = blocks(LENGTHS)
    return Sum(round_number, slot, "blocks", circuit.parameters, sigma_squared)


def expected(places: Sequence[Sequence[int]], lengths: Sequence[int] = LENGTHS) -> tuple[int, ...]:
    """The exact sum of such vectors."""
    cells = [0] * sum(lengths)
    for one in places:
        start = 0
        for place, length in zip(one, lengths, strict=True):
            cells[start + place] += 1
            start += length
    return tuple(cells)


def held_tags(journal: Journal, occasion: Occasion) -> list[bytes]:
    """The tags of all packets that a teller holds for an occasion, sorted."""
    place = (occasion.study, occasion.round, occasion.slot)
    query = "SELECT tag FROM shares WHERE study = ? AND round = ? AND slot = ? ORDER BY tag"
    return [tag for (tag,) in journal._connection.execute(query, place)]


@frozen
class Member:
    """One member of the study."""

    credential: Credential

    def packet(
        self,
        arrangement: Arrangement,
        occasion: Occasion,
        measurement: Sequence[int],
        change: Callable[[Packet], Packet] = lambda packet: packet,
    ) -> Packet:
        """A packet as a peer makes it; `change` is made before the token, which signs all of it."""
        tag = pseudonym(self.credential, occasion.tag_context())
        report, shares = sealed_shares(arrangement, occasion, measurement, tag, os.urandom)
        return self.signed(change(Packet(occasion, 0, report, shares, tag)))

    def signed(self, packet: Packet) -> Packet:
        """The same with a token for it."""
        token = present(self.credential, packet.occasion.tag_context(), packet.presentation_header(), os.urandom)
        return evolve(packet, token=token)


@define
class World:
    """Everything of one study. `tellers` are reopened by `restart`."""

    folder: Path
    aggregator: FakeAggregator
    arrangement: Arrangement
    members: list[Member]
    tellers: list[Teller] = field(factory=list)
    journals: list[Journal] = field(factory=list)

    @property
    def study(self) -> bytes:
        return self.aggregator.study

    def occasion(self, number: int = 0) -> Occasion:
        asked = self.arrangement.sums[number]
        return Occasion(self.study, asked.round, asked.slot)

    def packets(self, places: Sequence[Sequence[int]] = PLACES[:4], number: int = 0) -> list[Packet]:
        return [
            member.packet(self.arrangement, self.occasion(number), one)
            for member, one in zip(self.members, places, strict=False)
        ]

    def closing(self) -> tuple[bytes, bytes, Bodies]:
        """Manifest, heads and bodies, with the buckets beside them, for `take_roll`."""
        kinds = [one.head.kind for one in self.aggregator.chain]
        roster, credentials = (self.aggregator.made.get(kinds.index(kind)) for kind in ("roster", "credentials"))
        beside: list[bytes] = []
        if roster is not None and credentials is not None and roster.document.bits:
            beside = [body for pair in zip(roster.contents, credentials.contents, strict=True) for body in pair]
        bodies = Bodies(*(self.aggregator.bodies[kinds.index(kind)] for kind in CLOSING), beside=tuple(beside))
        return self.aggregator.manifest.to_bytes(), encode_chain(self.aggregator.chain), bodies

    def restart(self, number: int) -> None:
        """The teller's process ends, and another one begins with what is on the disk."""
        if number < len(self.journals):
            self.journals[number].close()
        key, journal = reopened(self.folder / str(number))
        self.journals[number : number + 1] = [journal]
        self.tellers[number : number + 1] = [Teller(key, journal, os.urandom)]

    # The aggregator's part: each step may be repeated

    def join_up(self) -> None:
        """Countersignatures, parts of the key, roster."""
        for teller in self.tellers:
            teller.countersign(self.study, self.arrangement.to_bytes(), MANIFEST)
        for number, teller in enumerate(self.tellers):
            for fellow, part in teller.key_shares(self.study).items():
                self.tellers[fellow].take_key_share(self.study, number, part)
        for teller in self.tellers:
            teller.take_roll(self.study, *self.closing())

    def admit(self, packets: Sequence[Packet], number: int = 0) -> list[bytes]:
        """Every teller's verifier shares."""
        return [
            teller.admit(self.occasion(number), [packet.relayed(one).to_bytes() for packet in packets]).statement
            for one, teller in enumerate(self.tellers)
        ]

    def settle(self, statements: Sequence[bytes], number: int = 0) -> frozenset[bytes]:
        """The tags that every teller accepted."""
        accepted = [
            teller.settle(self.occasion(number), [*statements[:one], *statements[one + 1 :]])
            for one, teller in enumerate(self.tellers)
        ]
        return frozenset.intersection(*accepted)

    def list_of(self, tags: frozenset[bytes], number: int = 0) -> bytes:
        return AcceptedList(self.occasion(number), tuple(sorted(tags))).to_bytes()

    def signatures(self, body: bytes, number: int = 0) -> list[bytes]:
        return [teller.sign_list(self.occasion(number), body) for teller in self.tellers]

    def noisy(self, signatures: Sequence[bytes], number: int = 0) -> list[bytes]:
        return [
            teller.add_noise(self.occasion(number), [*signatures[:one], *signatures[one + 1 :]])
            for one, teller in enumerate(self.tellers)
        ]

    def summed(self, packets: Sequence[Packet], number: int = 0) -> CombinedSum:
        """A whole round."""
        body = self.list_of(self.settle(self.admit(packets, number), number), number)
        signatures = self.signatures(body, number)
        return combine(self.arrangement, self.occasion(number), body, signatures, self.noisy(signatures, number))


def make_world(
    folder: Path,
    members: int = 4,
    tellers: int = 2,
    minimum: int = 3,
    sums: Sequence[Sum] | None = None,
    text: str = DECLARED,
    another: int = 0,
) -> World:
    """A study whose enrolment is closed; tellers have made their offers and nothing else."""
    aggregator, found = closed_study(text, members, another)
    world = World(folder, aggregator, arrangement=None, members=found)  # type: ignore[arg-type]
    for number in range(tellers):
        world.restart(number)
    entries = [
        teller.offer(f"teller {number}", f"127.0.0.1:900{number}") for number, teller in enumerate(world.tellers)
    ]
    world.arrangement = Arrangement(minimum, tuple(entries), tuple(sums or [a_sum()]))
    return world


def ready_world(folder: Path, **asked: Any) -> World:
    """The same, with tellers that take packets."""
    world = make_world(folder, **asked)
    world.join_up()
    return world


def closed_study(text: str = DECLARED, members: int = 4, another: int = 0) -> tuple[FakeAggregator, list[Member]]:
    """A study whose enrolment is closed, and its members. It is made once for all tests: keys, roster and credentials
    are the same for equal arguments. `another`: for a test that needs a second study."""
    aggregator, found = _closed_study(text, members, another)
    return aggregator.copied(), list(found)


@lru_cache(16)
def _closed_study(text: str, members: int, another: int) -> tuple[FakeAggregator, list[Member]]:
    with draws.apart(f"{another} {members} {text}"):
        aggregator = FakeAggregator.with_study(text)
        return aggregator, enrolled(aggregator, members)


def enrolled(aggregator: FakeAggregator, count: int) -> list[Member]:
    """Members whose enrolment is closed, each with its credential."""
    manifest, secrets = aggregator.manifest, {}
    for _ in range(count):
        key = bytes(SigningKey.generate().verify_key)
        secrets[key] = commit(manifest.packets, os.urandom)
        commitment = secrets[key].commitment_with_proof
        aggregator.enrolments[key] = Enrolment(aggregator.study, key, os.urandom(32), commitment, b"")
    aggregator.close()
    roster = aggregator.bodies[1]
    issuer = PublicKey(public_key(aggregator.issuer))  # type: ignore[arg-type]
    header, seed = credential_header(aggregator.study, body_digest(roster)), aggregator.seed(roster)
    signatures = aggregator.signatures(roster)
    return [
        Member(finalize(issuer, header, signature, signer_nym_entropy(seed, key), secrets[key]))
        for key, signature in zip(sorted(secrets), signatures, strict=True)
    ]
