"""Three tellers of which any two suffice, members with credentials, and the aggregator that relays to each pair."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

from attrs import define, field

from anon.credential import pseudonym
from anon.sharing.arrangement import Arrangement, Sum
from anon.sharing.combine import CombinedSum, combine
from anon.sharing.quorum import Quorum, own_ids, quorums
from anon.sharing.sealed_shares import sealed_shares
from anon.sharing.statements import AcceptedList
from anon.teller.journal import Journal
from anon.teller.session import Teller
from anon.transparency.closing import CLOSING, Bodies
from anon.transparency.documents import encode_chain
from anon.wire.packets import Occasion, Packet
from tests.support.fake_aggregator import FakeAggregator
from tests.support.reopened_teller import reopened
from tests.support.tellers import PLACES, SILENT, Member, a_sum, closed_study

TELLERS = 3


@define
class Spared:
    """One study with a spare. `packets`: those of its members, all of them accepted by every pair."""

    folder: Path
    aggregator: FakeAggregator
    arrangement: Arrangement
    members: list[Member]
    tellers: list[Teller] = field(factory=list)
    journals: list[Journal] = field(factory=list)

    @property
    def quorums(self) -> tuple[Quorum, ...]:
        return quorums(self.aggregator.study, self.arrangement)

    @property
    def occasion(self) -> Occasion:
        """Of the study: packets and tokens are about it."""
        return Occasion(self.aggregator.study, 0, 0)

    def restart(self, number: int) -> None:
        """The teller's process ends, and another one begins with what is on the disk."""
        if number < len(self.journals):
            self.journals[number].close()
        key, journal = reopened(self.folder / str(number))
        self.journals[number : number + 1] = [journal]
        self.tellers[number : number + 1] = [Teller(key, journal, os.urandom)]

    def copy(self, number: int) -> Teller:
        """A teller that breaks its word: a second copy of its home as it is now."""
        self.restart(number)
        folder = self.folder / f"{number} copied {len(list(self.folder.iterdir()))}"
        shutil.copytree(self.folder / str(number), folder)
        key, journal = reopened(folder)
        return Teller(key, journal, os.urandom)

    def packet(
        self,
        member: Member,
        measurement: Sequence[int],
        change: Callable[[Packet], Packet] = lambda packet: packet,
    ) -> Packet:
        """A packet as a peer makes it; `change` is made before the token, which signs all of it."""
        tag = pseudonym(member.credential, self.occasion.tag_context())
        parts = [
            sealed_shares(one.arrangement, one.occasion(self.occasion), measurement, tag, os.urandom)
            for one in self.quorums
        ]
        report = b"".join(public for public, _ in parts)
        shares = tuple(share for _, closed in parts for share in closed)
        return member.signed(change(Packet(self.occasion, 0, report, shares, tag)))

    def packets(self, places: Sequence[Sequence[int]] = PLACES[:4]) -> list[Packet]:
        return [self.packet(member, one) for member, one in zip(self.members, places, strict=False)]

    # The aggregator's part, for one pair

    def seated(self, number: int) -> list[Teller]:
        return [self.tellers[one] for one in self.quorums[number].members]

    def at(self, number: int) -> Occasion:
        """As the pair's statements name it."""
        return self.quorums[number].occasion(self.occasion)

    def admit(self, number: int, packets: Sequence[Packet]) -> list[bytes]:
        first = self.quorums[number].first
        return [
            teller.admit(self.at(number), [packet.relayed(first + one).to_bytes() for packet in packets]).statement
            for one, teller in enumerate(self.seated(number))
        ]

    def settle(self, number: int, statements: Sequence[bytes]) -> frozenset[bytes]:
        one, other = self.seated(number)
        return one.settle(self.at(number), statements[1:]) & other.settle(self.at(number), statements[:1])

    def list_of(self, number: int, tags: frozenset[bytes]) -> bytes:
        return AcceptedList(self.at(number), tuple(sorted(tags))).to_bytes()

    def accepted(self, number: int, packets: Sequence[Packet]) -> bytes:
        """The list of all that both accepted."""
        return self.list_of(number, self.settle(number, self.admit(number, packets)))

    def finished(self, number: int, body: bytes, seated: Sequence[Teller] | None = None) -> CombinedSum:
        """From the list to the sum."""
        tellers, quorum = seated or self.seated(number), self.quorums[number]
        signatures = [teller.sign_list(self.at(number), body) for teller in tellers]
        shares = [
            teller.add_noise(self.at(number), [signature])
            for teller, signature in zip(tellers, reversed(signatures), strict=True)
        ]
        return combine(quorum.arrangement, self.at(number), body, signatures, shares)

    def summed(self, number: int, packets: Sequence[Packet]) -> CombinedSum:
        """A whole round by one pair."""
        return self.finished(number, self.accepted(number, packets))


def spared(folder: Path, members: int = 4, minimum: int = 3, sigma_squared: Fraction = SILENT) -> Spared:
    """A study whose tellers take packets in every pair."""
    aggregator, enrolled = closed_study(members=members)
    made = Spared(folder, aggregator, None, enrolled)  # type: ignore[arg-type]
    for number in range(TELLERS):
        made.restart(number)
    first, second = (
        tuple(teller.offer(f"teller {number}", f"127.0.0.1:900{number}") for number, teller in enumerate(made.tellers))
        for _ in range(2)
    )
    sums: tuple[Sum, ...] = (a_sum(sigma_squared=sigma_squared),)
    made.arrangement = Arrangement(minimum, first, sums, second)
    join_up(made)
    return made


def join_up(world: Spared) -> None:
    """Countersignatures, parts of each pair's key, roster."""
    manifest, heads = world.aggregator.manifest.to_bytes(), encode_chain(world.aggregator.chain)
    for teller in world.tellers:
        teller.countersign(world.aggregator.study, world.arrangement.to_bytes(), manifest)
    for quorum in world.quorums:
        one, other = (world.tellers[number] for number in quorum.members)
        other.take_key_share(quorum.id, 0, one.key_shares(quorum.id)[1])
        one.take_key_share(quorum.id, 1, other.key_shares(quorum.id)[0])
    kinds = [one.head.kind for one in world.aggregator.chain]
    bodies = Bodies(*(world.aggregator.bodies[kinds.index(kind)] for kind in CLOSING))
    for teller, known in zip(world.tellers, own_ids(world.aggregator.study, world.arrangement), strict=True):
        teller.take_roll(known, manifest, heads, bodies)
