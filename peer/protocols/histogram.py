"""The histogram protocol's peer part: the category that answers each drawn survey, and how it is perturbed.

Pure. A slot waits until the documents its survey needs have arrived; then there is exactly one `SurveyAnswer` for it,
whatever the record holds. Thresholds and cuts are recomputed from published counts (design section 3, step 7).
"""

from __future__ import annotations

from collections.abc import Sequence

from anon.ldp import PerturbedReport, RandomBytes, RawCategory
from anon.protocols.contract import DocumentArrived, Place, Record
from anon.protocols.histogram import one_bit, thresholds
from anon.protocols.histogram.answers import answer_map
from anon.protocols.outgoing import SurveyAnswer
from anon.study.manifest import Manifest, Survey
from anon.values import frozen


@frozen
class HistogramPart:
    """See `peer.protocols.contract`."""

    def needs(self, manifest: Manifest, survey: int) -> tuple[Place, ...]:
        """See `PeerPart`."""
        return thresholds.needs(manifest, manifest.survey(survey))

    def check_documents(self, manifest: Manifest, documents: Sequence[DocumentArrived]) -> None:
        """See `PeerPart`."""
        published_in(manifest, documents)

    def answers(
        self,
        manifest: Manifest,
        record: Record,
        slots: Sequence[tuple[int, int]],
        documents: Sequence[DocumentArrived],
    ) -> tuple[SurveyAnswer, ...]:
        """See `PeerPart`."""
        published = published_in(manifest, documents)
        asked = [(slot, manifest.survey(survey)) for slot, survey in slots]
        return tuple(
            SurveyAnswer(slot, survey.survey, category_of(manifest, record, survey, published))
            for slot, survey in asked
            if all(before.survey in published for before in thresholds.asked_before(manifest, survey))
        )

    def random_size(self, manifest: Manifest, survey: Survey) -> int:
        """See `PeerPart`."""
        return one_bit.random_size(survey)

    def perturb(self, survey: Survey, answer: RawCategory, random_bytes: RandomBytes) -> PerturbedReport:
        """Rounded first where the survey asks for one bit, then perturbed."""
        return one_bit.perturb(survey, answer, random_bytes)


def published_in(manifest: Manifest, documents: Sequence[DocumentArrived]) -> thresholds.Published:
    """The answers in the documents; none in those of another kind. Raises `Malformed`."""
    published: dict[int, thresholds.RoundCounts] = {}
    for document in documents:
        if document.kind in ("thresholds", "edges"):
            published |= thresholds.parse(manifest, (document.kind, document.part), document.body)
    return published


def category_of(manifest: Manifest, record: Record, survey: Survey, published: thresholds.Published) -> RawCategory:
    """The answer to a survey whose documents have arrived. Total over records: the map is made before one is seen.

    That of a one-bit survey is a sign and a label (`anon.protocols.histogram.one_bit`), which `perturb` rounds.
    """
    return answer_map(manifest, survey, published)(record)
