"""The sums of a study by its surveys: what a member adds, how much one person changes it, and how its proof is made.

A survey says all of it in fields that every manifest has:

* `tables-sum`: one survey of kind `tables`. Cards are the features' categories. Parameters: the places of the features
  of each pair, one pair after the other.
* `marginals`: one survey of kind `marginals`. Cards as those of tables. Parameters: how many rows are drawn; then the
  places of each pair, in order. A star has no pair.
* `moments`: one survey of kind `moments`. Cards are the reaches of the columns; a number that is the target stands
  last. Parameters: the largest sum of squares of a record, and the label's reach, or 0 where a number is the target.
* `gradient`: for each round a survey of kind `gradient`. Cards are 1. Parameters: the scale; numerator and denominator
  of clip, step and momentum; over how many last rounds the weights are averaged. Where members have one record each, a
  last survey of kind `check` has one parameter more: of how many members one checks.

* `averaging` and `transfer`: see `anon.protocols.sum.parties`; `rule`: see `anon.protocols.sum.rule`.

Where members have many records, two parameters follow of all but tables: the most records of a member, and 1 if
the unit is a record, else 0. A gradient whose unit is a record also adds up how many records there are.

The columns of numbers are a constant 1, the features, and for moments the target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from math import log1p
from typing import Final

from attrs import evolve

from anon.errors import InvalidValue, Malformed
from anon.protocols.sum.parties import OWN, VOTES, WEIGHTS, demand_votes, demand_weights, votes_of, weights_of
from anon.protocols.sum.rule import RESIDUALS, SCORES, demand_rounds, residuals, scores
from anon.protocols.sum.sections import MOST_DRAWN, MOST_REACH, MOST_SUMMED_ROUNDS, Gradient
from anon.protocols.vectors.averaging import AveragedWeights
from anon.protocols.vectors.checks import CheckSums
from anon.protocols.vectors.columns import CONSTANT, Column
from anon.protocols.vectors.gradient import Descent, GradientSums
from anon.protocols.vectors.moments import MomentSums
from anon.protocols.vectors.residuals import ResidualSums, ScoreSums
from anon.protocols.vectors.sensitivity import Unit, ball_of
from anon.protocols.vectors.tables import TableSums, marginals_of, tables_of
from anon.protocols.vectors.transfer import TransferredVotes
from anon.sharing.arrangement import Sum
from anon.study.designs import AskedSurvey, Tables
from anon.study.features import Feature
from anon.study.manifest import Manifest, Survey
from anon.study.proposal import DECIMALS
from anon.study.records import PERSON, RECORD, Records
from anon.vdaf.circuits import Ball, Blocks, ball, blocks

TABLES: Final = "tables"
MARGINALS: Final = "marginals"
MOMENTS: Final = "moments"
GRADIENT: Final = "gradient"
CHECK: Final = "check"
SCALE: Final = 1024
"""The integer that stands for a gradient's entry of 1."""
LEAST_ONE_IN: Final = 4
"""At most one member in so many checks."""

Summed = (
    TableSums | MomentSums | GradientSums | CheckSums | AveragedWeights | TransferredVotes | ScoreSums | ResidualSums
)
_OWN: Final = {MOMENTS: 2, GRADIENT: 8, CHECK: 9, **OWN}
"""By kind, how many parameters stand before those of many records."""


def _demand_single(cards: Mapping[str, int], asked: Tables) -> None:
    """The form of `tables-sum` and `moments`: one slot, whose one survey adds up its vector. Raises `InvalidValue`."""
    if [len(surveys) for surveys in asked] != [1] or asked[0][0].kind not in (TABLES, MOMENTS):
        raise InvalidValue("design: a sum of tables or moments has one slot with one survey")
    _demand_form(cards, asked[0][0])


def tables_form(cards: Mapping[str, int], asked: Tables) -> None:
    """The form of `tables-sum`. Raises `InvalidValue`."""
    _demand_single(cards, asked)
    if asked[0][0].kind != TABLES or asked[0][0].cards != tuple(cards.values()):
        raise InvalidValue("design: tables-sum counts the categories of every feature")


def marginals_form(cards: Mapping[str, int], asked: Tables) -> None:
    """The form of `marginals`. Raises `InvalidValue`."""
    if [[survey.kind for survey in surveys] for surveys in asked] != [[MARGINALS]]:
        raise InvalidValue("design: marginals has one slot with one survey")
    survey = asked[0][0]
    _demand_form(cards, survey)
    pairs = list(zip(survey.parameters[1::2], survey.parameters[2::2], strict=True))
    if survey.features != tuple(cards) or survey.cards != tuple(cards.values()):
        raise InvalidValue("design: marginals counts the categories of every feature")
    if not 1 <= survey.parameters[0] <= MOST_DRAWN:
        raise InvalidValue(f"design: marginals draws 1 to {MOST_DRAWN} rows")
    if pairs != sorted(set(pairs)) or any(first >= second for first, second in pairs):
        raise InvalidValue("design: marginals has different pairs, in the features' order")


