"""The surveys of averaging in groups, and what the manifest says besides: `[aggregations, group, receivers, noise]`.

The first round tells keys and commitments. Each aggregation has three rounds of one survey. The last of these is of
weights (`anon.protocols.sum.parties`), in whose texts they are added up; the shares before it cost its part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from math import sqrt
from typing import Final

from anon.accounting.noisy_sums import sigma_squared_for
from anon.accounting.zcdp import NanoRho, gaussian_rho
from anon.crypto.sealing_sizes import PUBLIC_KEY_SIZE
from anon.errors import InvalidValue, Malformed
from anon.ldp import nano
from anon.protocols.contract import Layout
from anon.protocols.sum.arranged import DELTA, asked
from anon.protocols.sum.design import demand_asked, is_of_declared, shape_of
from anon.protocols.sum.groups.drawing import KEYS, SHARES, TOLD, VALUE, WIDTH, step_of, survey_of
from anon.protocols.sum.groups.sections import GroupAveraging, demand_groups
from anon.protocols.sum.parties import WEIGHTS
from anon.protocols.vectors.averaging import AveragedWeights
from anon.study.designs import AskedSurvey, Tables
from anon.study.manifest import LETTERS, Manifest, Survey, Window
from anon.study.proposal import Proposal
from anon.study.slots import Row, Slot
from anon.values import frozen
from anon.wire.cbor import decode, encode

_KINDS: Final = ("opened", "shares", WEIGHTS)
_LARGEST: Final = 2**110
"""Of the noise's variance: a sum of 64 bits holds it, and no epsilon of a study file asks for so much."""
_RARE: Final = 14
"""A sum's noise is longer than `longest` says with a chance of at most e^-14, about one in a million."""


@frozen
class Grouping:
    """The part of the manifest. `noise`: the variance of each receiver's, on each entry."""

    aggregations: int
    group: int
    receivers: int
    noise: Fraction

    def to_bytes(self) -> bytes:
        """Canonical CBOR."""
        return encode([self.aggregations, self.group, self.receivers, *self.noise.as_integer_ratio()])


def grouping_of(part: bytes) -> Grouping:
    """Raises `Malformed`."""
    fields = decode(part, "groups")
    if not isinstance(fields, list) or len(fields) != 5 or not all(type(field) is int for field in fields):
        raise Malformed("groups: expected five numbers")
    aggregations, group, receivers, noise, per = fields
    if not 0 < noise < _LARGEST or not 0 < per < _LARGEST:
        raise Malformed("groups: expected noise")
    try:
        demand_groups(aggregations, group, receivers)
    except InvalidValue as fault:
        raise Malformed(f"groups: {fault}") from None
    grouping = Grouping(aggregations, group, receivers, Fraction(noise, per))
    if grouping.to_bytes() != part:
        raise Malformed("groups: expected the one spelling")
    return grouping


def lay_out(proposal: Proposal, windows: tuple[Window, ...]) -> Layout:
    """Surveys, slots and the part. Raises `Malformed`."""
    design = proposal.design
    if not isinstance(design, GroupAveraging):
        raise TypeError(f"no design of groups: {design.kind}")
    kind, features, cards, parameters = asked(proposal)
    at = survey_of(0, TOLD)
    weights = Survey(at, kind, features, cards, 0, LETTERS, 0, 0, 0, windows[at], at, 1, parameters)
    shape = weights_of(weights)
    moved, changed = shape.sensitivity_squared("replace-one"), shape.changed("replace-one")
    noise = sigma_squared_for(moved, changed, nano(str(design.epsilon)), DELTA, design.aggregations)
    grouping = Grouping(design.aggregations, design.group, design.receivers, noise)
    return Layout(surveys_of(weights, windows, grouping), _slots(grouping), grouping.to_bytes())


def _slots(grouping: Grouping) -> tuple[Slot, ...]:
    return tuple(Slot(number, (Row(number, 1),)) for number in range(rounds_of(grouping.aggregations)))


def rounds_of(aggregations: int) -> int:
    """How many rounds so many aggregations take."""
    return 1 + 3 * aggregations


def surveys_of(weights: AskedSurvey, windows: Sequence[Window], grouping: Grouping) -> tuple[Survey, ...]:
    """All surveys of a study with these weights, cost and lengths recomputed. `windows`: by round."""
    vector, rho = WIDTH * shape_of(weights).length, rho_of(weights, grouping)
    keys = PUBLIC_KEY_SIZE + VALUE * grouping.aggregations
    surveys = [Survey(KEYS, "keys", (), (), 0, LETTERS, 0, 0, 0, windows[KEYS], KEYS, keys)]
    for number, window in enumerate(windows[1:], 1):
        _, step = step_of(number)
        told, shared = step == TOLD, step == SHARES
        surveys.append(
            Survey(
                number, _KINDS[step], weights.features if told else (), weights.cards if told else (),
                grouping.receivers if shared else 0, LETTERS, 0, 0, rho if shared else 0, window, number,
                (VALUE, 1, vector)[step], weights.parameters if told else (vector,) if shared else (),
            )
        )  # fmt: skip
    return tuple(surveys)


def rho_of(weights: AskedSurvey, grouping: Grouping) -> NanoRho:
    """The cost of one sum to one unit, which is replaced by another: with the noise of a single receiver alone."""
    return gaussian_rho(shape_of(weights).sensitivity_squared("replace-one"), grouping.noise)


def longest(shape: AveragedWeights, many: int, grouping: Grouping) -> float:
    """The length that a sum of so many members' weights has at most, with the noise of all receivers.

    The noise is subgaussian: Hsu, Kakade and Zhang 2012, theorem 2.1, holds for its length.
    """
    spread = shape.length + 2 * sqrt(shape.length * _RARE) + 2 * _RARE
    return many * sqrt(shape.contribution_norm_squared) + sqrt(grouping.receivers * grouping.noise * spread)


def weights_survey(study: Manifest) -> Survey:
    """The first survey whose texts are added up. All aggregations have the same."""
    return study.survey(survey_of(0, TOLD))


def weights_of(survey: AskedSurvey) -> AveragedWeights:
    """Its sum."""
    shape = shape_of(survey)
    if not isinstance(shape, AveragedWeights):
        raise TypeError(f"no weights: {survey.kind}")
    return shape


def check(study: Manifest) -> None:
    """Raises `Malformed` unless the surveys are those of the weights, in rounds one after the other."""
    grouping = grouping_of(study.part)
    if grouping.group > study.cohort.minimum or len(study.surveys) != rounds_of(grouping.aggregations):
        raise Malformed("manifest: its members are too few for a group, or its rounds too many; do not take part")
    windows, weights = [survey.window for survey in study.surveys], weights_survey(study)
    if study.surveys != surveys_of(weights, windows, grouping) or study.slots != _slots(grouping):
        raise Malformed("manifest: its surveys are not those of groups; do not take part")
    if not is_of_declared(weights, study.records):
        raise Malformed("manifest: it takes other records of a member than the study says; do not take part")
    if any(before.closes >= after.opens for before, after in pairwise(windows)):
        raise Malformed("manifest: a round opens before the one before it has closed; do not take part")


def form(cards: Mapping[str, int], tables: Tables) -> None:
    """The form of the one design. Raises `InvalidValue`."""
    kinds = [[survey.kind for survey in surveys] for surveys in tables]
    if kinds != [["keys"], *[[kind] for kind in _KINDS] * (len(tables) // 3)] or len(tables) < 4:
        raise InvalidValue("design: expected keys, and in each aggregation values, shares and weights")
    demand_asked(cards, tables[survey_of(0, TOLD)][0], WEIGHTS)
