"""The histogram protocol's aggregator part: binning rounds, then collection, whose reports are learned from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files

import numpy as np
from attrs import frozen

from aggregator.protocols.additive.results import LearnedStudy
from aggregator.protocols.contract import LearningResult, PartScore, ReportPart
from aggregator.protocols.estimates import Estimate, estimate
from aggregator.protocols.histogram.category_names import can_be_named, category_names
from aggregator.protocols.tally import Tally, tallied
from anon.protocols.contract import Place
from anon.protocols.histogram import thresholds
from anon.protocols.histogram.asked import asks_label
from anon.protocols.histogram.describe import survey_title
from anon.protocols.histogram.thresholds import RoundCounts, known_shares, parse_all, study_cuts, surveys_of_round
from anon.protocols.models.published import PublishedModel
from anon.protocols.models.tables import Model
from anon.protocols.sortition import in_score_cohort
from anon.study.manifest import Manifest, Survey
from anon.wire.packets import TAG_BYTES, PublishedPacket


@frozen
class HistogramPart:
    """See `aggregator.protocols.contract`."""

    def tally(self, study: Manifest, survey: Survey, packets: Sequence[PublishedPacket], score_value: bytes) -> Tally:
        """See `AggregatorPart`. Of a histogram survey two rows: of the packets that train, and of those that score."""
        if survey.kind != "histogram":
            return tallied(survey, [packet.report for packet in packets])
        share = study.learning.score_share
        train, score = list[bytes](), list[bytes]()
        for packet in packets:
            scores = in_score_cohort(score_value, packet.token[:TAG_BYTES], share)
            (score if scores else train).append(packet.report)
        return np.stack([tallied(survey, train), tallied(survey, score)])

    def counted(self, study: Manifest, number: int, tallies: Mapping[int, Tally]) -> bytes:
        """The round's counts, from which everyone computes the next thresholds, or after the last round the cuts."""
        turn = sorted({one.round for one in study.surveys if not asks_label(one)})[number]
        answers = {one.survey: count(one, tallies[one.survey]) for one in surveys_of_round(study, turn)}
        return thresholds.body(study, turn, answers)

    def learn(self, study: Manifest, documents: Mapping[Place, bytes], tallies: Mapping[int, Tally]) -> LearnedStudy:
        """The model, saying how far it is from noise."""
        from aggregator.protocols.histogram.cohorts import learn_study  # late: a server starts without it

        answers = parse_all(study, documents)
        shares = known_shares(study, answers)
        return learn_study(study, study_cuts(study, answers), tallies, shares).telling()

    def part_scores(self, model: PublishedModel) -> tuple[PartScore, ...]:
        """The scores of the model's tables."""
        tables = model.tables if isinstance(model, Model) else ()
        return tuple(PartScore(" × ".join(one.features), one.reports, one.auc, one.f1) for one in tables)

    def estimate(
        self, study: Manifest, survey: Survey, documents: Mapping[Place, bytes], tally: Tally, final: bool
    ) -> Estimate | None:
        """See `AggregatorPart`."""
        published: dict[int, RoundCounts] = {}
        for place, body in documents.items():
            published |= thresholds.parse(study, place, body)
        whole = tally.sum(axis=0) if survey.kind == "histogram" else tally
        if not whole[0] or not can_be_named(study, survey, published):
            return None
        names = category_names(study, survey, published)
        return estimate(survey, survey_title(study, survey), names, whole, final)

    def report(self, study: Manifest, learned: LearningResult) -> ReportPart:
        """Tables with their scores, effects, estimates and methods."""
        from aggregator.protocols.additive.report import values_of

        if not isinstance(learned, LearnedStudy):
            raise TypeError(f"not learned by the histogram protocol: {type(learned).__name__}")
        template = files("aggregator.protocols.histogram").joinpath("report.html").read_text("utf-8")
        return ReportPart(template, values_of(study, learned))


def count(survey: Survey, tally: Tally) -> RoundCounts:
    """The answers to one binning survey."""
    n, *counts = tally.tolist()
    return RoundCounts.of(survey, n, counts)
