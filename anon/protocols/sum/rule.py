"""The calibrated rule as surveys: a table of score by label, then residuals (`anon.protocols.vectors.rule`).

* `rule`: a survey of kind `scores`, then for each round of corrections one of kind `residuals`. Cards are the features'
  categories. There are no parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final

from anon.accounting.noisy_sums import shared_sigmas_squared
from anon.errors import InvalidValue
from anon.ldp import NanoEpsilon
from anon.protocols.categories import directions
from anon.protocols.sum.rule_section import MOST_CORRECTIONS
from anon.protocols.vectors.residuals import ResidualSums, ScoreSums
from anon.protocols.vectors.rule import DeclaredRule, enough
from anon.study.designs import Tables
from anon.study.manifest import Manifest

SCORES: Final = "scores"
RESIDUALS: Final = "residuals"
SCALE: Final = 1024
CLIP: Final = Fraction(2, 5)
FIRST: Final = Fraction(3, 25)
"""The first table's share of the cost; all rounds of corrections share the rest alike."""


def residuals(cards: Sequence[int]) -> ResidualSums:
    """The residuals of features with so many categories. Raises `InvalidValue`."""
    return ResidualSums(tuple(cards), SCALE, CLIP)


def scores(cards: Sequence[int]) -> ScoreSums:
    """The table of score by label, beside such residuals. Raises `InvalidValue`."""
    return ScoreSums(residuals(cards))


def shares(rounds: int) -> tuple[Fraction, ...]:
    """Of the cost, the share of each of so many rounds, the first one included."""
    return (FIRST, *((1 - FIRST) / (rounds - 1) for _ in range(rounds - 1)))


def noises_for(
    cards: Sequence[int], rounds: int, epsilon: NanoEpsilon, delta: Decimal, times: int = 1
) -> tuple[Fraction, ...]:
    """The variance of each teller's noise in each of so many rounds, that together keep to (epsilon, delta), if each is
    published so many `times`."""
    shapes: list[ScoreSums | ResidualSums] = [scores(cards), *[residuals(cards)] * (rounds - 1)]
    sums = tuple(
        (shape.sensitivity_squared("replace-one"), shape.changed("replace-one"), share)
        for shape, share in zip(shapes, shares(rounds), strict=True)
    )
    return shared_sigmas_squared(sums, epsilon, delta, times)


def enough_for(study: Manifest, noise: Fraction) -> int:
    """From about how many members on a rule that is wrong as a whole is found out. `noise`: of all tellers, on each
    entry of the first sum."""
    mark = scores([feature.cardinality for feature in study.features]).mark
    return enough(float(noise) / mark**2, study.learning.base_rate)


def rule_of(study: Manifest) -> DeclaredRule:
    """The rule that a study declares."""
    told = tuple(tuple(map(float, directions(feature))) for feature in study.features)
    return DeclaredRule(told, study.learning.base_rate)


def demand_rounds(cards: Sequence[int], asked: Tables) -> None:
    """Kinds, cards and parameters of all rounds. Raises `InvalidValue`."""
    if not 2 <= len(asked) <= MOST_CORRECTIONS + 1 or any(len(surveys) != 1 for surveys in asked):
        raise InvalidValue(f"design: rule has 2 to {MOST_CORRECTIONS + 1} slots with one survey each")
    if [surveys[0].kind for surveys in asked] != [SCORES, *[RESIDUALS] * (len(asked) - 1)]:
        raise InvalidValue("design: rule counts a score first, and asks for residuals in all other rounds")
    if any(survey.cards != tuple(cards) or survey.parameters for (survey,) in asked):
        raise InvalidValue("design: rule takes the categories of every feature, and no parameter")
