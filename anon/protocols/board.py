"""The board: the pages on which members read what other members wrote, one after each round with a written survey.

1. `page_body`: the accepted packets of the round's written surveys, which the aggregator signs as a document.
2. `read_page`: a page as a value, each packet at its place and of its lengths.
3. `check_tokens`: every token of some pages holds, so that each text and letter is a member's own.
4. `demand_members`: no more wrote than there are members.
5. `key_of`: the sealing key of a member, which its first letters tell.
6. `mail_of`: the letters to one seat, opened; one that does not open is as if it had not been written.

Everybody fetches every page. A member's seat is its pseudonym, and the aggregator's the empty tag.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from typing import Final, Protocol, runtime_checkable

from attrs import field

from anon.credential import PublicKey, Verifier, token_size
from anon.crypto import labels
from anon.crypto.sealing_sizes import PUBLIC_KEY_SIZE, is_public_key
from anon.errors import AnonmlError, Malformed, RejectedProof
from anon.protocols.contract import DocumentArrived, Place, Round, SharedPart
from anon.protocols.registry import protocol_of
from anon.protocols.sortition import keys_survey, occasion_of, tag_context
from anon.study.manifest import Manifest, Survey
from anon.text.sentences import say
from anon.values import frozen
from anon.wire.cbor import decode, encode, sha256
from anon.wire.letters import AGGREGATOR, TextAndLetters, letter_info
from anon.wire.lists import list_length
from anon.wire.messages import VERSION, credential_header
from anon.wire.packets import TAG_BYTES, PublishedPacket, parse_published

PAGE: Final = "page"
"""The kind of a page. Its part is the number of its round."""
Mail = Mapping[tuple[int, bytes], bytes]
"""Letters that were opened, by survey and by the writer's tag."""
Open = Callable[[bytes, bytes], bytes]
"""Opens a sealed letter for a purpose. Raises `Malformed` and `RejectedProof`."""


_HELD: dict[bytes, None] = {}
"""Digests of pages whose tokens held, the last ones: whoever writes in five rounds would check the first five times."""
_MOST_HELD = 1024


@frozen
class BoardEntry:
    """A member's text and its sealed letters, and the digest of the packet that brought them."""

    written: TextAndLetters
    digest: bytes


@frozen(eq=False)
class BoardPage:
    """The page of a round: by survey, by tag, what each member wrote. Its packets are kept for `check_tokens`."""

    entries: Mapping[int, Mapping[bytes, BoardEntry]] = field(repr=False)
    packets: tuple[PublishedPacket, ...] = field(repr=False)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the digests of all packets, in their order."""
        return hashlib.sha256(
            b"".join(entry.digest for entries in self.entries.values() for entry in entries.values())
        ).digest()

    def texts(self, survey: int) -> dict[bytes, bytes]:
        """The open texts of a survey, by tag, in the order of tags."""
        return {tag: entry.written.text for tag, entry in self.entries[survey].items()}


Pages = Mapping[int, BoardPage]
"""Pages by the number of their round."""
_READ: dict[tuple[bytes, int, bytes], BoardPage] = {}
"""Pages by study, round and exact bytes, the last ones that were read."""
_MOST_READ = 32 * 1024 * 1024
"""Bytes of these pages: as many as a peer keeps of a study's documents."""


@runtime_checkable
class LettersPart(SharedPart, Protocol):
    """The shared part of a protocol whose members write letters to one another."""

    def circle(self, study: Manifest, survey: Survey, writer: bytes, pages: Pages) -> tuple[bytes, ...]:
        """The tags that this member writes to in a survey, in order, at most its `m`; the empty one is the aggregator's
        seat. It follows from the pages of earlier rounds alone, so that reader and writer find the same. Never raises.
        """


def page_of(number: int) -> Place:
    """The place of the page after a round."""
    return PAGE, number


def written_in(study: Manifest, study_round: Round) -> list[int]:
    """The written surveys of a round."""
    return [number for number in study_round.surveys if study.survey(number).written]


