"""Members who write: whole boards of the protocols with pages, made from a stream. Letters are drawn bytes.

No audit opens a letter. Here each letter is handed over in the open, and texts are those of honest members.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from attrs import define, field, frozen

from anon.crypto.curve import G1, encode_g1
from anon.crypto.sealing_sizes import MLKEM_KEY_SIZE, OVERHEAD
from anon.noise.bernoulli import Coins
from anon.protocols.board import BoardPage, page_body, page_of, read_page
from anon.protocols.contract import Place
from anon.protocols.registry import protocol_of
from anon.protocols.sortition import occasion_of
from anon.protocols.sum.design import shape_of
from anon.protocols.sum.groups import drawing
from anon.protocols.sum.groups.layout import grouping_of, weights_survey
from anon.protocols.sum.masks import masking, sharing
from anon.protocols.sum.masks.layout import masking_of, vector_survey
from anon.protocols.sum.oblivious import messages
from anon.protocols.sum.oblivious.paillier import PaillierKey
from anon.protocols.trees.attributes import LabelledRow
from anon.protocols.trees.growing import grown
from anon.protocols.trees.layout import plan_for
from anon.protocols.trees.written import write
from anon.study.manifest import Manifest
from anon.wire.letters import written_report
from anon.wire.packets import PublishedPacket

Pages = Mapping[int, BoardPage]
Draw = Callable[[int], bytes]
_SEALING: Final = bytes(MLKEM_KEY_SIZE) + (9).to_bytes(32, "little")
"""A key to which letters can be sealed."""
_LOW: Final = 1000
"""Entries of vectors lie around this, and noise would be as long."""


class BoardAuthor(Protocol):
    """The texts of a study's members. A member is a number; one that has no text is silent."""

    def text(self, survey: int, member: int, pages: Pages) -> bytes | None:
        """The open text."""

    def seat(self, number: int, pages: Pages) -> bytes:
        """The aggregator's own document after a round."""


class PacketSpelling(Protocol):
    """How packets are made of reports."""

    def tag(self, member: int, survey: int) -> bytes:
        """The member's pseudonym."""

    def spelled(self, member: int, survey: int, report: bytes) -> bytes:
        """The published packet."""


def board_of(
    study: Manifest, members: int, author: BoardAuthor, spelling: PacketSpelling, drawn: Draw
) -> dict[Place, bytes]:
    """The documents of all rounds."""
    documents, pages = dict[Place, bytes](), dict[int, BoardPage]()
    for number, asked in enumerate(protocol_of(study).rounds(study)):
        packets = []
        for survey in asked.surveys:
            for member in range(members):
                if (text := author.text(survey, member, pages)) is not None:
                    report = written_report(text, _letters(study, survey, drawn))
                    found = spelling.tag(member, survey), spelling.spelled(member, survey, report)
                    packets.append((survey, *found))
        documents[page_of(number)] = page_body(study.study_id, number, [packet for *_, packet in sorted(packets)])
        pages[number] = read_page(study, number, documents[page_of(number)])
        if asked.seat is not None:
            documents[asked.seat] = author.seat(number, pages)
    return documents


def _letters(study: Manifest, survey: int, drawn: Draw) -> list[bytes]:
    asked = study.survey(survey)
    return [drawn(asked.parameters[0] + OVERHEAD) for _ in range(asked.m)]


def author_of(study: Manifest, tags: Sequence[bytes], drawn: Draw, silent: Mapping[int, int]) -> BoardAuthor:
    """The author of a study. `tags`: of each member in the first round; `silent`: from which round on one is silent."""
    authors: Mapping[str, Callable[..., BoardAuthor]] = {
        "trees": TreeAuthor,
        "masks": MaskAuthor,
        "groups": GroupAuthor,
        "oblivious": PartyAuthor,
    }
    return authors[study.protocol](study, tuple(tags), drawn, silent)


@define
class _Writing:
    study: Manifest
    tags: tuple[bytes, ...]
    drawn: Draw
    silent: Mapping[int, int]

    def below(self, end: int) -> int:
        """A drawn number."""
        return int.from_bytes(self.drawn(16), "big") % end

    def values(self, length: int) -> list[int]:
        """A drawn vector."""
        return [self.below(2 * _LOW) - _LOW for _ in range(length)]

    def away(self, survey: int, member: int) -> bool:
        """True of a member that is silent by now."""
        return self.study.survey(survey).round >= self.silent.get(member, 1 << 8)

    def seat(self, number: int, pages: Pages) -> bytes:
        """No member has one."""
        raise LookupError("no seat")


class TreeAuthor(_Writing):
    """Trees of drawn records. A silent member's text is no tree."""

    def text(self, survey: int, member: int, pages: Pages) -> bytes:
        """See `BoardAuthor`."""
        plan = plan_for(self.study)
        records = [
            LabelledRow(tuple(self.below(one.places) for one in plan.attributes), self.below(plan.classes))
            for _ in range(10 + self.below(60))
        ]
        text = write(grown(records, plan, Coins(self.drawn)), plan).encode()
        return text[:-1] + b"." if member in self.silent else text


