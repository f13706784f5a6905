"""The local rule: staff's declared directions as a model, whose evidence is one bit of the declared score.

The score r of a person is the sum of its declared directions over the root of the number of features that have one.
Four kinds of questions, and each member draws one:

* `middle`: where scores lie. The score, clipped to 3/2 each way, is rounded at random to a sign.
* `side`: whether the score lies above the middle that was found, without the label.
* `score`: whether it does, times the label's distance from a guess: evidence for what staff declared, or against it.
* `bit`: the same about the label alone, and about single features (`anon.protocols.histogram.one_bit`).

The middle follows from a published count, so that every peer recomputes it. A score that lay on one side of a fixed cut
for most people would say little.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, lcm, log10, sqrt
from typing import Final

from anon.errors import InvalidValue, Malformed
from anon.ldp import SCALE, Mechanism, NanoEpsilon, build
from anon.protocols.categories import directions
from anon.protocols.histogram.asked import MIDDLE, SCORE, SIDE
from anon.protocols.histogram.one_bit import LEVELS
from anon.study.features import Feature
from anon.study.manifest import Manifest
from anon.text.sentences import say
from anon.values import frozen

MOST_HEARD, FEWEST_HEARD = Fraction(11, 20), Fraction(1, 4)
"""The largest and the smallest part of the members that answer about the score."""
FINDING, SIDED, LABELS = Fraction(1, 20), Fraction(1, 20), Fraction(7, 100)
"""The parts that find the middle, tell their side of it, and answer about the label alone."""
MOST_SUMS: Final = 100_000
"""Different sums of declared directions, at most: a peer makes an answer of each beforehand."""
CLIP: Final = 1.5
MIDDLE_ERROR: Final = 0.8
"""The prior standard deviation of the middle, around 0."""
_SLOPE, _FAR, _SPREAD, _LEFT = 0.5, 2.06 + 1.645, 0.96, 0.85
"""A rule that is found out in 95 of 100 studies: its slope in log-odds, and how far its z lies from 0. The mean
distance of a score from the middle, and the part of z that the errors of side and label leave."""


@frozen
class DeclaredSums:
    """The declared directions of a study as whole numbers, `parts` by feature and category; `unit` makes a score of
    their sum."""

    features: tuple[Feature, ...]
    parts: tuple[tuple[int, ...], ...]
    unit: float

    @staticmethod
    def of(features: Sequence[Feature]) -> DeclaredSums:
        """Of the features that have a direction. Raises `InvalidValue` if they have more than `MOST_SUMS` sums."""
        told = tuple(feature for feature in features if feature.expects)
        numbers = [directions(feature) for feature in told]
        whole = lcm(*(number.denominator for own in numbers for number in own))
        parts = tuple(tuple(int(number * whole) for number in own) for own in numbers)
        if sum(max(own) - min(own) for own in parts) >= MOST_SUMS:
            raise InvalidValue(
                f"features: their declared directions have more than {MOST_SUMS:,} sums; write as many cuts for one as "
                "for another, or leave directions out"
            )
        return DeclaredSums(told, parts, whole * sqrt(max(1, len(told))))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its features."""
        return tuple(feature.name for feature in self.features)

    @property
    def sums(self) -> range:
        """Every sum that there can be."""
        return range(sum(map(min, self.parts)), sum(map(max, self.parts)) + 1)


def level(score: float) -> int:
    """The level of a score among `LEVELS` from -CLIP to CLIP."""
    return round((min(max(score / CLIP, -1.0), 1.0) + 1) / 2 * (LEVELS - 1))


def middle(mechanism: Mechanism, plus: int, people: int) -> float:
    """Where scores lie, from `plus` reports of a plus among so many people; 0 of none. Drawn to 0 by the noise."""
    if not people:
        return 0.0
    gap = (mechanism.p - mechanism.q) / SCALE
    found, noise = CLIP * (2 * plus / people - 1) / gap, CLIP**2 / (people * gap**2)
    return found * MIDDLE_ERROR**2 / (MIDDLE_ERROR**2 + noise)


def heard(people: int, epsilon: NanoEpsilon, rate: float) -> Fraction:
    """The part of so many members that answers about the score: as many as find out a rule that is wrong as a whole,
    within bounds. `rate`: the guessed share of positive labels."""
    part = Fraction(needed(build("krr", 2, epsilon), rate), max(people, 1)).limit_denominator(100)
    return min(max(part, FEWEST_HEARD), MOST_HEARD)


def needed(mechanism: Mechanism, rate: float) -> int:
    """So many answers about the score find out a rule that is wrong as a whole."""
    gap = (mechanism.p - mechanism.q) / SCALE
    told = rate * (1 - rate) * _SLOPE * _SPREAD
    return ceil((_FAR * max(rate, 1 - rate) / (told * gap * _LEFT)) ** 2)


def enough_for(study: Manifest) -> int:
    """From about how many members on a rule that is wrong as a whole is found out."""
    asked = next(survey for survey in study.surveys if survey.kind == SCORE)
    slot = study.slots[0]
    weight = next(row.weight for row in slot.rows if row.survey == asked.survey)
    people = needed(asked.build(), study.learning.base_rate) * slot.total / weight
    step: int = 10 ** max(0, int(log10(people)) - 1)
    return ceil(people / step) * step


def has_rule(study: Manifest) -> bool:
    """True for a study of the local rule."""
    return any(survey.kind == SCORE for survey in study.surveys)


def check(study: Manifest) -> None:
    """Raises `Malformed` for questions about the score that are not about the declared features, or of which one is
    missing or asked twice: consent says that staff's rule is asked about."""
    asked = [survey for survey in study.surveys if survey.kind in (MIDDLE, SIDE, SCORE)]
    if not asked:
        return
    try:
        sums = DeclaredSums.of(study.features)
    except InvalidValue:
        raise Malformed("manifest: its rule has more sums than a program can answer; do not take part") from None
    if any(feature.binned_privately for feature in sums.features):
        raise Malformed("manifest: its rule adds up a feature whose cuts are not known; do not take part")
    if sorted(survey.kind for survey in asked) != sorted((MIDDLE, SIDE, SCORE)) or len(study.slots) != 1:
        raise Malformed("manifest: a rule asks for its middle, a side and a score, once each; do not take part")
    for survey in asked:
        if survey.features != sums.names:
            raise Malformed(say(
                "survey {survey}: its features are not those of which staff expect something; do not take part",
                survey=survey.survey,
            ))

