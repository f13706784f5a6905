"""Members of groups around one table: every message without its seal, and no network between."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

from attrs import define, field

from aggregator.protocols.sum.groups import EnsemblePart as Everybody
from anon.credential import token_size
from anon.crypto.sealing import OVERHEAD
from anon.crypto.sealing.opening import Opener
from anon.protocols.board import BoardPage, page_body, page_of, read_page
from anon.protocols.contract import Place
from anon.protocols.outgoing import OpenShares
from anon.protocols.registry import protocol_of
from anon.protocols.resolve import resolve
from anon.protocols.sortition import occasion_of
from anon.protocols.sum.groups.drawing import KEYS, Group
from anon.protocols.sum.groups.shared import drawn_groups
from anon.study.manifest import Manifest, Survey
from anon.wire.letters import written_report
from anon.wire.packets import TAG_BYTES, PublishedPacket
from peer.protocols.contract import Correspondence
from peer.protocols.sum.groups import GroupsPart
from tests.support.groups_study import HELD, groups_study
from tests.support.letters_study import KEYS as STUDY_KEYS
from tests.support.oblivious_table import record
from tests.support.protocols import parse_proposal

Says = Callable[[int, int, OpenShares], OpenShares | None]
"""The words of a member in a survey, in place of those that its part made; None of one that is away."""


def manifest(text: str = "") -> Manifest:
    """Of the study file for tests, or another."""
    return resolve(parse_proposal(text or groups_study()), STUDY_KEYS, 1_800_000_000)


def honest(_member: int, _survey: int, made: OpenShares) -> OpenShares | None:
    """Nothing else."""
    return made


@define
class Table:
    """`says`: the members' words. After `play`: `documents`, each reader's mail, and the round that ended it all."""

    study: Manifest = field(factory=manifest)
    held: Sequence[Sequence[tuple[object, ...]]] = HELD
    seed: bytes = b"table"
    says: Says = honest
    documents: dict[Place, bytes] = field(factory=dict)
    mail: dict[bytes, dict[tuple[int, bytes], bytes]] = field(factory=dict)
    ended: int | None = None

    def drawn(self, *grounds: object) -> Callable[[int], bytes]:
        """Random bytes of somebody's own."""
        told = self.seed + repr(grounds).encode()
        return lambda size: hashlib.shake_256(told).digest(size)

    @property
    def tags(self) -> list[bytes]:
        """The pseudonyms, in the order of their numbers."""
        return [bytes([number + 1]) * TAG_BYTES for number in range(len(self.held))]

    def play(self, rounds: int = 99) -> Table:
        """So many rounds, or fewer if the study ends. One whose letter is missing in a session is silent in it."""
        study, away = self.study, set[tuple[int, int]]()
        for study_round in protocol_of(study).rounds(study)[:rounds]:
            (number,), session, packets = study_round.surveys, study_round.session, list[bytes]()
            for member in range(len(self.held)):
                packet = None if {(member, session), (member, 0)} & away else self.packet(study.survey(number), member)
                if packet is None:
                    away.add((member, session))
                else:
                    packets.append(packet)
            self.documents[page_of(number)] = page_body(study.study_id, number, packets)
            if Everybody().ends(study, number, self.documents):
                self.ended = number
                break
        return self

    def packet(self, survey: Survey, member: int) -> bytes | None:
        """A member's packet, whose letters lie open beside it."""
        study, part, tag, pages = self.study, GroupsPart(), self.tags[member], self.pages(survey.survey)
        own = {
            earlier: self.drawn(member, earlier)(part.random_size(study, study.survey(earlier)))
            for earlier in range(survey.survey)
            if not study.survey(earlier).epsilon
        }
        known = Correspondence(tag, own, self.mail.get(tag, {}), pages)
        held = record(self.held[member]) if survey.epsilon and part.reads(study, survey, tag, pages) else None
        made = part.letters(study, survey, held, known, (), self.drawn(member, survey.survey))
        key = self.key(member) if survey.survey == KEYS else b""
        said = self.says(member, survey.survey, OpenShares(key + made.public, made.shares))
        if said is None:
            return None
        circle = protocol_of(study).circle(study, survey, tag, pages)
        for reader, letter in zip(circle, said.shares, strict=False):
            self.mail.setdefault(reader, {})[survey.survey, tag] = letter
        token = tag.ljust(token_size(study.packets), b"\0")
        report = written_report(said.public, [bytes(survey.letter_size + OVERHEAD)] * survey.m)
        return PublishedPacket(occasion_of(study, survey.survey), survey.survey, report, (), token).to_bytes()

    def key(self, member: int) -> bytes:
        """A sealing key."""
        return Opener(self.drawn(member, "key")(32)).public_key

    def pages(self, before: int = 99) -> Mapping[int, BoardPage]:
        """The pages of the rounds before one."""
        return {
            number: read_page(self.study, number, body)
            for (_, number), body in self.documents.items()
            if number < before
        }

    def groups(self, aggregation: int) -> tuple[Group, ...]:
        """The groups that were drawn."""
        return drawn_groups(self.study, aggregation, self.pages())
