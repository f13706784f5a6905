"""A third protocol: how many say yes, as an exact vector [yes, 1] in shares for two recipients, in each of two rounds.
Its packets are of version 2.

Its guarantee would be central; no recipient adds noise here, for only what leaves a peer is looked at.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import numpy as np
from attrs import evolve, frozen

from aggregator.protocols.tally import Tally
from anon.credential import pseudonym
from anon.crypto.sealing import OVERHEAD, seal
from anon.crypto.sealing.opening import Opener
from anon.errors import InvalidValue, Malformed
from anon.ldp import NanoEpsilon, RandomBytes
from anon.protocols.categories import label_category
from anon.protocols.charge import Charge, Measure
from anon.protocols.contract import DocumentArrived, Layout, Place, Record, Round
from anon.protocols.outgoing import Answer, Contributing, OpenShares, RawVector, SealedShares, sealed
from anon.protocols.registry import ProtocolParts
from anon.protocols.sortition import occasion_of
from anon.protocols.words import PacketKind
from anon.study.cost import total_epsilon
from anon.study.designs import Design, Tables
from anon.study.manifest import EXACT, Manifest, Survey, Window
from anon.study.proposal import DesignSection, Proposal
from anon.study.slots import Row, Slot
from anon.wire.cbor import decode, encode
from anon.wire.packets import Occasion, Packet, Relayed, share_info
from tests.support import noisy_count
from tests.support.world import FakePeer

NAME, RHO = "exact-sum", 20_000_000
KEYS = tuple(Opener(bytes([number]) * 32) for number in range(2))
IF = "one of the two recipients keeps its shares to itself"
SHARE = 2 * 8


@frozen
class ExactSum(DesignSection):
    most: int = 1


def form(cards: Mapping[str, int], tables: Tables) -> None:
    if [[survey.kind for survey in surveys] for surveys in tables] != [["sum"], ["sum"]]:
        raise InvalidValue("design: exact-sum asks in two rounds")


@frozen
class Shared(noisy_count.Shared):
    name = NAME
    designs: ClassVar[Mapping[str, Design]] = {
        NAME: Design(ExactSum, form, {"kind": "Two exact sums.", "most": "Nothing."})
    }

    def lay_out(self, proposal: Proposal, windows: tuple[Window, ...], randbelow: Callable[[int], int]) -> Layout:
        asked = [
            Survey(number, "sum", (), (), 2, EXACT, 0, 0, RHO, windows[number], number, size=48) for number in range(2)
        ]
        slots = tuple(Slot(number, (Row(number, 1),)) for number in range(2))
        return Layout(tuple(asked), slots, encode([key.public_key for key in KEYS]))

    def check(self, study: Manifest) -> None:
        if len(_recipients(study)) != 2:
            raise Malformed("manifest: expected two recipients; do not take part")

    def rounds(self, study: Manifest) -> tuple[Round, ...]:
        """They publish nothing: the sums are for the recipients."""
        return tuple(evolve(asking, document=None) for asking in super().rounds(study))

    def documents(self, study: Manifest) -> Mapping[Place, int]:
        return {}

    def share_sizes(self, study: Manifest) -> tuple[int, ...]:
        return (SHARE + OVERHEAD,) * 2

    def exposure(self, design: Layout) -> Charge:
        return Charge(Measure.ZCDP, total_epsilon(design.surveys, design.slots), condition=IF)

    def per_attribute(self, design: Layout) -> NanoEpsilon:
        return NanoEpsilon(self.exposure(design).amount)

    def title(self, study: Manifest, survey: Survey) -> str:
        return f"{study.label.name}, round {survey.round}"

    def odds(self, study: Manifest) -> tuple[str, ...]:
        return (f"Your exact answer leaves in two shares; the promise holds if {IF}.",)

    def packet_kinds(self, study: Manifest) -> tuple[PacketKind, ...]:
        return ()


def _recipients(study: Manifest) -> list[bytes]:
    return list(decode(study.part, "recipients"))


@frozen
class Peer:
    """Its shares are of one size whatever the vector, and add up to it modulo 2**64."""

    def needs(self, manifest: Manifest, survey: int) -> tuple[Place, ...]:
        return ()

    def check_documents(self, manifest: Manifest, documents: Sequence[DocumentArrived]) -> None:
        """There are none."""

    def answers(
        self, manifest: Manifest, record: Record, slots: Sequence[tuple[int, int]], documents: Sequence[DocumentArrived]
    ) -> tuple[Answer, ...]:
        vector = RawVector((label_category(manifest.label, record.label), 1))
        return tuple(Contributing(slot, survey, vector) for slot, survey in slots)

    def random_size(self, manifest: Manifest, survey: Survey) -> int:
        return 8 * survey.m

    def takes_part(self, manifest: Manifest, survey: Survey, lot: bytes) -> bool:
        return True

    def cut(
        self, manifest: Manifest, survey: Survey, slot: int, vector: RawVector, tag: bytes, random_bytes: RandomBytes
    ) -> OpenShares:
        if len(vector.values) != survey.m:
            raise ValueError("a vector of another survey")
        drawn = random_bytes(8 * survey.m)
        first = [int.from_bytes(drawn[8 * place : 8 * place + 8], "big") for place in range(survey.m)]
        second = [(value - mask) % 2**64 for value, mask in zip(vector.values, first, strict=True)]
        return OpenShares(tag, tuple(b"".join(one.to_bytes(8, "big") for one in each) for each in (first, second)))

    def seal(self, manifest: Manifest, survey: Survey, slot: int, shares: OpenShares, tag: bytes) -> SealedShares:
        occasion = occasion_of(manifest, slot)
        seals = [
            lambda plain, key=key, number=number: seal(plain, key, share_info(occasion, tag, number))
            for number, key in enumerate(_recipients(manifest))
        ]
        return sealed(shares, seals)


def packet(peer: FakePeer, vector: tuple[int, ...], slot: int = 0) -> Packet:
    """A whole packet of a member with this vector."""
    assert peer.credential is not None
    manifest, occasion = peer.manifest, occasion_of(peer.manifest, slot)
    tag = pseudonym(peer.credential, occasion.tag_context())
    part, survey = Peer(), manifest.survey(slot)
    made = part.seal(manifest, survey, slot, part.cut(manifest, survey, slot, RawVector(vector), tag, os.urandom), tag)
    return peer.signed(Packet(occasion, slot, made.public, made.shares, b""))


@frozen
class Aggregator(noisy_count.Aggregator):
    def tally(self, study: Manifest, survey: Survey, packets: Sequence[object], score_value: bytes) -> Tally:
        return np.zeros(0, dtype=np.int64)

    def learn(
        self, study: Manifest, documents: Mapping[Place, bytes], tallies: Mapping[int, Tally]
    ) -> noisy_count.Counts:
        return noisy_count.Counts(noisy_count.CountModel(NAME, study.study_id.hex(), study.title, study.label, 0.5))


def share_of(occasion: Occasion, tag: bytes, recipient: int, share: bytes) -> list[int]:
    """The part of a vector that one recipient opens. Raises `RejectedProof` for a share of another purpose."""
    plain = KEYS[recipient].open(share, share_info(occasion, tag, recipient))
    return [int.from_bytes(plain[at : at + 8], "big") for at in (0, 8)]


def total(shares: Sequence[Sequence[int]]) -> list[int]:
    """The sum of parts, modulo 2**64."""
    return [sum(column) % 2**64 for column in zip(*shares, strict=True)]


def opened(packet: Packet) -> list[int]:
    """The vector, as both recipients together would see it."""
    return total([share_of(packet.occasion, packet.tag, number, share) for number, share in enumerate(packet.shares)])


def added(shown: Sequence[Sequence[Relayed]]) -> list[int]:
    """The sum of all vectors, from what each recipient was shown."""
    return total([share_of(one.occasion, one.tag, one.teller, one.share) for each in shown for one in each])


PROTOCOL = ProtocolParts(Shared(), Peer(), Aggregator())
