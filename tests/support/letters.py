"""A protocol whose members write letters: an exact sum under masks, which opens only where enough members come.

Round by round: sealing keys, beside posted rows; shares of a mask, to every other member, and a second mask to the
aggregator's seat; the number under both masks; who came, as a digest; the shares of all masks that came, added up. The
sum opens for at least `least` members who saw the same. A greeting in the letters is for half of the members alone.

It adds no noise to the sum, so it protects no member from the sum itself: a toy.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import numpy as np
from attrs import frozen

from aggregator.protocols.contract import PartScore, ReportPart
from aggregator.protocols.tally import Tally
from anon.crypto.sealing_sizes import PUBLIC_KEY_SIZE
from anon.errors import InvalidValue, Malformed
from anon.ldp import NanoEpsilon, RandomBytes, RawCategory, build
from anon.protocols.board import BoardPage, Mail, Pages, longest_page, page_of, read_page
from anon.protocols.categories import label_category
from anon.protocols.charge import Charge, Measure
from anon.protocols.contract import DocumentArrived, Layout, Place, Record, Round
from anon.protocols.models.rows import PublishedRows
from anon.protocols.outgoing import OpenShares, SurveyAnswer
from anon.protocols.registry import ProtocolParts
from anon.protocols.words import PacketKind
from anon.study.cost import total_epsilon
from anon.study.designs import Design, Tables
from anon.study.manifest import LETTERS, POSTED, Manifest, Survey, Window
from anon.study.proposal import DesignSection, Proposal
from anon.study.slots import Row, Slot
from anon.text.sentences import Sentence, say
from anon.wire.cbor import decode, encode
from anon.wire.letters import AGGREGATOR
from anon.wire.packets import PublishedPacket
from peer.protocols.contract import Correspondence

NAME = "letters"
KEYS, ROWS, SHARES, VECTOR, CAME, OPENING = range(6)
KINDS = ("keys", "rows", "shares", "vector", "came", "opening")
ROUND_OF = (0, 0, 1, 2, 3, 4)
PRIME = 2**61 - 1
EPSILONS = (0, 20_000_000, 0, 10_000_000, 0, 0)
"""By survey, in 1e-9 of rho: a letter's loss is its protocol's to know, and no mechanism recomputes it."""
WIDTH = 8
"""Bytes of a number."""
MOST_ROWS = 4
NOTHING = b"\xff" * WIDTH
"""In place of a sum of shares, where nothing may be opened."""
SEAT: Place = ("seat", 3)
RESULT: Place = ("rows", 0)
GROUP: Place = ("group", 0)
IF = "the aggregator and too few members to open anything work together at most"
NOISE = build("krr", 2, NanoEpsilon(50_000_000))


@frozen
class Letters(DesignSection):
    least: int = 3


WORDS = {"kind": "An exact sum under masks.", "least": "The fewest members for whom it opens."}


def form(cards: Mapping[str, int], tables: Tables) -> None:
    if [[survey.kind for survey in surveys] for surveys in tables] != [[kind] for kind in KINDS]:
        raise InvalidValue("design: letters has six slots")


def numbers(data: bytes) -> list[int]:
    return [int.from_bytes(data[at : at + WIDTH], "big") % PRIME for at in range(0, len(data), WIDTH)]


def spelled(*values: int) -> bytes:
    return b"".join((value % PRIME).to_bytes(WIDTH, "big") for value in values)


def least_of(study: Manifest) -> int:
    return int(decode(study.part, "least"))


def members(pages: Pages) -> list[bytes]:
    """Those who told a key: the place in this list is the place of a share."""
    return list(pages[0].texts(KEYS))


def came(pages: Pages) -> list[bytes]:
    """Those whose masked number is there."""
    return list(pages[2].texts(VECTOR))


def digest_of(page: BoardPage) -> bytes:
    return hashlib.sha256(b"".join(packet.to_bytes() for packet in page.packets)).digest()


def agreed(study: Manifest, pages: Pages) -> bool:
    """True if enough members saw the same page of masked numbers as this one."""
    said = Counter(pages[3].texts(CAME).values())
    return said[digest_of(pages[2])] >= least_of(study)


def share_at(place: int, coefficients: Sequence[int]) -> int:
    return sum(number * pow(place + 1, power, PRIME) for power, number in enumerate(coefficients)) % PRIME


def at_zero(points: Mapping[int, int]) -> int:
    """The value at 0 of the polynomial through these points (Lagrange)."""
    total = 0
    for x, y in points.items():
        above = below = 1
        for other in points:
            if other != x:
                above, below = above * other % PRIME, below * (other - x) % PRIME
        total += y * above * pow(below, -1, PRIME)
    return total % PRIME


def opened(study: Manifest, pages: Pages) -> int | None:
    """The sum of the members' own masks. None below the threshold, and where the shares contradict each other."""
    order, least = members(pages), least_of(study)
    said = {order.index(tag) + 1: text for tag, text in pages[4].texts(OPENING).items() if tag in order}
    points = {place: numbers(text)[0] for place, text in said.items() if text != NOTHING}
    if len(points) < least:
        return None
    places = sorted(points)
    sums = {
        at_zero({place: points[place] for place in (*places[: least - 1], last)}) for last in places[least - 1 :]
    }
    return sums.pop() if len(sums) == 1 else None


