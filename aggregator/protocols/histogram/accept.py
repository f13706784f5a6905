"""From accepted packets to the tallies that learning needs, and to the model: pure functions of published bytes.

Whoever holds manifest, binning documents, transcripts and the revealed score value computes the same, as
`aggregator.audit` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from aggregator.protocols.histogram.ensemble import LearnedStudy, Subject, learn
from aggregator.protocols.histogram.reconstruct import SurveyTally
from aggregator.protocols.histogram.tally import tally
from anon.messages import Packet, parse_packet
from anon.protocols.histogram.tables import in_score_cohort
from anon.study.manifest import Manifest, Survey

_TAG_BYTES = 48


@frozen
class Cohorts:
    """The tallies of the disjoint cohorts: one that trains, one that only scores. One entry per histogram survey."""

    train: tuple[SurveyTally, ...]
    score: tuple[SurveyTally, ...]


def tally_cohorts(manifest: Manifest, score_value: bytes, packets: Mapping[int, Sequence[bytes]]) -> Cohorts:
    """The tallies of both cohorts. `packets`: plaintexts per survey; surveys without any count as empty."""
    train, score = [], []
    for survey in manifest.surveys:
        if survey.kind == "histogram":
            parsed = [parse_packet(one) for one in packets.get(survey.survey, ())]
            share = manifest.learning.score_share
            scoring = [in_score_cohort(score_value, one.token[:_TAG_BYTES], share) for one in parsed]
            train.append(_tally(survey, [one for one, takes in zip(parsed, scoring, strict=True) if not takes]))
            score.append(_tally(survey, [one for one, takes in zip(parsed, scoring, strict=True) if takes]))
    return Cohorts(tuple(train), tuple(score))


def learn_study(
    manifest: Manifest,
    cuts: Mapping[str, tuple[float, ...]],
    score_value: bytes,
    packets: Mapping[int, Sequence[bytes]],
) -> LearnedStudy:
    """The model and what stands behind it."""
    cohorts = tally_cohorts(manifest, score_value, packets)
    subject = Subject(manifest.study_id.hex(), manifest.title, manifest.label, manifest.features, cuts)
    return learn(subject, cohorts.train, cohorts.score, manifest.learning)


def _tally(survey: Survey, packets: Sequence[Packet]) -> SurveyTally:
    mechanism = survey.build()
    counts = tally(mechanism, [mechanism.parse(packet.report) for packet in packets])
    return SurveyTally(survey.survey, survey.features, survey.cards, mechanism, counts, len(packets))
