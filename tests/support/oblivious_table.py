"""Parties of oblivious averaging around one table: every message without its seal, and no network between."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from attrs import define, field

from aggregator.protocols.sum.oblivious import CharliePart
from anon.credential import token_size
from anon.crypto.sealing import OVERHEAD
from anon.crypto.sealing_sizes import PUBLIC_KEY_SIZE
from anon.protocols.board import board_before, page_body, page_of, read_page
from anon.protocols.contract import DocumentArrived, Place, Record
from anon.protocols.outgoing import OpenShares
from anon.protocols.registry import protocol_of
from anon.protocols.resolve import resolve
from anon.protocols.sortition import occasion_of
from anon.protocols.sum.oblivious.messages import KEYS, POSTED, ROUND_OF, SEATS
from anon.study.manifest import Manifest, Survey
from anon.wire.letters import AGGREGATOR, written_report
from anon.wire.packets import TAG_BYTES, PublishedPacket
from peer.protocols.contract import Correspondence
from peer.protocols.sum.oblivious import ObliviousPart
from tests.support.letters_study import KEYS as STUDY_KEYS
from tests.support.oblivious_study import HELD, oblivious_study
from tests.support.protocols import parse_proposal

Says = Callable[[int, int, OpenShares], OpenShares]
"""The words of a party in a survey, in place of those that its part made."""


@cache
def manifest(text: str = "") -> Manifest:
    """Of the study file for tests, or another."""
    return resolve(parse_proposal(text or oblivious_study()), STUDY_KEYS, 1_800_000_000)


def record(rows: Sequence[tuple[object, ...]]) -> Record:
    """The records of a party."""
    return Record({}, None, rows=tuple(Record({"age": age, "sleep": sleep}, tired) for _, age, sleep, tired in rows))


def honest(_party: int, _survey: int, made: OpenShares) -> OpenShares:
    """Nothing else."""
    return made


@define
class Table:
    """`says`: the parties' words. After `play`: `documents`, each reader's mail, and the round that ended it all."""

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

    def play(self, rounds: int = 7) -> Table:
        """So many rounds, or fewer if the study ends."""
        seat, study = CharliePart(), self.study
        for number in range(rounds):
            packets = [
                self.packet(survey, party)
                for survey in study.surveys
                if survey.round == number
                for party in (range(len(self.held)) if survey.pseudonymous else reversed(range(len(self.held))))
            ]  # each survey's in the order of tags: those of one occasion stand in another order
            self.documents[page_of(number)] = page_body(study.study_id, number, packets)
            if number in SEATS:
                mail, secret = self.mail.get(AGGREGATOR, {}), self.drawn("seat")(32)
                said = seat.answered(study, number, self.documents, mail, secret, self.drawn("seat", number))
                self.documents[SEATS[number]] = said
            if seat.ends(study, number, self.documents):
                self.ended = number
                break
        return self

    def packet(self, survey: Survey, party: int) -> bytes:
        """A party's packet, whose letters lie open beside it."""
        study, part, tag = self.study, ObliviousPart(), self.tags[party]
        pages = self.pages(survey)
        own = {
            earlier: self.drawn(party, earlier)(part.random_size(study, study.survey(earlier)))
            for earlier in range(survey.survey)
            if study.survey(earlier).pseudonymous and not study.survey(earlier).epsilon
        }
        known = Correspondence(tag, own, self.mail.get(tag, {}), pages)
        reads = part.reads(study, survey, tag, pages) if survey.pseudonymous else True
        held = record(self.held[party]) if survey.epsilon and reads else None
        made = part.letters(study, survey, held, known, self.arrived(survey), self.drawn(party, survey.survey))
        key = bytes([party]) * PUBLIC_KEY_SIZE if survey.survey == KEYS else b""
        made = self.says(party, survey.survey, OpenShares(key + made.public, made.shares))
        circle = (AGGREGATOR,) if survey.survey == POSTED else protocol_of(study).circle(study, survey, tag, pages)
        writer = tag if survey.pseudonymous else bytes([0xFF - party]) * TAG_BYTES
        for reader, letter in zip(circle, made.shares, strict=False):
            self.mail.setdefault(reader, {})[survey.survey, writer] = letter
        sealed = [bytes(survey.letter_size + OVERHEAD)] * survey.m
        token = writer.ljust(token_size(study.packets), b"\0")
        report = written_report(made.public, sealed)
        return PublishedPacket(occasion_of(study, survey.survey), survey.survey, report, (), token).to_bytes()

    def arrived(self, survey: Survey) -> tuple[DocumentArrived, ...]:
        """The board before a survey."""
        places = board_before(self.study, survey.survey)
        return tuple(DocumentArrived(*place, self.documents[place]) for place in places)

    def pages(self, survey: Survey) -> Mapping[int, object]:
        """Its pages."""
        before = range(ROUND_OF[survey.survey])
        return {number: read_page(self.study, number, self.documents[page_of(number)]) for number in before}


@cache
def played() -> Table:
    """The honest study to its end. No test changes it."""
    return Table().play()
