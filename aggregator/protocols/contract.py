"""The contract of a protocol's aggregator part. Pure: published bytes in, documents and figures out.

All but `answered` follows from published documents alone, so that the audit repeats it: `tally` of all packets, for
every round that has a document `counted`, or `check_sums` where a study's tellers made it, then `learn`.

No part sees all packets at once. They come in pieces of any size, and what `tally` counts in the pieces is added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

from attrs import field, frozen

from aggregator.protocols.estimates import Estimate
from aggregator.protocols.tally import Tally
from anon.errors import Malformed
from anon.protocols.contract import Place
from anon.protocols.models.published import PublishedModel
from anon.protocols.registry import parts_of
from anon.study.manifest import Manifest, Survey
from anon.wire.packets import PublishedPacket

if TYPE_CHECKING:
    from anon.protocols.board import Mail



@frozen
class PartScore:
    """A part of the published model, and its scores on reports that took no part in fitting it."""

    features: str
    reports: int
    auc: float
    f1: float


@frozen
class ReportPart:
    """A protocol's share of the report: a template that extends "report.html" and fills its blocks, and its values.

    The page offers the template the charts `bars` and `intervals` (`aggregator.report.charts`).
    """

    template: str
    values: Mapping[str, object] = field(factory=dict)


class LearningResult(Protocol):
    """The outcome of learning, and whatever its report needs besides."""

    @property
    def model(self) -> PublishedModel | None:
        """The model that the report describes and test people are scored by; None where no model is learned."""

    @property
    def results(self) -> Mapping[Place, bytes]:
        """The body of every published result, at the places that `SharedPart.results` names."""


class AggregatorPart(Protocol):
    """The part that runs at the aggregator and, for everything published, in the audit. One whose rounds have documents
    other than pages is a `CountingPart` or a `SummingPart`."""

    def tally(self, study: Manifest, survey: Survey, packets: Sequence[PublishedPacket], score_value: bytes) -> Tally:
        """All that learning, and the document of the survey's round, need of some accepted packets of a survey. The
        integers of parts of the packets add up to those of all; without a packet they are zero.

        `score_value`: draws the packets that only score; empty before it is revealed, when nothing is learned yet.
        """

    def learn(self, study: Manifest, documents: Mapping[Place, bytes], tallies: Mapping[int, Tally]) -> LearningResult:
        """The results that these determine. `documents`: those given and those of the rounds; `tallies`: of each
        survey's packets. Raises `Malformed` for documents that do not fit together."""

    def part_scores(self, model: PublishedModel) -> tuple[PartScore, ...]:
        """The scores of a published model's parts; none where the protocol has no such scores."""

    def estimate(
        self, study: Manifest, survey: Survey, documents: Mapping[Place, bytes], tally: Tally, final: bool
    ) -> Estimate | None:
        """The desk's estimate from the accepted packets of a survey, given the rounds' documents that are published.
        None without packets, and while what the survey asks is not published."""

    def report(self, study: Manifest, learned: LearningResult) -> ReportPart:
        """The protocol's share of the report."""


@runtime_checkable
class CountingPart(AggregatorPart, Protocol):
    """The part of a protocol whose rounds are counted from their reports by anybody."""

    def counted(self, study: Manifest, number: int, tallies: Mapping[int, Tally]) -> bytes:
        """The document published after round `number`, from the tallies of its surveys. Asked only where the round has
        a document."""


@runtime_checkable
class SummingPart(AggregatorPart, Protocol):
    """The part of a protocol whose rounds are summed by the study's tellers (`anon.sharing`). A round's document is
    that of `anon.sharing.round_document`: nobody can make it again, and everybody can check it."""

    def check_sums(
        self,
        study: Manifest,
        number: int,
        body_untrusted: bytes,
        members: int,
        tags: Mapping[int, Sequence[bytes]] | None,
    ) -> Mapping[int, int]:
        """By survey of round `number`, how many of its published packets its sum leaves out; empty without `tags`.

        `members`: those of the roster; `tags`: by survey, those of its transcript, None where none is published yet.
        Raises `Malformed` or `RejectedProof` for a document that does not verify, or whose list is longer than the
        roster or names a tag that no transcript has."""


@runtime_checkable
class SeatedPart(AggregatorPart, Protocol):
    """The part of a protocol in which the aggregator itself answers members, with secrets of its own."""

    def answered(
        self,
        study: Manifest,
        number: int,
        documents: Mapping[Place, bytes],
        mail: Mail,
        secret: bytes,
        random_bytes: Callable[[int], bytes],
    ) -> bytes:
        """The document that the seat publishes after round `number`. `documents`: those given, and of all rounds so
        far; `mail`: the letters to the seat. `secret`: 32 bytes that the seat keeps for the whole study.
        `random_bytes`: any number of the seat's own, the same for the same round. No audit can make it again. Raises
        nothing on account of members' texts."""


@runtime_checkable
class EndingPart(AggregatorPart, Protocol):
    """The part of a protocol in which a round may not suffice: too few came, and nothing may be opened."""

    def ends(self, study: Manifest, number: int, documents: Mapping[Place, bytes]) -> bool:
        """True if the study ends after round `number`, given the documents of all rounds so far. The audit asks too."""


def part_of(manifest: Manifest) -> AggregatorPart:
    """The part of the study's protocol. Raises `Malformed` where the program has none."""
    if (part := parts_of(manifest).aggregator) is None:
        raise Malformed(f"manifest: protocol {manifest.protocol!r} cannot be run here; update this program")
    return cast(AggregatorPart, part)