@define
class MaskAuthor(_Writing):
    """Vectors under masks. A silent member of round 2 shared before it dropped out."""

    secrets: dict[int, tuple[bytes, bytes]] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.secrets = {member: (self.drawn(31), self.drawn(31)) for member in range(len(self.tags))}

    def text(self, survey: int, member: int, pages: Pages) -> bytes | None:
        """See `BoardAuthor`."""
        if self.away(survey, member):
            return None
        key, own = self.secrets[member]
        least = masking_of(self.study.part).least
        match survey:
            case masking.KEYS:
                return _SEALING + masking.public_of(key)
            case masking.SHARES:
                return masking.commitment(own)
            case masking.VECTOR:
                length = shape_of(vector_survey(self.study)).length
                return masking.masked(self.study.study_id, pages, self.tags[member], key, own, self.values(length))
            case masking.CAME:
                return masking.seen(pages)
        seats = self.study.survey(masking.SHARES).m
        return masking.opening(pages, self._mail(pages, self.tags[member]), self.tags[member], seats, least)

    def _mail(self, pages: Pages, reader: bytes) -> Mapping[tuple[int, bytes], bytes]:
        """The shares that a member was sent."""
        mail = {}
        for writer, tag in enumerate(self.tags):
            near = masking.neighbours(pages, tag)
            if reader in near:
                needed, at = masking.most_of(len(near)), near.index(reader)
                parts = [
                    sharing.shares(secret, bytes([writer]) * 32, b"", needed, len(near))[at]
                    for secret in self.secrets[writer]
                ]
                mail[masking.SHARES, tag] = b"".join(parts)
        return mail


class GroupAuthor(_Writing):
    """Weights in groups. A silent member's key is none to which anything can be sealed."""

    def text(self, survey: int, member: int, pages: Pages) -> bytes:
        """See `BoardAuthor`."""
        plan, seed = grouping_of(self.study.part), bytes([member]) * 32
        if survey == drawing.KEYS:
            told = [
                drawing.commitment(self.study.study_id, self.tags[member], at, drawing.value_of(seed, at))
                for at in range(plan.aggregations)
            ]
            return (bytes(len(_SEALING)) if member in self.silent else _SEALING) + b"".join(told)
        aggregation, step = drawing.step_of(survey)
        if step == drawing.OPENED:
            return drawing.value_of(seed, aggregation)
        groups = drawing.groups(self.study.study_id, pages, aggregation, plan.group, plan.receivers)
        own = next((one for one in groups if self.tags[member] in one.members), None)
        if step == drawing.SHARES:
            return drawing.SHARED if own is not None and member % 5 != 4 else b"\0"
        length = shape_of(weights_survey(self.study)).length
        shared = own is not None and self.tags[member] in own.receivers
        return drawing.spelled(self.values(length) if shared else [0] * length)


class PartyAuthor(_Writing):
    """Parties whose keys are odd numbers, and whose replies are the one point."""

    def text(self, survey: int, member: int, pages: Pages) -> bytes | None:
        """See `BoardAuthor`."""
        if self.away(survey, member):
            return None
        size, frame = self.study.survey(survey).size, messages.frame_of(self.study)
        match survey:
            case messages.KEYS:
                return _SEALING + self.drawn(messages.NAME)
            case messages.AGREED:
                first = min(self.tags) == self.tags[member]
                return messages.spelled([self._modulus()], frame.modulus) if first else bytes(size)
            case messages.PERMUTED:
                key = PaillierKey(self._modulus())
                return messages.spelled([key.plus(1, self.below(1 << 31))], size)
            case messages.COMPARED:
                return encode_g1(G1()) * (size // len(encode_g1(G1())))
            case messages.OPENING:
                return self._summed().ljust(size, b"\0")
        return messages.DONE

    def seat(self, number: int, pages: Pages) -> bytes:
        """See `BoardAuthor`."""
        frame = messages.frame_of(self.study)
        if number == 1:
            return messages.spelled([self._modulus()], frame.modulus) + encode_g1(G1())
        if number == messages.ROUND_OF[messages.OPENING]:
            return self._summed()
        return self.drawn(frame.seat(number, len(self.tags)))

    def _modulus(self) -> int:
        bits = 8 * messages.frame_of(self.study).modulus
        return (1 << bits) - 1 - (self.study.study_id[0] << 8)

    def _summed(self) -> bytes:
        frame, n = messages.frame_of(self.study), self._modulus()
        packed = [value % n for value in frame.packed(self.values(frame.entries))]
        return messages.spelled(packed, frame.modulus)


@frozen
class FilledPackets:
    """Packets whose tokens hold for nobody: a tag, and drawn bytes. `size`: bytes of a token."""

    study: Manifest
    drawn: Draw
    size: int
    tags: tuple[bytes, ...]

    def tag(self, member: int, survey: int) -> bytes:
        """See `PacketSpelling`."""
        return self.tags[member]

    def spelled(self, member: int, survey: int, report: bytes) -> bytes:
        """See `PacketSpelling`."""
        slot = next(slot.slot for slot in self.study.slots if slot.rows[0].survey == survey)
        token = self.tags[member] + self.drawn(self.size - len(self.tags[member]))
        return PublishedPacket(occasion_of(self.study, slot), survey, report, (), token).to_bytes()
