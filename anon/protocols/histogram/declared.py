"""The declared score: one bit that says if the features of a person point to a yes, as staff expect.

Every feature with a declared direction (`Feature.expects`) adds a number from -1 to 1: a numeric feature its sign times
its bin, bins being equally spaced; a categorical feature the sign of the category; a missing value of its own 0. The
bit is +1 where the sum is above 0. Three surveys ask about it: b (y - a) around the guess a of the base rate; the same
around a centre far from it, which shows how lopsided b is; and the label alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import lcm, prod

from anon.errors import Malformed
from anon.ldp import SCALE
from anon.protocols.categories import directions
from anon.protocols.histogram.asked import asks_score
from anon.protocols.histogram.forms import MOST_SIGNS
from anon.protocols.histogram.one_bit import signs_of
from anon.study.features import Feature
from anon.study.manifest import Manifest
from anon.text.sentences import say

SHARES = (0.8, 0.1, 0.1)
"""Of the weight: around the guess, around the far centre, and about the label alone."""

FAR = 0.001
"""The far centre lies so near to 1 where the guess is below one half, else so near to 0."""


def declared(features: Sequence[Feature]) -> tuple[Feature, ...]:
    """The features with a direction, in the study's order."""
    return tuple(feature for feature in features if feature.expects)


def far_centre(centre: int) -> int:
    """The far centre to a guess, both over 2**64."""
    near_end = round(FAR * SCALE)
    return SCALE - near_end if 2 * centre < SCALE else near_end


def score_signs(features: Sequence[Feature]) -> tuple[int, ...]:
    """b of each combination of the categories of these features, the last one's changing fastest."""
    told = [directions(feature) for feature in features]
    whole = lcm(*(number.denominator for numbers in told for number in numbers))
    counted = [[int(number * whole) for number in numbers] for numbers in told]
    return tuple(1 if sum(combination) > 0 else -1 for combination in product(*counted))


def check(study: Manifest) -> None:
    """Raises `Malformed` for a bit about several features whose signs are not those of the declared directions: consent
    says that they are."""
    told = declared(study.features)
    asked = [survey for survey in study.surveys if asks_score(survey)]
    signs = score_signs(told) if asked and prod(feature.cardinality for feature in told) <= MOST_SIGNS else ()
    for survey in asked:
        if survey.features != tuple(feature.name for feature in told) or signs_of(survey) != signs:
            raise Malformed(say(
                "survey {survey}: its signs are not what staff expect of the features; do not take part",
                survey=survey.survey,
            ))