def moments_form(cards: Mapping[str, int], asked: Tables) -> None:
    """The form of `moments`. Raises `InvalidValue`."""
    _demand_single(cards, asked)
    demand_asked(cards, asked[0][0], MOMENTS)


def gradient_form(cards: Mapping[str, int], asked: Tables) -> None:
    """The form of `gradient`: a slot for each round, all of them alike; a last one checks where members have one record
    each. Raises `InvalidValue`."""
    if not asked or any(len(surveys) != 1 for surveys in asked):
        raise InvalidValue("design: gradient has slots with one survey each")
    first, last = asked[0][0], asked[-1][0]
    rounds = len(asked) - (is_checked := records_of(first) is None)
    if not 1 <= rounds <= MOST_SUMMED_ROUNDS:
        raise InvalidValue(f"design: gradient has 1 to {MOST_SUMMED_ROUNDS} rounds")
    alike = {(one.kind, one.features, one.cards, one.m, one.parameters) for (one,) in asked[:rounds]}
    if first.kind != GRADIENT or len(alike) != 1:
        raise InvalidValue("design: gradient asks the same in every round")
    _demand_form(cards, first)
    _demand_descent(first, rounds)
    if is_checked:
        _demand_check(cards, first, last)


def rule_form(cards: Mapping[str, int], asked: Tables) -> None:
    """The form of `rule`: a slot for each round, of features in the study's order. Raises `InvalidValue`."""
    demand_rounds(tuple(cards.values()), asked)
    for (survey,) in asked:
        _demand_form(cards, survey)
        if survey.features != tuple(cards):
            raise InvalidValue("design: rule takes the features in the study's order")


def averaging_form(cards: Mapping[str, int], asked: Tables) -> None:
    """The form of `averaging`: one slot, whose one survey adds up weights. Raises `InvalidValue`."""
    _demand_parties(cards, asked, WEIGHTS)


def transfer_form(cards: Mapping[str, int], asked: Tables) -> None:
    """The form of `transfer`: one slot, whose one survey adds up votes. Raises `InvalidValue`."""
    _demand_parties(cards, asked, VOTES)


def _demand_parties(cards: Mapping[str, int], asked: Tables, kind: str) -> None:
    if [len(surveys) for surveys in asked] != [1]:
        raise InvalidValue(f"design: expected one slot with one survey of {kind}")
    _demand_form(cards, asked[0][0])
    demand_asked(cards, asked[0][0], kind)


def demand_asked(cards: Mapping[str, int], survey: AskedSurvey, kind: str) -> None:
    """Features, cards and parameters of a survey that asks once, as its design gives them. Raises `InvalidValue`."""
    if survey.kind != kind:
        raise InvalidValue(f"survey {survey.survey}: expected the kind {kind}, got {survey.kind}")
    if {*survey.features} != cards.keys() or len(survey.features) != len(cards):
        raise InvalidValue(f"survey {survey.survey}: expected every feature once")
    length, records = shape_of(survey).length, records_of(survey)
    if kind == MOMENTS:
        _demand_reaches(survey)
    elif kind == VOTES:
        demand_votes(survey, length, records)
    elif records is None:
        raise InvalidValue("design: averaging takes many records of each member")
    else:
        demand_weights(survey, length, records)


def _demand_reaches(survey: AskedSurvey) -> None:
    """Reaches as a section of the file gives them: one for all features, and its whole multiple for the target."""
    radius_squared, label_reach = survey.parameters[:2]
    *features, target = (*survey.cards, label_reach) if label_reach else survey.cards
    reach = features[0] if features else 0
    alike = 1 <= reach <= MOST_REACH and {*features} == {reach}
    if not alike or target % reach or not 1 <= target // reach <= MOST_REACH:
        raise InvalidValue(
            f"survey {survey.survey}: expected one reach from 1 to {MOST_REACH} for all features, and a whole multiple "
            f"of it for the target, {MOST_REACH} times at most"
        )
    if radius_squared > (longest := sum(length**2 for length in (reach, *features, target))):
        raise InvalidValue(f"survey {survey.survey}: expected a radius squared of at most {longest}")