def board_before(study: Manifest, survey: int) -> list[Place]:
    """The pages and the seats' documents of all rounds before that of a written survey: whoever writes read them."""
    places: list[Place] = []
    for number, study_round in enumerate(protocol_of(study).rounds(study)):
        if survey in study_round.surveys:
            return places
        places += [page_of(number)] * bool(written_in(study, study_round))
        places += [study_round.seat] if study_round.seat is not None else []
    return places


def longest_page(study: Manifest, surveys: Sequence[int]) -> int:
    """Bytes of the longest page with these surveys: everybody wrote."""
    empty, written = len(page_body(bytes(32), 255, ())), [study.survey(number) for number in surveys]
    return empty + sum(list_length(study.cohort.maximum, _packet_bytes(study, survey)) for survey in written)


def _packet_bytes(study: Manifest, survey: Survey) -> int:
    """Bytes that a packet of a survey takes on a page; all packets of a survey take as many."""
    report, token = bytes(survey.report_size), bytes(token_size(study.packets))
    slot = next(slot for slot in study.slots if any(row.survey == survey.survey for row in slot.rows))
    packet = PublishedPacket(occasion_of(study, slot.slot), survey.survey, report, (), token)
    return len(encode(packet.to_bytes()))


def page_body(study: bytes, number: int, plaintexts: Sequence[bytes]) -> bytes:
    """The page of a round. `plaintexts`: published packets, sorted by survey and tag."""
    return encode([VERSION, study, number, list(plaintexts)])


def read_page(study: Manifest, number: int, body_untrusted: bytes) -> BoardPage:
    """The page of a round. Raises `Malformed` for one that no honest aggregator signs. Its tokens are not checked.

    The last pages are kept by their exact bytes: whoever writes in five rounds would read the first a dozen times.
    """
    place = study.study_id, number, body_untrusted
    page = _READ.get(place)
    if page is None:
        try:
            page = _READ[place] = _read_page(study, number, body_untrusted)
        except Malformed:  # the words of its parts are for programs, and name a next step that owners do not have
            raise _unfit() from None
        kept = list(_READ)  # a copy, since other threads read pages too
        while sum(len(body) for _study, _number, body in kept) > _MOST_READ:
            _READ.pop(kept.pop(0), None)
    return page


def _read_page(study: Manifest, number: int, body_untrusted: bytes) -> BoardPage:
    fields = decode(body_untrusted, PAGE)
    if not isinstance(fields, list) or len(fields) != 4 or fields[:3] != [VERSION, study.study_id, number]:
        raise _unfit()
    if type(fields[3]) is not list or not all(type(packet) is bytes for packet in fields[3]):
        raise _unfit()
    surveys = written_in(study, protocol_of(study).rounds(study)[number])
    packets = tuple(map(parse_published, fields[3]))
    places = [(packet.survey, packet.token[:TAG_BYTES]) for packet in packets]
    if not all(place < following for place, following in pairwise(places)):
        raise _unfit()
    entries: dict[int, dict[bytes, BoardEntry]] = {survey: {} for survey in surveys}
    for (survey, tag), packet, spelled in zip(places, packets, fields[3], strict=True):
        if survey not in entries or packet.digests or packet.occasion != occasion_of(study, packet.slot):
            raise _unfit()
        if [row.survey for row in study.slots[packet.slot].rows] != [survey]:
            raise _unfit()
        written = study.survey(survey).parse_written(packet.report)
        entries[survey][tag] = BoardEntry(written, sha256(labels.PACKET_DIGEST, spelled))
    return BoardPage(entries, packets)


def read_pages(study: Manifest, documents: Sequence[DocumentArrived]) -> dict[int, BoardPage]:
    """The pages among documents. Raises `Malformed`."""
    return {
        arrived.part: read_page(study, arrived.part, arrived.body) for arrived in documents if arrived.kind == PAGE
    }


def pages_in(study: Manifest, documents: Mapping[Place, bytes]) -> dict[int, BoardPage]:
    """The same among published documents."""
    return {part: read_page(study, part, body) for (kind, part), body in documents.items() if kind == PAGE}


