"""One-bit packets: one bit about one feature times the label's distance from a guess, rounded to a sign.

The survey names a sign b in {-1, +1} for every category of its feature. The signs stand for a threshold, one category
against the others, or +1 everywhere, which asks about the label alone. The survey also names a centre a, a public guess
of the share of positive labels. The peer computes v = b (y - a) / max(a, 1 - a), which lies in [-1, 1]. It rounds v at
random to a sign of mean v. Binary random response with the whole epsilon perturbs that sign.

Both stand in the survey's parameters: a over 2**64, then for each sign 1 where it is +1, else 0.

Of a survey of kind `score` the sign is that of the declared score, and its parameters are a alone. One of kind `middle`
rounds a level of the score in the same way (`anon.protocols.histogram.ruled`).

The cost: rounding happens before the mechanism, so that a report's probabilities are mixtures of those of the two
signs. No two records can make them differ by more than the mechanism's own ratio p/q, and since v reaches -1 and +1
that is the loss exactly. Epsilon, ledger and consent need to know nothing of the rounding.
"""

from __future__ import annotations

from collections.abc import Sequence

from anon.ldp import SCALE, PerturbedReport, RandomBytes, RawCategory
from anon.protocols.histogram.asked import MIDDLE, SCORE
from anon.study.features import Feature
from anon.study.manifest import Survey

ROUNDING_SIZE = 8
"""Random bytes that rounding costs, for every record alike."""

ROUNDED = ("bit", SCORE, MIDDLE)
"""The kinds of surveys whose answers are rounded to a sign before the mechanism."""

LEVELS = 257
"""Of a score that is asked for the middle: the first is rounded to a minus, the last to a plus."""

ANSWERS = 4
"""The category that a peer's part answers: 2 [b = +1] + y. It becomes one of two signs here, and nowhere else."""


def bit_parameters(centre: int, signs: Sequence[int]) -> tuple[int, ...]:
    """The parameters of a one-bit survey with this centre, over 2**64, and these signs of -1 and +1."""
    return (centre, *(int(sign > 0) for sign in signs))


def centre_of(survey: Survey) -> int:
    """a, over 2**64, of a one-bit survey; 0 of another."""
    return survey.parameters[0] if survey.parameters else 0


def signs_of(survey: Survey) -> tuple[int, ...]:
    """b of each category of a one-bit survey, -1 or +1; none of another."""
    return tuple(2 * above - 1 for above in survey.parameters[1:])


def bit_answer(sign: int, label: int) -> RawCategory:
    """The answer of a record whose category has this sign and whose label is 0 or 1."""
    return RawCategory(2 * (sign > 0) + label, ANSWERS)


def plus_share(survey: Survey, sign: int, label: int) -> int:
    """The chance, over 2**64, that v = sign (label - a)/max(a, 1 - a) is rounded to +1: (1 + v)/2, rounded down."""
    centre = centre_of(survey)
    distance = sign * (SCALE - centre if label else -centre)
    return min((SCALE * (distance + max(centre, SCALE - centre))) // (2 * max(centre, SCALE - centre)), SCALE)


def rounded(survey: Survey, answer: RawCategory, random_bytes: RandomBytes) -> RawCategory:
    """The answer as the mechanism takes it: 1 for a sign of +1. Always draws `ROUNDING_SIZE` bytes.

    Raises `ValueError` for an answer of another kind of survey.
    """
    if answer.m != (LEVELS if survey.kind == MIDDLE else ANSWERS):
        raise ValueError("a one-bit survey is answered by a sign and a label, and one about the middle by a level")
    point = int.from_bytes(random_bytes(ROUNDING_SIZE), "big")
    positive = point < chance_of(survey, answer.value)
    return RawCategory(int(positive), survey.m)


def chance_of(survey: Survey, answer: int) -> int:
    """The chance, over 2**64, that the answer of this value is rounded to +1."""
    if survey.kind == MIDDLE:
        return SCALE * answer // (LEVELS - 1)
    return plus_share(survey, 1 if answer >= 2 else -1, answer % 2)


def perturb(survey: Survey, answer: RawCategory, random_bytes: RandomBytes) -> PerturbedReport:
    """The report that answers a survey of any kind: rounded first where it asks for one bit, then perturbed."""
    category = rounded(survey, answer, random_bytes) if survey.kind in ROUNDED else answer
    return survey.build().perturb(category, random_bytes)


def random_size(survey: Survey) -> int:
    """Random bytes that `perturb` takes, for every record alike."""
    return survey.build().random_size + (ROUNDING_SIZE if survey.kind in ROUNDED else 0)


def scale(survey: Survey) -> float:
    """max(a, 1 - a): what a sign's mean is multiplied with to estimate E[b (y - a)]."""
    return max(centre_of(survey), SCALE - centre_of(survey)) / SCALE


def feature_signs(feature: Feature) -> tuple[tuple[int, ...], ...]:
    """The bits worth asking about a feature: each threshold of a numeric one, each category against all others.

    Two categories make one bit. A missing value's own category (the last) has a bit of its own and lies below every
    threshold.
    """
    card = feature.cardinality
    if card == 2:
        return ((-1, 1),)
    alone = range(card) if feature.kind == "categorical" else ([card - 1] if feature.missing == "own" else [])
    above = range(1, card - (1 if feature.missing == "own" else 0)) if feature.kind == "numeric" else []
    ordered = card - (1 if feature.missing == "own" else 0)
    thresholds = [_signs(card, range(cut, ordered)) for cut in above]
    return (*thresholds, *(_signs(card, (category,)) for category in alone))


def _signs(card: int, positive: Sequence[int]) -> tuple[int, ...]:
    return tuple(1 if category in positive else -1 for category in range(card))