def _demand_descent(survey: AskedSurvey, rounds: int) -> None:
    """Cards of 1, and the numbers that a section of the file gives, which holds them to its bounds."""
    _, *ratios, last = survey.parameters[:8]
    clip, step, momentum = (float(Fraction(amount, per)) for amount, per in zip(ratios[::2], ratios[1::2], strict=True))
    if {*survey.cards} != {1}:
        raise InvalidValue(f"survey {survey.survey}: expected cards of 1 in a sum of gradients")
    section = Gradient(GRADIENT, 1.0, rounds, step, momentum, clip, last)
    if last < 1 or survey.parameters[:8] != gradient_parameters(section):
        raise InvalidValue(
            f"survey {survey.survey}: expected the scale {SCALE}, ratios in lowest terms of at most {DECIMALS} "
            "decimals, and a last round"
        )


def _demand_check(cards: Mapping[str, int], first: AskedSurvey, survey: AskedSurvey) -> None:
    alike = (survey.features, survey.cards, survey.parameters[:-1]) == (first.features, first.cards, first.parameters)
    if survey.kind != CHECK or not alike or survey.parameters[-1] < LEAST_ONE_IN:
        raise InvalidValue(f"design: the last round of gradient is checked by one member in {LEAST_ONE_IN} or more")
    _demand_form(cards, survey)


def roles(surveys: Sequence[AskedSurvey]) -> list[list[int]]:
    """The places of the surveys that one member answers from its record: those that train, and the one that checks. A
    member is drawn for one of them before its data is looked at, so it loses what the dearest costs."""
    checks = [survey.kind == CHECK for survey in surveys]
    found = [[at for at, check in enumerate(checks) if check is role] for role in (False, True)]
    return [places for places in found if places]


def one_in(surveys: Sequence[AskedSurvey]) -> int:
    """Of how many members one checks; 0 where none does."""
    return surveys[-1].parameters[-1] if surveys[-1].kind == CHECK else 0


