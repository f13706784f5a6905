"""From what was counted in accepted packets to the tallies that learning needs, and to the model: pure functions.

Anybody with manifest, binning documents, transcripts and the revealed score value computes the same, as
`aggregator.audit` does.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from aggregator.protocols.additive.model import coordinates_of
from aggregator.protocols.additive.moments import BitTally
from aggregator.protocols.additive.reconstruct import Counts, SurveyTally
from aggregator.protocols.additive.ruled import ScoreTallies, SideTally, learn_ruled
from aggregator.protocols.histogram.ensemble import LearnedStudy, Subject, learn
from aggregator.protocols.tally import Tally
from anon.ldp import SCALE, Mechanism
from anon.protocols.histogram.asked import SCORE, SIDE
from anon.protocols.histogram.one_bit import centre_of, signs_of
from anon.protocols.histogram.ruled import enough_for, has_rule
from anon.study.manifest import Manifest, Survey


@frozen
class Cohorts:
    """The tallies of the disjoint cohorts: one that trains, one that only scores. One entry per histogram survey.

    One-bit surveys have no scoring cohort: all their reports train. `sides`: those about the declared score, by kind.
    """

    train: tuple[SurveyTally, ...]
    score: tuple[SurveyTally, ...]
    bits: tuple[BitTally, ...] = ()
    sides: Mapping[str, SideTally] = field(factory=dict)


def tally_cohorts(manifest: Manifest, tallies: Mapping[int, Tally]) -> Cohorts:
    """The tallies of both cohorts. `tallies`: those of `HistogramPart.tally`."""
    train, score, bits, sides = [], [], [], {}
    for survey in manifest.surveys:
        if survey.kind == "histogram":
            training, scoring = tallies[survey.survey]
            train.append(_tally(survey, training))
            score.append(_tally(survey, scoring))
        elif survey.kind == "bit":
            counted = tallies[survey.survey]
            bits.append(bit_tally(survey, survey.build(), counted[1:], int(counted[0])))
        elif survey.kind in (SIDE, SCORE):
            sides[survey.kind] = SideTally.of(survey.build(), tallies[survey.survey][1:])
    return Cohorts(tuple(train), tuple(score), tuple(bits), sides)


def learn_study(
    manifest: Manifest,
    cuts: Mapping[str, tuple[float, ...]],
    tallies: Mapping[int, Tally],
    shares: Mapping[str, tuple[float, ...]] | None = None,
) -> LearnedStudy:
    """The model and what stands behind it. `shares`: how common categories are, from `thresholds.known_shares`."""
    cohorts = tally_cohorts(manifest, tallies)
    subject = Subject(manifest.study_id.hex(), manifest.title, manifest.label, manifest.features, cuts, shares or {})
    return learn_cohorts(manifest, subject, cohorts)


def learn_cohorts(
    manifest: Manifest, subject: Subject, cohorts: Cohorts, with_influence: bool = True
) -> LearnedStudy:
    """The model of what was counted, by the study's design."""
    if has_rule(manifest):
        return rule_from(manifest, subject, cohorts)
    return learn(subject, cohorts.train, cohorts.score, manifest.learning, with_influence, cohorts.bits)


def rule_from(manifest: Manifest, subject: Subject, cohorts: Cohorts) -> LearnedStudy:
    """The model of a study of the local rule."""
    asked = next(survey for survey in manifest.surveys if survey.kind == SCORE)
    told = ScoreTallies(cohorts.sides[SCORE], cohorts.sides[SIDE], centre_of(asked) / SCALE)
    return learn_ruled(
        subject, told, cohorts.bits, manifest.learning, coordinates_of(manifest.features), enough_for(manifest)
    )


def _tally(survey: Survey, counted: Tally) -> SurveyTally:
    return SurveyTally(survey.survey, survey.features, survey.cards, survey.build(), counted[1:], int(counted[0]))


def bit_tally(survey: Survey, mechanism: Mechanism, counts: Counts, n: int) -> BitTally:
    """The counts of a one-bit survey, as learning needs them."""
    feature, centre = survey.features[0], centre_of(survey) / SCALE
    return BitTally(survey.survey, feature, signs_of(survey), centre, mechanism, counts, n)
