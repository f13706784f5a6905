"""A second protocol in one file: how many say yes to the label's question, asked twice. docs/adding-a-protocol.md."""

from collections.abc import Callable, Mapping, Sequence
from json import dumps, loads
from typing import ClassVar

from attrs import field, frozen

from aggregator.protocols.contract import LearningResult, PartScore, ReportPart
from aggregator.protocols.estimates import Estimate, estimate
from aggregator.protocols.tally import Tally, tallied
from anon.errors import InvalidValue, Malformed
from anon.ldp import NanoEpsilon, PerturbedReport, RandomBytes, RawCategory, build, nano
from anon.protocols.categories import label_category
from anon.protocols.charge import Charge, local
from anon.protocols.contract import MODEL, DocumentArrived, Layout, Place, Record, Round, Value
from anon.protocols.models.published import ModelScore, PublishedModel
from anon.protocols.outgoing import SurveyAnswer
from anon.protocols.registry import ProtocolParts
from anon.protocols.words import PacketKind, mechanism_line, mechanism_odds, mechanism_picture
from anon.study.cost import total_epsilon
from anon.study.designs import Design, Tables
from anon.study.features import Feature, Label
from anon.study.manifest import Manifest, Survey, Window
from anon.study.proposal import MAX_EPSILON, DesignSection, Proposal, epsilon_in_range
from anon.study.slots import Row, Slot
from anon.study.structuring import make_converter, structure
from anon.text.foreign import Quoted
from anon.text.sentences import Sentence, say
from anon.wire.cbor import decode, encode
from anon.wire.packets import PublishedPacket

# The shared part


@frozen
class NoisyCount(DesignSection):
    epsilon: float = field(default=1.0, validator=epsilon_in_range)


WORDS = {"kind": "Two noisy counts of yes.", "epsilon": "The most that a member's two answers together give away."}

BOUNDS = {"epsilon": {"exclusiveMinimum": 0, "maximum": MAX_EPSILON}}


def form(cards: Mapping[str, int], tables: Tables) -> None:
    if [[survey.kind for survey in surveys] for surveys in tables] != [["first"], ["again"]]:
        raise InvalidValue("design: noisy-count asks once, and once again")


@frozen
class CountModel:
    protocol: str
    study: str
    title: str
    label: Label
    share: float
    features: tuple[Feature, ...] = ()
    threshold: float = 0.5
    chance: float | None = None
    shown: bool | None = None

    def predict(self, values: Mapping[str, Value]) -> ModelScore:
        return ModelScore(self.share, self.share >= self.threshold)

    def to_json(self) -> str:
        return dumps(make_converter().unstructure(self), sort_keys=True)


def document(study: Manifest, number: int, n: int, yes: int) -> bytes:
    return encode([study.study_id, number, n, yes])


def counts_in(study: Manifest, number: int, body_untrusted: bytes) -> tuple[int, int]:
    match decode(body_untrusted, "count"):
        case [study.study_id, read, int(n), int(yes)] if read == number and 0 <= yes <= n:
            return n, yes
    raise Malformed("count: not this study's counts; nothing is sent")