def gradient_parameters(design: Gradient) -> tuple[int, ...]:
    """The parameters of a gradient's surveys, without those of many records."""
    ratios = [Fraction(str(amount)) for amount in (design.clip, design.step, design.momentum)]
    numbers = [number for ratio in ratios for number in (ratio.numerator, ratio.denominator)]
    return (SCALE, *numbers, design.last or max(1, design.rounds // 3))


def _demand_form(cards: Mapping[str, int], survey: AskedSurvey) -> None:
    if {*survey.features} != cards.keys() or len(survey.features) != len(cards):
        raise InvalidValue(f"survey {survey.survey}: expected every feature once")
    if survey.m != shape_of(survey).length:
        raise InvalidValue(f"survey {survey.survey}: expected a vector of {shape_of(survey).length} entries")


def shape_of(survey: AskedSurvey) -> Summed:
    """The sum of a survey, with columns of a width of 1: enough for lengths and sensitivity. Raises `InvalidValue`."""
    return _shape(survey.kind, survey.features, survey.cards, survey.parameters)


@lru_cache(maxsize=256)
def _shape(kind: str, features: tuple[str, ...], cards: tuple[int, ...], parameters: tuple[int, ...]) -> Summed:
    if kind == TABLES and len(parameters) % 2 == 0 and all(place < len(features) for place in parameters):
        named = [features[place] for place in parameters]
        pairs = list(zip(named[::2], named[1::2], strict=True))
        return tables_of(dict(zip(features, cards, strict=True)), pairs)
    if kind == SCORES and not parameters:
        return scores(cards)
    if kind == RESIDUALS and not parameters:
        return residuals(cards)
    if kind == MARGINALS and len(parameters) % 2 and all(place < len(features) for place in parameters[1:]):
        named = [features[place] for place in parameters[1:]]
        return marginals_of(dict(zip(features, cards, strict=True)), list(zip(named[::2], named[1::2], strict=True)))
    if kind == MOMENTS and len(parameters) in (2, 4):
        radius_squared, label_reach, *many = parameters
        reaches = (min(cards, default=0), *cards, *((label_reach,) if label_reach else ()))
        names = (CONSTANT, *features, *(("",) if label_reach else ()))
        return MomentSums(_units(names, reaches), radius_squared, *_many(many))
    if kind == GRADIENT and len(parameters) in (8, 10) and 0 not in (parameters[2], parameters[4], parameters[6]):
        return _gradients(features, parameters, parameters[8:])
    if kind == CHECK and len(parameters) == 9 and 0 not in (parameters[2], parameters[4], parameters[6]):
        return CheckSums(_gradients(features, parameters, ()))
    if kind in OWN and len(parameters) - OWN[kind] in (0, 2):
        columns, (own, declared) = _units((CONSTANT, *features), (1,) * (len(features) + 1)), _split(kind, parameters)
        unit, most = _many(declared)
        return weights_of(columns, own, unit, most) if kind == WEIGHTS else votes_of(columns, own, most)
    raise InvalidValue("survey: expected a sum that this program knows, with the parameters of its design")


def _gradients(features: tuple[str, ...], parameters: tuple[int, ...], many: Sequence[int]) -> GradientSums:
    names, clip = (CONSTANT, *features), Fraction(parameters[1], parameters[2])
    return GradientSums(_units(names, (1,) * len(names)), parameters[0], clip, *_many(many))


def _split(kind: str, parameters: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    own = _OWN.get(kind, len(parameters))
    return parameters[:own], parameters[own:]


def _many(parameters: Sequence[int]) -> tuple[Unit, int]:
    """The unit, and the most records of a member. Raises `InvalidValue`."""
    if not parameters:
        return PERSON, 1
    most, by_record = parameters
    if by_record not in (0, 1):
        raise InvalidValue("survey: expected 1 where the unit is a record, else 0")
    return RECORD if by_record else PERSON, most


def unit_of(survey: AskedSurvey) -> Unit:
    """The unit of a survey's sum. Raises `InvalidValue`."""
    shape = shape_of(survey)
    of_persons = TableSums | TransferredVotes | ScoreSums | ResidualSums | CheckSums
    return PERSON if isinstance(shape, of_persons) else shape.unit


def records_of(survey: AskedSurvey) -> Records | None:
    """The many records of a member that a survey takes, the least where it is of weights; None where each has one."""
    own, many = _split(survey.kind, survey.parameters)
    unit, most = _many(many)
    return Records(most, unit, own[-1] if survey.kind == WEIGHTS else 1) if many else None


def is_of_declared(survey: AskedSurvey, declared: Records | None) -> bool:
    """True if a survey takes the records that its study declares. Of surveys, weights alone say the least."""
    if declared is not None and survey.kind != WEIGHTS:
        declared = declared.asked
    return records_of(survey) == declared


def _units(names: tuple[str, ...], reaches: tuple[int, ...]) -> tuple[Column, ...]:
    return tuple(Column(name, 0.0, 1.0, reach) for name, reach in zip(names, reaches, strict=True))


def summed_of(study: Manifest, survey: Survey) -> Summed:
    """The sum of a survey as members add to it: each column centred in its feature's range. Raises `Malformed`."""
    shape = shape_of(survey)
    if isinstance(shape, TableSums | ScoreSums | ResidualSums):
        return shape
    if isinstance(shape, CheckSums):
        columns = tuple(_column(study, column) for column in shape.gradients.columns)
        return CheckSums(evolve(shape.gradients, columns=columns))
    return evolve(shape, columns=tuple(_column(study, column) for column in shape.columns))


def _column(study: Manifest, unit: Column) -> Column:
    if unit.name == CONSTANT:
        return unit
    return column_of(study.feature(unit.name), unit.reach) if unit.name else evolve(unit, name=study.label.name)


def column_of(feature: Feature, reach: int = 1) -> Column:
    """The column of a feature: its range, in its scale, becomes -1 to 1. Raises `Malformed` for one that is no number.
    """
    if feature.kind != "numeric":
        raise Malformed(f"feature {feature.name}: a column is a number")
    low, high = map(log1p, feature.range) if feature.scale == "log" else feature.range
    return Column(feature.name, (low + high) / 2, (high - low) / 2, reach, feature.scale)


def circuit_of(survey: AskedSurvey) -> tuple[str, Blocks | Ball]:
    """The proof that a member's vector is one that the survey can have. Raises `InvalidValue`."""
    shape = shape_of(survey)
    if isinstance(shape, TableSums):
        return "blocks", blocks(shape.lengths)
    bits, radius = ball_of(shape.contribution_norm_squared)
    if isinstance(shape, MomentSums) and records_of(survey) is not None:
        bits = min(bits, shape.largest.bit_length() + 1)  # many records: an entry is far shorter than the vector
    return "ball", ball(shape.length, bits, radius)


def sum_of(survey: Survey, slot: int, sigma_squared: Fraction) -> Sum:
    """The sum that the tellers add up for a survey, with this variance of each one's noise. Raises `InvalidValue`."""
    kind, circuit = circuit_of(survey)
    return Sum(survey.round, slot, kind, circuit.parameters, sigma_squared)


def descent_of(survey: Survey, rounds: int, units: int, noise: Fraction) -> Descent:
    """The declared way from a round's sum over so many members to the next weights. `noise`: of all tellers together.
    Raises `InvalidValue`."""
    return _descent(survey, rounds, units, noise)


def _descent(survey: AskedSurvey, rounds: int, units: int, noise: Fraction) -> Descent:
    _, _, _, step, per_step, momentum, per_momentum, last = survey.parameters[:8]
    return Descent(rounds, Fraction(step, per_step), Fraction(momentum, per_momentum), units, noise, last)
