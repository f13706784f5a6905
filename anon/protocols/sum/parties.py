"""The sums of parties, which have many records each: weights of own models, and votes of own classifiers.

* `averaging`: one survey of kind `weights`. Cards are 1. Parameters: the scale; numerator and denominator of lambda,
  of the clip, which is 0 where there is none, and of the norm; the fewest records over which a member averages.
* `transfer`: one survey of kind `votes`. Cards are 1. Parameters: the scale, the number of public rows, the members'
  classifier, numerator and denominator of lambda and of the norm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final

from anon.errors import InvalidValue
from anon.protocols.contract import Place
from anon.protocols.sum.sections import CLASSIFIERS, Averaging, Transfer, demand_votes_work, demand_work
from anon.protocols.vectors.averaging import AveragedWeights, scale_for
from anon.protocols.vectors.columns import Column
from anon.protocols.vectors.logistic import longest_weights, moved_by_one
from anon.protocols.vectors.sensitivity import Unit
from anon.protocols.vectors.transfer import TransferredVotes
from anon.study.designs import AskedSurvey
from anon.study.records import PERSON, Records

WEIGHTS: Final = "weights"
VOTES: Final = "votes"
GIVEN: Final[Place] = ("given", 0)
"""The public rows that members vote on."""
OWN: Final = {WEIGHTS: 8, VOTES: 7}
"""By kind of survey, how many parameters are the design's own; those of many records follow."""

Parameters = Sequence[int]
Units = Callable[[], tuple[Column, ...]]


def weights_parameters(design: Averaging, length: int, records: Records) -> tuple[int, ...]:
    """The parameters of a sum of so many weights, without those of many records."""
    strength, clip = Fraction(str(design.strength)), Fraction(str(design.clip))
    longest = min(clip, longest_weights(strength)) if clip else longest_weights(strength)
    moved = 2 * longest if records.unit == PERSON else min(2 * longest, moved_by_one(strength, records.least))
    ratios = (*strength.as_integer_ratio(), *clip.as_integer_ratio(), *Fraction(str(design.norm)).as_integer_ratio())
    return (scale_for(length, moved), *ratios, records.least)


def votes_parameters(design: Transfer, length: int) -> tuple[int, ...]:
    """The same of a sum of votes, whose vectors have this length."""
    ratios = [number for one in (design.strength, design.norm) for number in Fraction(str(one)).as_integer_ratio()]
    return (scale_for(length, Fraction(1)), design.public_rows, CLASSIFIERS.index(design.classifier), *ratios)


def weights_of(columns: tuple[Column, ...], parameters: Parameters, unit: Unit, most: int) -> AveragedWeights:
    """The sum of a survey of weights. Raises `InvalidValue`."""
    scale, up, down, clip_up, clip_down, norm_up, norm_down, fewest = parameters
    if 0 in (up, down, clip_down, norm_down):
        raise InvalidValue("survey: expected lambda above 0, and ratios")
    strength = Fraction(up, down)
    clip = Fraction(clip_up, clip_down) or longest_weights(strength)
    return AveragedWeights(columns, scale, strength, clip, fewest, unit, most, Fraction(norm_up, norm_down))


def votes_of(columns: tuple[Column, ...], parameters: Parameters, most: int) -> TransferredVotes:
    """The sum of a survey of votes. Raises `InvalidValue`."""
    scale, public, _classifier, _up, down, norm_up, norm_down = parameters
    if 0 in (down, norm_down):
        raise InvalidValue("survey: expected ratios")
    return TransferredVotes(columns, scale, public, most, Fraction(norm_up, norm_down))


def classifier_of(survey: AskedSurvey) -> str:
    """The classifier that members train for a survey of votes."""
    return CLASSIFIERS[survey.parameters[2]]


def strength_of(survey: AskedSurvey) -> Fraction:
    """Lambda of the model that is learned from a survey of votes."""
    return Fraction(survey.parameters[3], survey.parameters[4])


def demand_weights(survey: AskedSurvey, length: int, records: Records) -> None:
    """Cards and parameters as a section of the file gives them, held to its bounds. Raises `InvalidValue`."""
    _, up, down, clip_up, clip_down, norm_up, norm_down, fewest = survey.parameters[:8]
    section = Averaging("averaging", 1.0, up / down, clip_up / clip_down, norm_up / norm_down)
    demand_work(records.most * length, Fraction(up, down))
    asked = Records(records.most, records.unit, fewest)
    _demand_parameters(survey, weights_parameters(section, length, asked))


def demand_votes(survey: AskedSurvey, length: int, records: Records | None) -> None:
    """The same of votes. Raises `InvalidValue`."""
    _, public, classifier, up, down, norm_up, norm_down = survey.parameters[:7]
    if not 0 <= classifier < len(CLASSIFIERS):
        raise InvalidValue(f"survey {survey.survey}: expected a classifier that members have")
    most = records.most if records is not None else 1
    demand_votes_work(most, public, length, CLASSIFIERS[classifier])
    section = Transfer("transfer", 1.0, public, CLASSIFIERS[classifier], up / down, norm_up / norm_down)
    _demand_parameters(survey, votes_parameters(section, length))


def _demand_parameters(survey: AskedSurvey, expected: tuple[int, ...]) -> None:
    if {*survey.cards} != {1} or survey.parameters[: len(expected)] != expected:
        raise InvalidValue(f"survey {survey.survey}: expected cards of 1, and the parameters that its design gives")
