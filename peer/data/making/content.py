"""The content of packets, made of the answers to a study's queries: categories, or open shares of exact vectors.

How long that takes may depend on the owner's records. So it is done by a deadline, in a child process that never ran
anybody's SQL and holds no key (`peer.data.making.maker`). Its result is one message of fixed size. The child is told
the random bytes of the shares. It is told none by which a category is perturbed or a token is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING

from attrs import astuple, field

from anon.crypto.sealing_sizes import PUBLIC_KEY_SIZE
from anon.errors import Malformed
from anon.ldp import RawCategory
from anon.protocols.contract import DocumentArrived, Record
from anon.protocols.outgoing import (
    Answer,
    Contributing,
    CutVector,
    OpenShares,
    Outgoing,
    RawVector,
    SurveyAnswer,
    Writing,
)
from anon.protocols.sortition import keys_survey
from anon.study.manifest import Manifest, Survey
from anon.text.sentences import say
from anon.values import frozen
from anon.wire.cbor import decode, encode
from peer.data.evaluate import snapshot_of
from peer.protocols.contract import Correspondence, CorrespondingPart, SharingPart, part_of

if TYPE_CHECKING:
    from anon.protocols.board import Mail

_NUMBER = 4
"""Bytes of a category, and of how many there are."""


@frozen
class SlotRequest:
    """A slot to be filled, and the survey that it drew. `tag` and `drawn`: the packet's tag and the random bytes of its
    shares or letters; empty for a category. `read`: what fills it stands on the record; if not, a vector is zeros."""

    slot: int
    survey: int
    tag: bytes = b""
    drawn: bytes = field(default=b"", repr=False)
    read: bool = True


@frozen
class Making:
    """All that the child is told. `answers`: the message of the queries (`peer.data.evaluate`)."""

    manifest: bytes = field(repr=False)
    answers: bytes = field(repr=False)
    places: tuple[SlotRequest, ...]
    documents: tuple[DocumentArrived, ...] = field(default=(), repr=False)
    own: Mapping[int, bytes] = field(factory=dict, repr=False)
    mail: Mail = field(factory=dict, repr=False)

    def to_bytes(self) -> bytes:
        """Canonical CBOR."""
        places, documents = ([list(astuple(entry)) for entry in each] for each in (self.places, self.documents))
        mail = [[survey, writer, letter] for (survey, writer), letter in self.mail.items()]
        return encode([self.manifest, self.answers, places, documents, list(map(list, self.own.items())), mail])

    @classmethod
    def from_bytes(cls, data: bytes) -> Making:
        """Read back what `to_bytes` wrote."""
        manifest, answers, places, documents, own, mail = decode(data, "making")
        return cls(
            manifest,
            answers,
            tuple(SlotRequest(*place) for place in places),
            tuple(DocumentArrived(*document) for document in documents),
            dict(own),
            {(survey, writer): letter for survey, writer, letter in mail},
        )


def made(told: Making, manifest: Manifest) -> bytes:
    """The content of each packet, in the order of places. As long for every record. Raises `Malformed` and
    `RejectedProof` on account of documents alone."""
    asked = [(place.slot, place.survey) for place in told.places if not manifest.survey(place.survey).written]
    record = snapshot_of(manifest, told.answers).record
    found = {answer.slot: answer for answer in part_of(manifest).answers(manifest, record, asked, told.documents)}
    found |= {
        place.slot: Contributing(place.slot, place.survey, RawVector([0] * manifest.survey(place.survey).m))
        for place in told.places
        if place.slot in found and not place.read
    }
    entries = written_by(told, manifest, record)
    entries |= {place.slot: _entry(manifest, place, found[place.slot]) for place in told.places if place.slot in found}
    return encode([[bytes([place.slot]), *entries[place.slot]] for place in told.places])


def written_by(told: Making, manifest: Manifest, record: Record | None) -> dict[int, list[bytes]]:
    """By slot, the text and the letters of each written survey among the places, of the lengths that it has. Without a
    record for what stands on none. Raises `Malformed` where the part writes other lengths."""
    written = [place for place in told.places if manifest.survey(place.survey).written]
    if not written:
        return {}
    from anon.protocols.board import read_pages  # late: studies without letters load nothing of them

    part, pages = part_of(manifest), read_pages(manifest, told.documents)
    if not isinstance(part, CorrespondingPart):
        raise Malformed(say("protocol: its answers are written, and it cannot write; update this program"))
    texts = dict[int, list[bytes]]()
    for place in written:
        survey = manifest.survey(place.survey)
        known = Correspondence(place.tag, told.own, told.mail, pages)
        try:
            open_shares = part.letters(manifest, survey, record, known, told.documents, BytesIO(place.drawn).read)
        except Malformed:
            raise
        except Exception:  # a part is any author's, and mail is anybody's
            raise Malformed(say("a letter of this study cannot be written; nothing more is sent")) from None
        lengths = [len(letter) for letter in open_shares.shares]
        if len(open_shares.public) != text_size(manifest, survey) or lengths != [survey.letter_size] * survey.m:
            raise Malformed(say("protocol: a text or a letter has another length than the study says; nothing is sent"))
        texts[place.slot] = [open_shares.public, *open_shares.shares]
    return texts


def text_size(manifest: Manifest, survey: Survey) -> int:
    """Bytes of the text that a protocol's part writes: without the sealing key that stands before the first one."""
    return survey.size - (PUBLIC_KEY_SIZE if survey.survey == keys_survey(manifest) else 0)


def _entry(manifest: Manifest, place: SlotRequest, answer: Answer) -> list[bytes]:
    if isinstance(answer, SurveyAnswer):
        category = answer.category
        return [b"".join(number.to_bytes(_NUMBER, "big") for number in (category.value, category.m))]
    part, survey = part_of(manifest), manifest.survey(place.survey)
    if not isinstance(part, SharingPart):
        raise Malformed(say("protocol: its answers are vectors, and it cannot cut them; update this program"))
    shares = part.cut(manifest, survey, place.slot, answer.vector, place.tag, BytesIO(place.drawn).read)
    return [shares.public, *shares.shares]


def read_made(manifest: Manifest, slots: Sequence[tuple[int, int]], message: bytes) -> tuple[Outgoing, ...]:
    """The wishes to send in a message of `made`, of these slots (slot, survey) or some of them. Raises `Malformed`,
    `ValueError`, `KeyError`."""
    asked = dict(slots)
    entries = [(number[0], entry) for number, *entry in decode(message, "made")]
    return tuple(_outgoing(manifest.survey(asked[slot]), slot, entry) for slot, entry in entries)


def _outgoing(survey: Survey, slot: int, entry: list[bytes]) -> Outgoing:
    first, *rest = entry
    if survey.written:
        return Writing(slot, survey.survey, OpenShares(first, tuple(rest)), read=True)
    if survey.exact:
        return CutVector(slot, survey.survey, OpenShares(first, tuple(rest)))
    value, m = (int.from_bytes(number, "big") for number in (first[:_NUMBER], first[_NUMBER:]))
    return SurveyAnswer(slot, survey.survey, RawCategory(value, m))