@frozen
class Shared:
    name = NAME
    designs: ClassVar[Mapping[str, Design]] = {NAME: Design(Letters, form, WORDS)}

    def share_sizes(self, study: Manifest) -> tuple[int, ...]:
        return ()

    def windows(self, proposal: Proposal, settled: int) -> tuple[Window, ...]:
        length, gap = proposal.schedule.collect, proposal.schedule.settle
        starts = [settled + number * (length + gap) for number in range(5)]
        return tuple(Window(start, start + length) for start in starts)

    def lay_out(
        self, proposal: Proposal, windows: tuple[Window, ...], randbelow: Callable[[int], int]
    ) -> Layout:
        assert isinstance(proposal.design, Letters)
        seats = proposal.cohort.maximum
        asked = {
            KEYS: (0, LETTERS, 0, PUBLIC_KEY_SIZE),
            ROWS: (0, POSTED, EPSILONS[ROWS], 1 + MOST_ROWS * NOISE.report_size),
            SHARES: (seats, LETTERS, 0, 1),
            VECTOR: (0, LETTERS, EPSILONS[VECTOR], WIDTH),
            CAME: (0, LETTERS, 0, 32),
            OPENING: (0, LETTERS, 0, WIDTH),
        }
        surveys = tuple(
            Survey(
                number, KINDS[number], (), (), m, word, 0, 0, epsilon, windows[ROUND_OF[number]], ROUND_OF[number],
                size=size, parameters=(2 * WIDTH,) if m else (),
            )
            for number, (m, word, epsilon, size) in asked.items()
        )
        slots = tuple(Slot(number, (Row(number, 1),)) for number in range(6))
        return Layout(surveys, slots, encode(proposal.design.least))

    def check(self, study: Manifest) -> None:
        if not 2 <= least_of(study) <= study.cohort.minimum:
            raise Malformed("manifest: expected at least two members, and no more than its minimum; do not take part")
        if [survey.epsilon for survey in study.surveys] != list(EPSILONS):
            raise Malformed("manifest: its rounds cost something else than they take; do not take part")

    def exposure(self, design: Layout) -> Charge:
        return Charge(Measure.ZCDP, total_epsilon(design.surveys, design.slots), condition=IF)

    def per_attribute(self, design: Layout) -> NanoEpsilon:
        return NanoEpsilon(self.exposure(design).amount)

    def rounds(self, study: Manifest) -> tuple[Round, ...]:
        names = ("telling keys", "sharing masks", "sending", "saying who came", "opening")
        asked = [tuple(survey for survey in range(6) if ROUND_OF[survey] == number) for number in range(5)]
        windows = [study.survey(surveys[0]).window for surveys in asked]
        return tuple(
            Round(windows[number], name, name, asked[number], page_of(number), SEAT if number == 3 else None)
            for number, name in enumerate(names)
        )

    def documents(self, study: Manifest) -> Mapping[Place, int]:
        places: dict[Place, int] = {}
        for number, study_round in enumerate(self.rounds(study)):
            places[page_of(number)] = longest_page(study, study_round.surveys)
        return places | {SEAT: len(encode([bytes(32), bytes(WIDTH), bytes(WIDTH)]))}

    def circle(self, study: Manifest, survey: Survey, writer: bytes, pages: Pages) -> tuple[bytes, ...]:
        return (AGGREGATOR, *(tag for tag in members(pages) if tag != writer))[: survey.m] if 0 in pages else ()

    def results(self, study: Manifest) -> Mapping[Place, int]:
        return {RESULT: 6 * len(study.title) + 1000}

    def summary(self, study: Manifest) -> Sentence:
        return say("Your answer is added up under masks that members open together.")

    def title(self, study: Manifest, survey: Survey) -> str:
        return survey.kind

    def odds(self, study: Manifest) -> tuple[Sentence, ...]:
        return (say("Your exact answer leaves under a mask."),)

    def packet_kinds(self, study: Manifest) -> tuple[PacketKind, ...]:
        return ()

    def read_result(self, text_untrusted: str) -> PublishedRows:
        raise Malformed("model: rows have their own form")


