"""The published sums of a study, read and verified, and what follows from them to the bit: a gradient's weights, or the
model of a rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

from attrs import field

from anon.errors import Malformed
from anon.protocols.contract import Place
from anon.protocols.sum.design import CHECK, GRADIENT, SCALE, descent_of, one_in, shape_of
from anon.protocols.sum.rule import RESIDUALS, residuals, rule_of
from anon.protocols.vectors.checks import middle
from anon.protocols.vectors.gradient import DescentState, GradientSums
from anon.protocols.vectors.residuals import ruled
from anon.protocols.vectors.rule import Calibration, RuleModel
from anon.sharing.arrangement import Arrangement, Sum, parse_arrangement
from anon.sharing.round_document import parse_round_sums
from anon.study.manifest import Manifest, Survey
from anon.values import frozen

SUMS = "sums"
"""The kind of a round's document."""


@frozen
class RoundSum:
    """A round's verified sum: its entries, how many members it is over, and the noise of all tellers on each entry."""

    values: tuple[int, ...] = field(repr=False)
    accepted: int
    noise: Fraction


def arrangement_of(study: Manifest) -> Arrangement:
    """The tellers and sums of a study. Raises `Malformed`."""
    return _parsed(study.part)


@lru_cache(maxsize=16)
def _parsed(part: bytes) -> Arrangement:
    return parse_arrangement(part)


def place_of(number: int) -> Place:
    """The document of a round."""
    return SUMS, number


def sum_asked(study: Manifest, number: int) -> Sum:
    """The one sum of a round. Raises `Malformed` where there is none."""
    for planned in arrangement_of(study).sums:
        if planned.round == number:
            return planned
    raise Malformed(f"sums: the study has no round {number}")


def read_sum(study: Manifest, number: int, body_untrusted: bytes) -> RoundSum:
    """The sum in a round's document. Raises `Malformed`, and `RejectedProof` for a signature that does not verify."""
    asked, arrangement = sum_asked(study, number), arrangement_of(study)
    found = parse_round_sums(arrangement, study.study_id, number, body_untrusted)[asked.slot]
    return RoundSum(found.values, found.accepted, asked.sigma_squared * arrangement.summing)


def read_sums(study: Manifest, documents: Mapping[Place, bytes], rounds: int) -> list[RoundSum]:
    """The sums of the first rounds, in order. Raises `Malformed` where one is missing, and what `read_sum` does."""
    if missing := [number for number in range(rounds) if place_of(number) not in documents]:
        raise Malformed(f"sums: expected the document of round {missing[0]}")
    return [read_sum(study, number, documents[place_of(number)]) for number in range(rounds)]


def rounds_trained(study: Manifest) -> int:
    """In how many rounds gradients are summed."""
    return sum(survey.kind == GRADIENT for survey in study.surveys)


def training(study: Manifest, accepted: int) -> int:
    """How many of so many members have gradients: about all but those that check."""
    share = one_in(study.surveys)
    return max(1, round(Fraction(accepted * (share - 1), share))) if share else accepted


def standing_after(study: Manifest, sums: Sequence[RoundSum]) -> DescentState:
    """The gradient's weights after these rounds. Raises `Malformed`."""
    survey, rounds = study.survey(0), rounds_trained(study)
    shape = shape_of(survey)
    if not isinstance(shape, GradientSums):
        raise Malformed("sums: expected those of gradients")
    standing = descent_of(survey, rounds, 1, Fraction(0)).start(len(shape.columns))
    for summed in sums:
        gradients, units = shape.heard(summed.values, training(study, summed.accepted))
        standing = descent_of(survey, rounds, units, summed.noise).after(standing, gradients, SCALE)
    return standing


def final_weights(study: Manifest, sums: Sequence[RoundSum]) -> tuple[float, ...]:
    """The weights of the model, the constant's first. Raises `Malformed` before the last round of gradients."""
    rounds = rounds_trained(study)
    standing = standing_after(study, sums[:rounds])
    return descent_of(study.survey(0), rounds, 1, Fraction(0)).final(standing)


def weights_to_check(study: Manifest, sums: Sequence[RoundSum]) -> tuple[int, ...]:
    """The weights of the model, in units of its own, the constant's less the middle of all scores. Raises `Malformed`.
    """
    first, last = sums[0], study.survey(0).parameters[7]
    constant, *others = standing_after(study, sums[: rounds_trained(study)]).totals
    between = middle(first.values[0], SCALE, training(study, first.accepted), first.noise)
    return (constant - last * between, *others)


def ruled_after(study: Manifest, sums: Sequence[RoundSum]) -> tuple[Calibration, RuleModel]:
    """The calibration of a declared rule, and its model, after these rounds. Raises `Malformed`."""
    heard = [(summed.values, summed.accepted, summed.noise) for summed in sums]
    rule = rule_of(study)
    return ruled(rule, residuals(rule.cards), heard)


def told_before(study: Manifest, survey: Survey, sums: Sequence[RoundSum]) -> Sequence[int] | RuleModel:
    """The common model at which a member answers a survey, from the sums of all rounds before; nothing where there is
    none. Raises `Malformed`."""
    if survey.kind == GRADIENT:
        return standing_after(study, sums).weights
    if survey.kind == CHECK:
        return weights_to_check(study, sums)
    return ruled_after(study, sums)[1] if survey.kind == RESIDUALS else ()