@frozen
class Shared:
    name = "noisy-count"
    designs: ClassVar[Mapping[str, Design]] = {"noisy-count": Design(NoisyCount, form, WORDS, BOUNDS)}

    def share_sizes(self, study: Manifest) -> tuple[int, ...]:
        return ()

    def windows(self, proposal: Proposal, settled: int) -> tuple[Window, ...]:
        length, gap = proposal.schedule.collect, proposal.schedule.settle
        return Window(settled, settled + length), Window(settled + length + gap, settled + 2 * length + gap)

    def lay_out(self, proposal: Proposal, windows: tuple[Window, ...], randbelow: Callable[[int], int]) -> Layout:
        assert isinstance(proposal.design, NoisyCount)
        made = build("krr", 2, NanoEpsilon(nano(proposal.design.epsilon) // 2))
        asked = [
            Survey(number, kind, (), (), 2, made.name, made.p, made.q, made.epsilon, windows[number], number)
            for number, kind in enumerate(("first", "again"))
        ]
        return Layout(tuple(asked), tuple(Slot(number, (Row(number, 1),)) for number in range(2)))

    def check(self, study: Manifest) -> None:
        if study.survey(1).window.opens <= study.survey(0).window.closes:
            raise Malformed("manifest: it asks again before it has counted; do not take part")

    def exposure(self, design: Layout) -> Charge:
        return local(total_epsilon(design.surveys, design.slots))

    def per_attribute(self, design: Layout) -> NanoEpsilon:
        return NanoEpsilon(total_epsilon(design.surveys, design.slots))

    def rounds(self, study: Manifest) -> tuple[Round, ...]:
        names = ("asking", "asking again")
        return tuple(
            Round(survey.window, names[survey.survey], names[survey.survey], (survey.survey,), ("count", survey.survey))
            for survey in study.surveys
        )

    def documents(self, study: Manifest) -> Mapping[Place, int]:
        most = study.cohort.maximum
        return {("count", number): len(document(study, number, most, most)) for number in range(2)}

    def results(self, study: Manifest) -> Mapping[Place, int]:
        return {MODEL: 6 * len(study.to_bytes()) + 400}

    def summary(self, study: Manifest) -> Sentence:
        label = Quoted(study.label.name)
        return say("You are asked about {label} twice; the second time, if most were right about you.", label=label)

    def title(self, study: Manifest, survey: Survey) -> str:
        return study.label.name if survey.kind == "first" else f"{study.label.name}: as most say"

    def odds(self, study: Manifest) -> tuple[Sentence, ...]:
        return (mechanism_odds(study.survey(0).build()),)

    def packet_kinds(self, study: Manifest) -> tuple[PacketKind, ...]:
        def kind(survey: Survey) -> PacketKind:
            made = survey.build()
            asks, line, picture = (self.title(study, survey),), mechanism_line(made), mechanism_picture(made)
            return PacketKind(survey, asks, say("one of your two packets"), say("a yes or a no"), (line,), picture)

        return tuple(kind(survey) for survey in study.surveys)

    def read_result(self, text_untrusted: str) -> CountModel:
        return structure(make_converter(), loads(text_untrusted), CountModel, "model")


# The peer's part


@frozen
class Peer:
    def needs(self, manifest: Manifest, survey: int) -> tuple[Place, ...]:
        return (("count", 0),) if survey == 1 else ()

    def check_documents(self, manifest: Manifest, documents: Sequence[DocumentArrived]) -> None:
        for arrived in documents:
            counts_in(manifest, arrived.part, arrived.body)

    def answers(
        self, manifest: Manifest, record: Record, slots: Sequence[tuple[int, int]], documents: Sequence[DocumentArrived]
    ) -> tuple[SurveyAnswer, ...]:
        counted = [counts_in(manifest, 0, arrived.body) for arrived in documents if arrived.part == 0]
        yes = label_category(manifest.label, record.label)
        said = {0: yes}
        for n, ayes in counted:
            said[1] = int(yes == (2 * ayes > n))
        asked = [(slot, survey) for slot, survey in slots if survey in said]
        return tuple(SurveyAnswer(slot, survey, RawCategory(said[survey], 2)) for slot, survey in asked)

    def random_size(self, manifest: Manifest, survey: Survey) -> int:
        return survey.build().random_size

    def perturb(self, survey: Survey, answer: RawCategory, random_bytes: RandomBytes) -> PerturbedReport:
        return survey.build().perturb(answer, random_bytes)


# The aggregator's part


@frozen
class Counts:
    model: CountModel

    @property
    def results(self) -> Mapping[Place, bytes]:
        return {MODEL: self.model.to_json().encode()}


@frozen
class Aggregator:
    def tally(self, study: Manifest, survey: Survey, packets: Sequence[PublishedPacket], score_value: bytes) -> Tally:
        return tallied(survey, [packet.report for packet in packets])

    def counted(self, study: Manifest, number: int, tallies: Mapping[int, Tally]) -> bytes:
        return document(study, number, int(tallies[number][0]), int(tallies[number][2]))

    def learn(self, study: Manifest, documents: Mapping[Place, bytes], tallies: Mapping[int, Tally]) -> Counts:
        (n, yes), (again, agree) = [counts_in(study, number, documents["count", number]) for number in range(2)]
        first, second = (
            study.survey(0).build().unbias((total - ayes, ayes), total)[1] / max(total, 1)
            for total, ayes in ((n, yes), (again, agree))
        )
        share = min(max((first + (second if 2 * yes > n else 1 - second)) / 2, 0.0), 1.0)
        return Counts(CountModel("noisy-count", study.study_id.hex(), study.title, study.label, share))

    def part_scores(self, model: PublishedModel) -> tuple[PartScore, ...]:
        return ()

    def estimate(
        self, study: Manifest, survey: Survey, documents: Mapping[Place, bytes], tally: Tally, final: bool
    ) -> Estimate | None:
        return estimate(survey, Shared().title(study, survey), ["yes"], tally, final) if tally[0] else None

    def report(self, study: Manifest, learned: LearningResult) -> ReportPart:
        return ReportPart(
            '{% extends "report.html" %}{% block results %}'
            '<h2>The count</h2><p>{{ "%.3f" | format(model.share) }} say yes.</p>{% endblock %}'
        )


PROTOCOL = ProtocolParts(Shared(), Peer(), Aggregator())
