"""A protocol that finds a median: three rounds of one yes/no each halve the eight bins of a feature. No model, one row.

Each round asks if the member's own bin is in the upper half of those that are left. The rest follows from the
counts of the rounds before, and from nothing else.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from attrs import field, frozen

from aggregator.protocols.contract import LearningResult, ReportPart
from aggregator.protocols.estimates import Estimate, estimate
from aggregator.protocols.tally import Tally
from anon.errors import InvalidValue, Malformed
from anon.ldp import NanoEpsilon, RawCategory, build, nano
from anon.protocols.categories import feature_category
from anon.protocols.contract import DocumentArrived, Layout, Place, Record, Result, Round
from anon.protocols.models.rows import PublishedRows
from anon.protocols.outgoing import SurveyAnswer
from anon.protocols.registry import ProtocolParts
from anon.protocols.words import PacketKind, mechanism_line, mechanism_picture
from anon.study.cost import attribute_epsilon
from anon.study.designs import Design, Tables
from anon.study.features import Feature
from anon.study.manifest import Manifest, Survey, Window
from anon.study.proposal import DesignSection, Proposal, epsilon_in_range
from anon.study.slots import Row, Slot
from anon.text.foreign import Quoted
from anon.text.sentences import Sentence, say
from anon.wire.cbor import decode
from tests.support import noisy_count
from tests.support.noisy_count import document

NAME = "halving"
ROUNDS = 3
BINS = 2**ROUNDS
NAMES = ("first half", "second half", "third half")
ROWS: Place = ("rows", 0)
REPORT = """{% extends "report.html" %}
{% block declared %}The median of {{ manifest.features[0].name }} is above {{ learned.rows.rows[0][1] }}, up to {{
    learned.rows.rows[0][2] }}.{% endblock %}
{% block results %}<h2>The median</h2>{{ learned.rows.rows[0] | join(", ") }}{% endblock %}"""

# The shared part


@frozen
class Halving(DesignSection):
    epsilon: float = field(default=3.0, validator=epsilon_in_range)

    def demand(self, proposal: Proposal) -> None:
        if len(proposal.features) != 1:
            raise InvalidValue("features: halving finds the median of one feature")
        demand_halves(proposal.features[0])


WORDS = {
    "kind": "Three noisy yes/no questions that halve a range.",
    "epsilon": "The most that a member's three answers together give away.",
}
BOUNDS = {"epsilon": {"exclusiveMinimum": 0, "maximum": 20}}


def demand_halves(feature: Feature) -> None:
    if len(feature.cuts) != BINS - 1 or feature.missing == "own":
        raise InvalidValue(f"features: halving needs {BINS - 1} cuts, and a number that a missing value counts as")


def form(cards: Mapping[str, int], tables: Tables) -> None:
    asked = [[(one.kind, one.features, one.cards, one.m, one.mechanism) for one in surveys] for surveys in tables]
    if asked != [[("upper", (name,), (BINS,), 2, "krr")] for name in cards for _ in range(ROUNDS)] or set(
        cards.values()
    ) != {BINS}:
        raise InvalidValue("design: halving asks three times for the upper half of one feature's eight bins")


def upper_in(study: Manifest, number: int, body_untrusted: bytes) -> bool:
    """True if most of a round said yes."""
    match decode(body_untrusted, "halves"):
        case [study.study_id, read, int(n), int(yes)] if read == number and 0 <= yes <= n <= study.cohort.maximum:
            return 2 * yes > n
    raise Malformed("halves: not this study's counts; nothing is sent")


def left(halves: Sequence[bool]) -> tuple[int, int]:
    """The first bin that is left after these rounds, and how many are."""
    first, many = 0, BINS
    for upper in halves:
        many //= 2
        first += many * upper
    return first, many


def median(study: Manifest, found: int) -> PublishedRows:
    (feature,) = study.features
    edges = (feature.range[0], *feature.cuts, feature.range[1])
    row = (feature.name, f"{edges[found]:g}", f"{edges[found + 1]:g}")
    return PublishedRows(study.study_id.hex(), study.title, ("feature", "above", "up to"), (row,))


@frozen
class Shared(noisy_count.Shared):
    name = NAME
    designs: ClassVar[Mapping[str, Design]] = {NAME: Design(Halving, form, WORDS, BOUNDS)}

    def windows(self, proposal: Proposal, settled: int) -> tuple[Window, ...]:
        length = proposal.schedule.collect
        starts = [settled + number * (length + proposal.schedule.settle) for number in range(ROUNDS)]
        return tuple(Window(start, start + length) for start in starts)

    def lay_out(self, proposal: Proposal, windows: tuple[Window, ...], randbelow: Callable[[int], int]) -> Layout:
        assert isinstance(proposal.design, Halving)
        made = build("krr", 2, NanoEpsilon(nano(proposal.design.epsilon) // ROUNDS))
        names = (proposal.features[0].name,)
        surveys = tuple(
            Survey(number, "upper", names, (BINS,), 2, made.name, made.p, made.q, made.epsilon, window, number)
            for number, window in enumerate(windows)
        )
        return Layout(surveys, tuple(Slot(number, (Row(number, 1),)) for number in range(ROUNDS)))

    def check(self, study: Manifest) -> None:
        try:
            demand_halves(study.features[0])
        except InvalidValue as fault:
            raise Malformed(f"manifest: {fault}; do not take part") from None
        for before, after in zip(study.surveys, study.surveys[1:], strict=False):
            if after.window.opens <= before.window.closes or after.round != before.round + 1:
                raise Malformed("manifest: it asks again before it has counted; do not take part")

    def per_attribute(self, design: Layout) -> NanoEpsilon:
        return NanoEpsilon(attribute_epsilon(design.surveys, design.slots, lambda _survey: False))

    def rounds(self, study: Manifest) -> tuple[Round, ...]:
        return tuple(
            Round(one.window, NAMES[one.survey], NAMES[one.survey], (one.survey,), ("half", one.survey))
            for one in study.surveys
        )

    def documents(self, study: Manifest) -> Mapping[Place, int]:
        most = study.cohort.maximum
        return {("half", number): len(document(study, number, most, most)) for number in range(ROUNDS)}

    def results(self, study: Manifest) -> Mapping[Place, int]:
        return {ROWS: max(len(median(study, found).to_json().encode()) for found in range(BINS))}

    def summary(self, study: Manifest) -> Sentence:
        name = Quoted(study.features[0].name)
        return say(
            "You are asked three times about {feature}, each time if you are in the upper half of what is left.",
            feature=name,
        )

    def title(self, study: Manifest, survey: Survey) -> Sentence:
        return say("{feature}: half number {number}", feature=Quoted(survey.features[0]), number=survey.survey + 1)

    def packet_kinds(self, study: Manifest) -> tuple[PacketKind, ...]:
        made = study.survey(0).build()
        asks = tuple(self.title(study, survey) for survey in study.surveys)
        line, picture = mechanism_line(made), mechanism_picture(made)
        return (
            PacketKind(
                study.survey(0), asks, say("each of your three packets"), say("a yes or a no"), (line,), picture
            ),
        )

    def read_result(self, text_untrusted: str) -> Result:
        raise Malformed("model: halving publishes rows alone")


# The peer's part


@frozen
class Peer(noisy_count.Peer):
    def needs(self, manifest: Manifest, survey: int) -> tuple[Place, ...]:
        return tuple(("half", number) for number in range(survey))

    def check_documents(self, manifest: Manifest, documents: Sequence[DocumentArrived]) -> None:
        for arrived in documents:
            upper_in(manifest, arrived.part, arrived.body)

    def answers(
        self, manifest: Manifest, record: Record, slots: Sequence[tuple[int, int]], documents: Sequence[DocumentArrived]
    ) -> tuple[SurveyAnswer, ...]:
        halves = [
            upper_in(manifest, arrived.part, arrived.body) for arrived in sorted(documents, key=lambda one: one.part)
        ]
        (feature,) = manifest.features
        own = feature_category(feature, record.values.get(feature.name), feature.cuts)

        def upper(survey: int) -> RawCategory:
            first, many = left(halves[:survey])
            return RawCategory(int(own >= first + many // 2), 2)

        return tuple(SurveyAnswer(slot, survey, upper(survey)) for slot, survey in slots if survey <= len(halves))


# The aggregator's part


@frozen
class Found:
    rows: PublishedRows
    model: None = None

    @property
    def results(self) -> Mapping[Place, bytes]:
        return {ROWS: self.rows.to_json().encode()}


@frozen
class Aggregator(noisy_count.Aggregator):
    def learn(self, study: Manifest, documents: Mapping[Place, bytes], tallies: Mapping[int, Tally]) -> Found:
        found, _one = left([upper_in(study, number, documents["half", number]) for number in range(ROUNDS)])
        return Found(median(study, found))

    def estimate(
        self, study: Manifest, survey: Survey, documents: Mapping[Place, bytes], tally: Tally, final: bool
    ) -> Estimate | None:
        asked = all(("half", number) in documents for number in range(survey.survey))
        return (
            estimate(survey, Shared().title(study, survey), ["upper half"], tally, final)
            if asked and tally[0]
            else None
        )

    def report(self, study: Manifest, learned: LearningResult) -> ReportPart:
        return ReportPart(REPORT)


PROTOCOL = ProtocolParts(Shared(), Peer(), Aggregator())
