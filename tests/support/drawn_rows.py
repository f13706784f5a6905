"""A protocol whose results are a model and rows: made-up people, drawn from noisy counts of the label's class.

The classes are those of a given document, a JSON list of texts that everybody reads. A member's answer is the place of
its own class. The rows are drawn by what the transcript says alone, so that the audit draws the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from json import loads
from typing import ClassVar

from attrs import frozen

from aggregator.protocols.contract import LearningResult, PartScore, ReportPart
from aggregator.protocols.estimates import Estimate
from aggregator.protocols.tally import Tally, tallied
from anon.errors import InvalidValue, Malformed
from anon.ldp import PerturbedReport, RandomBytes, RawCategory, build, nano
from anon.protocols.contract import MODEL, DocumentArrived, Layout, Place, Record, Round
from anon.protocols.models.published import PublishedModel
from anon.protocols.models.rows import PublishedRows
from anon.protocols.outgoing import SurveyAnswer
from anon.protocols.registry import ProtocolParts
from anon.protocols.words import PacketKind, mechanism_line, mechanism_picture
from anon.study.designs import Design, Tables
from anon.study.manifest import Manifest, Survey, Window
from anon.study.proposal import DesignSection, Proposal
from anon.study.slots import Row, Slot
from anon.wire.packets import PublishedPacket
from tests.support import noisy_count
from tests.support.noisy_count import CountModel

NAME = "rows"
GIVEN: Place = ("given", 0)
ROWS: Place = ("rows", 0)
MADE_UP = 50
"""Rows that are drawn."""


@frozen
class Rows(DesignSection):
    takes_given: ClassVar[bool] = True
    epsilon: float = 1.0
    classes: int = 2


WORDS = {"kind": "Rows drawn from noisy counts.", "epsilon": "The cost of an answer.", "classes": "How many are given."}


def form(cards: Mapping[str, int], tables: Tables) -> None:
    if [[survey.kind for survey in surveys] for surveys in tables] != [["class"]]:
        raise InvalidValue("design: rows asks once for the class")


def classes_in(study: Manifest, body_untrusted: bytes) -> list[str]:
    """The given classes. Raises `Malformed` where they are not as many as the study asks about."""
    try:
        named = loads(body_untrusted)
    except ValueError:
        named = None
    if (
        not isinstance(named, list)
        or len(named) != study.survey(0).m
        or not all(isinstance(text, str) for text in named)
    ):
        raise Malformed("given: expected a list of the study's classes; nothing is sent")
    return named


@frozen
class Shared(noisy_count.Shared):
    name = NAME
    designs: ClassVar[Mapping[str, Design]] = {NAME: Design(Rows, form, WORDS)}

    def windows(self, proposal: Proposal, settled: int) -> tuple[Window, ...]:
        return (Window(settled, settled + proposal.schedule.collect),)

    def lay_out(self, proposal: Proposal, windows: tuple[Window, ...], randbelow: Callable[[int], int]) -> Layout:
        assert isinstance(proposal.design, Rows)
        made = build("krr", proposal.design.classes, nano(proposal.design.epsilon))
        asked = Survey(0, "class", (), (), made.m, made.name, made.p, made.q, made.epsilon, windows[0])
        return Layout((asked,), (Slot(0, (Row(0, 1),)),))

    def check(self, study: Manifest) -> None:
        if len(study.given) != 1:
            raise Malformed("manifest: rows read one given document; do not take part")

    def rounds(self, study: Manifest) -> tuple[Round, ...]:
        return (Round(study.survey(0).window, "collecting", "collection", (0,)),)

    def documents(self, study: Manifest) -> Mapping[Place, int]:
        return {}

    def results(self, study: Manifest) -> Mapping[Place, int]:
        longest = 6 * len(study.to_bytes()) + 400
        return {MODEL: longest, ROWS: longest + MADE_UP * (6 * study.given[0].length + 9)}

    def title(self, study: Manifest, survey: Survey) -> str:
        return study.label.name

    def packet_kinds(self, study: Manifest) -> tuple[PacketKind, ...]:
        made = study.survey(0).build()
        line, picture = mechanism_line(made), mechanism_picture(made)
        return (PacketKind(study.survey(0), (study.label.name,), "your packet", "your class", (line,), picture),)


@frozen
class Peer:
    def needs(self, manifest: Manifest, survey: int) -> tuple[Place, ...]:
        return (GIVEN,)

    def check_documents(self, manifest: Manifest, documents: Sequence[DocumentArrived]) -> None:
        for arrived in documents:
            classes_in(manifest, arrived.body)

    def answers(
        self, manifest: Manifest, record: Record, slots: Sequence[tuple[int, int]], documents: Sequence[DocumentArrived]
    ) -> tuple[SurveyAnswer, ...]:
        named = next((classes_in(manifest, arrived.body) for arrived in documents), [])
        place = named.index(str(record.label)) if str(record.label) in named else 0
        return tuple(SurveyAnswer(slot, survey, RawCategory(place, len(named))) for slot, survey in slots)

    def random_size(self, manifest: Manifest, survey: Survey) -> int:
        return survey.build().random_size

    def perturb(self, survey: Survey, answer: RawCategory, random_bytes: RandomBytes) -> PerturbedReport:
        return survey.build().perturb(answer, random_bytes)


@frozen
class ModelAndRows:
    model: CountModel
    rows: PublishedRows

    @property
    def results(self) -> Mapping[Place, bytes]:
        return {MODEL: self.model.to_json().encode(), ROWS: self.rows.to_json().encode()}


@frozen
class Aggregator:
    def tally(self, study: Manifest, survey: Survey, packets: Sequence[PublishedPacket], score_value: bytes) -> Tally:
        return tallied(survey, [packet.report for packet in packets])

    def learn(
        self, study: Manifest, documents: Mapping[Place, bytes], tallies: Mapping[int, Tally]
    ) -> LearningResult:
        named, (n, *counts) = classes_in(study, documents[GIVEN]), tallies[0].tolist()
        found = [max(count, 0.0) for count in study.survey(0).build().unbias(counts, n)]
        weights = [round(1000 * count) + 1 for count in found]
        stream = int.from_bytes(hashlib.shake_256(study.study_id + repr(counts).encode()).digest(8 * MADE_UP), "big")
        drawn = []
        for _ in range(MADE_UP):
            stream, place = divmod(stream, sum(weights))
            drawn.append(next(text for at, text in enumerate(named) if place < sum(weights[: at + 1])))
        rows = PublishedRows(study.study_id.hex(), study.title, (study.label.name,), tuple((text,) for text in drawn))
        share = weights[-1] / sum(weights)
        return ModelAndRows(CountModel(NAME, study.study_id.hex(), study.title, study.label, share), rows)

    def part_scores(self, model: PublishedModel) -> tuple[PartScore, ...]:
        return ()

    def estimate(
        self, study: Manifest, survey: Survey, documents: Mapping[Place, bytes], tally: Tally, final: bool
    ) -> Estimate | None:
        return None

    def report(self, study: Manifest, learned: LearningResult) -> ReportPart:
        return ReportPart(
            '{% extends "report.html" %}{% block results %}<h2>Rows</h2>{{ learned.rows.rows | length }}{% endblock %}'
        )


PROTOCOL = ProtocolParts(Shared(), Peer(), Aggregator())
