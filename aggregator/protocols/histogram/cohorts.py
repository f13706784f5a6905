"""From accepted packets to the tallies that learning needs, and to the model: pure functions of published bytes.

Anybody with manifest, binning documents, transcripts and the revealed score value computes the same, as
`aggregator.audit` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from aggregator.protocols.histogram.ensemble import LearnedStudy, Subject, learn
from aggregator.protocols.histogram.moments import BitTally
from aggregator.protocols.histogram.reconstruct import Counts, SurveyTally
from aggregator.protocols.tally import tally
from anon.ldp import SCALE, Mechanism
from anon.protocols.histogram.asked import asks_score
from anon.protocols.sortition import in_score_cohort
from anon.study.manifest import Manifest, Survey
from anon.wire.published import Published, parse

_TAG_BYTES = 48


@frozen
class Cohorts:
    """The tallies of the disjoint cohorts: one that trains, one that only scores. One entry per histogram survey.

    One-bit surveys have no scoring cohort: all their reports train.
    """

    train: tuple[SurveyTally, ...]
    score: tuple[SurveyTally, ...]
    bits: tuple[BitTally, ...] = ()


def tally_cohorts(manifest: Manifest, score_value: bytes, packets: Mapping[int, Sequence[bytes]]) -> Cohorts:
    """The tallies of both cohorts. `packets`: plaintexts per survey; surveys without any count as empty."""
    train, score, bits = [], [], []
    for survey in manifest.surveys:
        if survey.kind == "histogram":
            parsed = [parse(one) for one in packets.get(survey.survey, ())]
            share = manifest.learning.score_share
            scoring = [in_score_cohort(score_value, one.token[:_TAG_BYTES], share) for one in parsed]
            train.append(_tally(survey, [one for one, takes in zip(parsed, scoring, strict=True) if not takes]))
            score.append(_tally(survey, [one for one, takes in zip(parsed, scoring, strict=True) if takes]))
        elif survey.kind == "bit":
            bits.append(_bit_tally(survey, [parse(one) for one in packets.get(survey.survey, ())]))
    return Cohorts(tuple(train), tuple(score), tuple(bits))


def learn_study(
    manifest: Manifest,
    cuts: Mapping[str, tuple[float, ...]],
    score_value: bytes,
    packets: Mapping[int, Sequence[bytes]],
    shares: Mapping[str, tuple[float, ...]] | None = None,
) -> LearnedStudy:
    """The model and what stands behind it. `shares`: how common categories are, from `thresholds.known_shares`."""
    cohorts = tally_cohorts(manifest, score_value, packets)
    subject = Subject(manifest.study_id.hex(), manifest.title, manifest.label, manifest.features, cuts, shares or {})
    return learn(subject, cohorts.train, cohorts.score, manifest.learning, bits=cohorts.bits)


def _tally(survey: Survey, packets: Sequence[Published]) -> SurveyTally:
    mechanism = survey.build()
    counts = tally(mechanism, [mechanism.parse(packet.report) for packet in packets])
    return SurveyTally(survey.survey, survey.features, survey.cards, mechanism, counts, len(packets))


def _bit_tally(survey: Survey, packets: Sequence[Published]) -> BitTally:
    mechanism = survey.build()
    counts = tally(mechanism, [mechanism.parse(packet.report) for packet in packets])
    return bit_tally(survey, mechanism, counts, len(packets))


def bit_tally(survey: Survey, mechanism: Mechanism, counts: Counts, n: int) -> BitTally:
    """The counts of a one-bit survey, as learning needs them."""
    feature, centre = survey.features[0], survey.centre / SCALE
    return BitTally(survey.survey, feature, survey.signs, centre, mechanism, counts, n, asks_score(survey))