@frozen
class Peer:
    def needs(self, manifest: Manifest, survey: int) -> tuple[Place, ...]:
        return ()

    def check_documents(self, manifest: Manifest, documents: Sequence[DocumentArrived]) -> None:
        for arrived in documents:
            if arrived.kind == SEAT[0] and len(decode(arrived.body, "seat")) != 3:
                raise Malformed("seat: expected three values; nothing is sent")

    def answers(
        self, manifest: Manifest, record: Record, slots: Sequence[tuple[int, int]], documents: Sequence[DocumentArrived]
    ) -> tuple[SurveyAnswer, ...]:
        return ()

    def random_size(self, manifest: Manifest, survey: Survey) -> int:
        if survey.survey == ROWS:
            return 1 + MOST_ROWS * NOISE.random_size
        return WIDTH * (least_of(manifest) + 2) if survey.survey == SHARES else 0

    def reads(self, manifest: Manifest, survey: Survey, tag: bytes, pages: Pages) -> bool:
        return survey.survey == VECTOR

    def letters(
        self,
        manifest: Manifest,
        survey: Survey,
        record: Record | None,
        known: Correspondence,
        documents: Sequence[DocumentArrived],
        random_bytes: RandomBytes,
    ) -> OpenShares:
        pages: Pages = known.pages
        match survey.survey:
            case 0:
                return OpenShares(b"", ())
            case 1:
                assert record is not None
                return OpenShares(_rows(label_category(manifest.label, record.label), random_bytes), ())
            case 2:
                return OpenShares(b"\0", _shares(manifest, survey, known, random_bytes))
            case 3:
                assert record is not None
                mask, second, *_ = _drawn(known)
                return OpenShares(spelled(label_category(manifest.label, record.label) + mask + second), ())
            case 4:
                return OpenShares(digest_of(pages[2]), ())
        return OpenShares(_added(manifest, known) if agreed(manifest, pages) else NOTHING, ())

    def received(
        self, manifest: Manifest, known: Correspondence, documents: Sequence[DocumentArrived]
    ) -> Mapping[Place, bytes]:
        """The greetings among the first half of the members, for each of that half."""
        half = members(known.pages)[: len(members(known.pages)) // 2]
        if known.tag not in half:
            return {}
        heard = [known.mail[SHARES, tag][WIDTH:].hex() for tag in half if (SHARES, tag) in known.mail]
        rows = tuple((text,) for text in sorted(heard))
        return {GROUP: PublishedRows(manifest.study_id.hex(), manifest.title, ("greeting",), rows).to_json().encode()}


def _rows(category: int, random_bytes: RandomBytes) -> bytes:
    """Of differing number, in one size."""
    many = 1 + random_bytes(1)[0] % MOST_ROWS
    said = [bytes(NOISE.perturb(RawCategory(category, 2), random_bytes)) for _ in range(MOST_ROWS)]
    return bytes([many]) + b"".join(said[:many]).ljust(MOST_ROWS * NOISE.report_size, b"\xff")


def _drawn(known: Correspondence) -> tuple[int, int, int, list[int]]:
    """Own mask, the one for the aggregator's seat, the greeting, and the polynomial of the first."""
    mask, second, greeting, *rest = numbers(known.own[SHARES])
    return mask, second, greeting, [mask, *rest]


def _shares(manifest: Manifest, survey: Survey, known: Correspondence, random_bytes: RandomBytes) -> tuple[bytes, ...]:
    mask, second, greeting, *rest = numbers(random_bytes(WIDTH * (least_of(manifest) + 2)))
    order = members(known.pages)
    circle = Shared().circle(manifest, survey, known.tag, known.pages)
    letters = [
        spelled(second, 0) if seat == AGGREGATOR else spelled(share_at(order.index(seat), [mask, *rest]), greeting)
        for seat in circle
    ]
    return tuple(letters) + (spelled(0, 0),) * (survey.m - len(letters))


def _added(manifest: Manifest, known: Correspondence) -> bytes:
    """The sum of the shares that this member holds of all masks that came; nothing where one did not reach it."""
    *_, polynomial = _drawn(known)
    total = 0
    for tag in came(known.pages):
        if tag == known.tag:
            total += share_at(members(known.pages).index(tag), polynomial)
        elif (SHARES, tag) in known.mail:
            total += numbers(known.mail[SHARES, tag])[0]
        else:
            return NOTHING
    return spelled(total)


@frozen
class Sum:
    rows: PublishedRows
    model: None = None

    @property
    def results(self) -> Mapping[Place, bytes]:
        return {RESULT: self.rows.to_json().encode()}


def pages_in(study: Manifest, documents: Mapping[Place, bytes]) -> dict[int, BoardPage]:
    return {part: read_page(study, part, body) for (kind, part), body in documents.items() if kind == "page"}


@frozen
class Aggregator:
    def tally(self, study: Manifest, survey: Survey, packets: Sequence[PublishedPacket], score_value: bytes) -> Tally:
        return np.zeros(0, dtype=np.int64)

    def ends(self, study: Manifest, number: int, documents: Mapping[Place, bytes]) -> bool:
        pages, least = pages_in(study, documents), least_of(study)
        if number == 3:
            return not agreed(study, pages)
        if number == 4:
            return opened(study, pages) is None
        survey = (KEYS, SHARES, VECTOR)[number]
        return len(pages[number].texts(survey)) < least

    def answered(
        self,
        study: Manifest,
        number: int,
        documents: Mapping[Place, bytes],
        mail: Mail,
        secret: bytes,
        random_bytes: Callable[[int], bytes],
    ) -> bytes:
        """The sum of the second masks of all that came, once enough members saw the same; a number of its own else."""
        pages = pages_in(study, documents)
        salt = bytes(mine ^ drawn for mine, drawn in zip(secret[:WIDTH], random_bytes(WIDTH), strict=True))
        total = sum(numbers(mail[SHARES, tag])[0] for tag in came(pages) if (SHARES, tag) in mail)
        return encode([study.study_id, spelled(total) if agreed(study, pages) else NOTHING, salt])

    def learn(self, study: Manifest, documents: Mapping[Place, bytes], tallies: Mapping[int, Tally]) -> Sum:
        pages = pages_in(study, documents)
        masks, second = opened(study, pages), numbers(decode(documents[SEAT], "seat")[1])[0]
        if masks is None:
            raise Malformed("letters: nothing can be opened")
        total = (sum(numbers(text)[0] for text in pages[2].texts(VECTOR).values()) - masks - second) % PRIME
        said = [text[0] for text in pages[0].texts(ROWS).values()]
        posted = str(sum(said))
        row = (str(total), str(len(came(pages))), posted)
        return Sum(PublishedRows(study.study_id.hex(), study.title, ("yes", "members", "posted"), (row,)))

    def part_scores(self, model: object) -> tuple[PartScore, ...]:
        return ()

    def estimate(self, study: object, survey: object, documents: object, tally: object, final: bool) -> None:
        return None

    def report(self, study: Manifest, learned: Sum) -> ReportPart:
        return ReportPart(
            '{% extends "report.html" %}{% block results %}<h2>The sum</h2>'
            "<p>{{ learned.rows.rows[0][0] }} say yes.</p>{% endblock %}"
        )


PROTOCOL = ProtocolParts(Shared(), Peer(), Aggregator())
