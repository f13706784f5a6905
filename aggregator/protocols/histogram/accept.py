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
from anon.encoding import decode, encode
from anon.errors import Malformed
from anon.messages import VERSION, Packet, parse_packet
from anon.protocols.histogram.tables import in_score_cohort
from anon.study.manifest import Manifest, Survey

_TAG_BYTES = 48


@frozen
class Cohorts:
    """The tallies of the disjoint cohorts: one that trains, one that only scores. One entry per histogram survey."""

    train: tuple[SurveyTally, ...]
    score: tuple[SurveyTally, ...]


def transcript_body(study: bytes, survey: int, plaintexts: Sequence[bytes]) -> bytes:
    """The transcript of a survey; `plaintexts` are sorted by tag."""
    return encode([VERSION, study, survey, list(plaintexts)])


def parse_transcript(body_untrusted: bytes, study: bytes) -> tuple[int, tuple[bytes, ...]]:
    """Survey and packet plaintexts. Raises `Malformed`. The packets themselves are not looked at."""
    fields = decode(body_untrusted, "transcript")
    shaped = isinstance(fields, list) and len(fields) == 4 and fields[:2] == [VERSION, study]
    if not shaped or type(fields[2]) is not int or not isinstance(fields[3], list):
        raise Malformed("transcript: expected version, study, survey and packets")
    if not all(isinstance(one, bytes) for one in fields[3]):
        raise Malformed("transcript: expected packets as bytes")
    return fields[2], tuple(fields[3])


def reports(plaintexts: Sequence[bytes]) -> tuple[bytes, ...]:
    """The reports inside accepted packets."""
    return tuple(parse_packet(one).report for one in plaintexts)


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