def check_tokens(
    study: Manifest, roster_digest: bytes, pages: Sequence[BoardPage], random_bytes: Callable[[int], bytes]
) -> None:
    """Raises `RejectedProof` for a page with a packet that no member sent. About .75 ms a packet with the native curve,
    and once in a process for each page.
    """
    header = credential_header(study.study_id, roster_digest)
    found = {_digest(study, header, page): page for page in pages}
    items = [
        (packet.token, tag_context(study, packet.slot), packet.presentation_header())
        for digest, page in found.items()
        if digest not in _HELD
        for packet in page.packets
    ]
    if not items:
        return
    verifier = Verifier(PublicKey(study.credential_key), header, study.packets)
    if any(isinstance(verdict, AnonmlError) for verdict in verifier.check_batch(items, random_bytes)):
        raise RejectedProof(say("a page of this study has a letter that no member wrote; nothing more is sent"))
    _HELD.update(dict.fromkeys(found))
    while len(_HELD) > _MOST_HELD:
        del _HELD[next(iter(_HELD))]


def _digest(study: Manifest, header: bytes, page: BoardPage) -> bytes:
    """Of all that the verdict on a page's tokens rests on."""
    return hashlib.sha256(encode([study.to_bytes(), header, page.digest])).digest()


def demand_members(study: Manifest, pages: Pages, members: int) -> None:
    """Raises `Malformed` where more wrote than there are members: no survey has more packets, and all letters together
    no more pseudonyms. An aggregator that invents writers could open what was hidden from it."""
    tags = {
        tag
        for page in pages.values()
        for survey, entries in page.entries.items()
        if study.survey(survey).pseudonymous
        for tag in entries
    }
    most = max((len(entries) for page in pages.values() for entries in page.entries.values()), default=0)
    if max(most, len(tags)) > members:
        raise Malformed(
            say("a page of this study has more writers than the signed roster has members; nothing more is sent")
        )


def key_of(study: Manifest, pages: Pages, tag: bytes) -> bytes | None:
    """The sealing key of a seat: of a member that told one, or the aggregator's own. None for whoever told none, or
    bytes to which nothing can be sealed: a member cannot stop others by what it tells."""
    if tag == AGGREGATOR:
        return study.sealing_key
    keys = keys_survey(study)
    entry = next((page.entries[keys].get(tag) for page in pages.values() if keys in page.entries), None)
    told = b"" if entry is None else entry.written.text[:PUBLIC_KEY_SIZE]
    return told if is_public_key(told) else None


def seats_of(study: Manifest, survey: int, writer: bytes, pages: Pages) -> tuple[bytes, ...]:
    """The tags that a member writes to in a survey: its circle, or the aggregator's beside a posted text. A seat
    without a key keeps its place, and gets zeros."""
    return _seating(study, survey, pages)(writer)


def _seating(study: Manifest, survey: int, pages: Pages) -> Callable[[bytes], tuple[bytes, ...]]:
    """The seats of each writer of a survey."""
    part, asked = protocol_of(study), study.survey(survey)
    if asked.m and not asked.pseudonymous:
        return lambda _writer: (AGGREGATOR,)
    if not asked.m or not isinstance(part, LettersPart):  # which takes long enough not to be asked for each writer
        return lambda _writer: ()
    return lambda writer: part.circle(study, asked, writer, pages)[: asked.m]


def mail_of(study: Manifest, pages: Pages, reader: bytes, opens: Open) -> dict[tuple[int, bytes], bytes]:
    """The letters to a seat, opened. One that does not open is left out: its writer wrote nothing to this seat."""
    mail: dict[tuple[int, bytes], bytes] = {}
    for number, page in pages.items():
        earlier = {before: known for before, known in pages.items() if before < number}
        for survey, entries in page.entries.items():
            if not study.survey(survey).m:
                continue
            seats = _seating(study, survey, earlier)
            for writer, entry in entries.items():
                circle = seats(writer)
                if reader not in circle:
                    continue
                sealed = entry.written.letters[circle.index(reader)]
                with suppress(Malformed, RejectedProof):
                    mail[survey, writer] = opens(sealed, letter_info(study.study_id, survey, writer, reader))
    return mail


def _unfit() -> Malformed:
    return Malformed(say("a page of this study is not what its round can give; nothing more is sent"))
