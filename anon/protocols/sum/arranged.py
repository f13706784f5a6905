"""From a study file to surveys and sums: the noise is sought, the tellers are named, nothing is left open."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final

from attrs import evolve

from anon.accounting.noisy_sums import sigma_squared_for
from anon.accounting.zcdp import NanoRho, gaussian_rho
from anon.errors import InvalidValue, Malformed
from anon.ldp import NanoEpsilon, nano
from anon.protocols.contract import Layout
from anon.protocols.sum.design import (
    CHECK,
    GRADIENT,
    LEAST_ONE_IN,
    MARGINALS,
    MOMENTS,
    TABLES,
    gradient_parameters,
    roles,
    shape_of,
    sum_of,
)
from anon.protocols.sum.parties import VOTES, WEIGHTS, votes_parameters, weights_parameters
from anon.protocols.sum.rule import RESIDUALS, SCORES, noises_for
from anon.protocols.sum.rule_section import CalibratedRule
from anon.protocols.sum.sections import (
    MOST_DRAWN,
    Averaging,
    ExactSums,
    Gradient,
    Marginals,
    Moments,
    TablesSum,
    Transfer,
)
from anon.sharing.arrangement import (
    LARGEST_NUMBER,
    LEAST_MEMBERS,
    MOST_SUMS_WITH_SPARE,
    Arrangement,
    TellerEntry,
    parse_entry,
)
from anon.study.features import Cohort
from anon.study.manifest import EXACT, Survey, Window
from anon.study.proposal import Proposal, TellerPlace
from anon.study.records import RECORD
from anon.study.slots import Row, Slot

DELTA: Final = Decimal("1e-6")
"""The delta of every promise of this protocol."""
_SAMPLED: Final = 100
_NOISY: Final = 300
"""A model is checked by so many members, and so many over epsilon (docs/explanation/exact-sums.md)."""


def fewest(cohort: Cohort) -> int:
    """The fewest members of a sum: half of the smallest roster, so that some may stay away."""
    return max(LEAST_MEMBERS, -(-cohort.minimum // 2))


def rounds_of(proposal: Proposal) -> int:
    """How many sums are published, one after the other."""
    if isinstance(proposal.design, CalibratedRule):
        return 1 + proposal.design.rounds
    return proposal.design.rounds + (proposal.many is None) if isinstance(proposal.design, Gradient) else 1


def lay_out(proposal: Proposal, windows: tuple[Window, ...]) -> Layout:
    """Surveys, slots and the arrangement. Raises `Malformed`."""
    drafts = [_draft(proposal, window, number) for number, window in enumerate(windows)]
    most_sums = most_sums_of(proposal)
    noises = _noises(proposal, drafts, most_sums)
    if max(noise.numerator for noise in noises) >= LARGEST_NUMBER:
        raise Malformed("study.toml: design.epsilon: so small a one needs more noise than a sum can have; raise it")
    entries = tuple(map(entry_of, proposal.tellers))
    second = tuple(map(second_of, proposal.tellers)) if proposal.has_spare else ()
    each = list(zip(drafts, noises, strict=True))
    sums = tuple(sum_of(draft, draft.round, noise) for draft, noise in each)
    arrangement = Arrangement(fewest(proposal.cohort), entries, sums, second)
    size = arrangement.public_size
    asked = tuple(evolve(draft, epsilon=rho_of(draft, noise, most_sums), size=size) for draft, noise in each)
    slots = tuple(Slot(survey.round, (Row(survey.survey, 1),)) for survey in asked)
    return Layout(asked, slots, arrangement.to_bytes())


def most_sums_of(proposal: Proposal) -> int:
    """How many sums of one round can come out: with a spare, two pairs may complete it. Noise and cost are for all."""
    return MOST_SUMS_WITH_SPARE if proposal.has_spare else 1


def rho_of(survey: Survey, sigma_squared: Fraction, most_sums: int) -> NanoRho:
    """The cost of so many sums of a survey to one person, who is replaced by another: each with the noise of a single
    teller. Later ones may be chosen after seeing earlier ones."""
    return NanoRho(most_sums * gaussian_rho(shape_of(survey).sensitivity_squared("replace-one"), sigma_squared))


def cost_of(surveys: Sequence[Survey], arrangement: Arrangement) -> NanoRho:
    """The cost of all sums to one person: of those that its role has it answer, the dearer. Raises `Malformed`."""
    if len(arrangement.sums) != len(surveys):
        raise Malformed("expected a sum for each survey")
    most = arrangement.most_sums
    pairs = zip(surveys, arrangement.sums, strict=True)
    rho = [rho_of(survey, planned.sigma_squared, most) for survey, planned in pairs]
    return NanoRho(max(sum(rho[at] for at in places) for places in roles(surveys)))


def noise_for(survey: Survey, epsilon: NanoEpsilon, rounds: int) -> Fraction:
    """The variance of each teller's noise that keeps so many rounds of a sum to (epsilon, `DELTA`). A round of which
    two sums can come out counts twice."""
    shape = shape_of(survey)
    sensitivity_squared, changed = shape.sensitivity_squared("replace-one"), shape.changed("replace-one")
    return sigma_squared_for(sensitivity_squared, changed, epsilon, DELTA, rounds)


def _noises(proposal: Proposal, drafts: Sequence[Survey], most_sums: int) -> Sequence[Fraction]:
    """The variance of each teller's noise in each round: alike, but that a rule's first round costs less, and that
    those who check answer no other round."""
    epsilon = nano(_epsilon(proposal))
    if isinstance(proposal.design, CalibratedRule):
        return noises_for(drafts[0].cards, len(drafts), epsilon, DELTA, most_sums)
    each = [(noise_for(drafts[at[0]], epsilon, len(at) * most_sums), len(at)) for at in roles(drafts)]
    return [noise for noise, rounds in each for _ in range(rounds)]


def entry_of(place: TellerPlace) -> TellerEntry:
    """A teller's entry, of the name and address that staff wrote. Raises `Malformed`."""
    return _entry(place, place.entry)


def second_of(place: TellerPlace) -> TellerEntry:
    """A teller's entry for its second pair, where one is the spare. Raises `Malformed`."""
    return _entry(place, place.second_entry)


def _entry(place: TellerPlace, spelled: str) -> TellerEntry:
    if not spelled:
        raise Malformed(f"study.toml: tellers: {place.name} has no entry; publishing asks the teller for it")
    entry = parse_entry(bytes.fromhex(spelled))
    if (entry.name, entry.address) != (place.name, place.address):
        raise Malformed(
            f"study.toml: tellers: the entry of {place.name} is of another name or address; leave it out, publishing "
            "asks the teller for a new one"
        )
    return entry


def _epsilon(proposal: Proposal) -> str:
    if not isinstance(proposal.design, ExactSums):
        raise TypeError(f"no design of exact sums: {proposal.design.kind}")
    return str(proposal.design.epsilon)


def one_in_for(members: int, epsilon: Fraction) -> int:
    """Of how many members one checks: enough for nine tests in ten to show an AUC of .7, a quarter at most."""
    return max(LEAST_ONE_IN, int(members / (_SAMPLED + _NOISY / epsilon)))


def _draft(proposal: Proposal, window: Window, number: int) -> Survey:
    """The survey of a round, without its cost and size."""
    kind, features, cards, parameters = asked(proposal)
    kind = RESIDUALS if kind == SCORES and number else kind
    if kind == GRADIENT and proposal.many is None and number == rounds_of(proposal) - 1:
        kind, parameters = CHECK, (*parameters, one_in_for(proposal.cohort.minimum, Fraction(_epsilon(proposal))))
    m = 1
    made = Survey(number, kind, features, cards, m, EXACT, 0, 0, 0, window, number, size=1, parameters=parameters)
    try:
        return evolve(made, m=shape_of(made).length)
    except InvalidValue as fault:
        raise Malformed(f"study.toml: design: {fault}; take fewer features or a smaller reach") from None


def asked(proposal: Proposal) -> tuple[str, tuple[str, ...], tuple[int, ...], tuple[int, ...]]:
    """Kind, features, cards and parameters of the surveys of a design of sums."""
    kind, features, cards, parameters = _asked(proposal)
    if (many := proposal.many) is not None:
        parameters = (*parameters, many.most, int(many.unit == RECORD))
    return kind, features, cards, parameters


def _asked(proposal: Proposal) -> tuple[str, tuple[str, ...], tuple[int, ...], tuple[int, ...]]:
    design, names = proposal.design, tuple(feature.name for feature in proposal.features)
    cards = tuple(feature.cardinality for feature in proposal.features)
    if isinstance(design, TablesSum):
        return TABLES, names, cards, tuple(names.index(name) for pair in design.pairs for name in pair)
    if isinstance(design, Marginals):
        places = (names.index(name) for pair in design.asked(proposal) for name in pair)
        return MARGINALS, names, cards, (design.rows or min(proposal.cohort.minimum, MOST_DRAWN), *places)
    if isinstance(design, CalibratedRule):
        return SCORES, names, cards, ()
    if isinstance(design, Moments):
        return _moments(design, names)
    ones = (1,) * len(names)
    if isinstance(design, Gradient):
        return GRADIENT, names, ones, gradient_parameters(design)
    if isinstance(design, Averaging) and proposal.many is not None:
        return WEIGHTS, names, ones, weights_parameters(design, len(names) + 1, proposal.many)
    if isinstance(design, Transfer):
        return VOTES, names, ones, votes_parameters(design, len(names) + 1)
    raise TypeError(f"no design of exact sums: {design.kind}")


def _moments(design: Moments, names: Sequence[str]) -> tuple[str, tuple[str, ...], tuple[int, ...], tuple[int, ...]]:
    """A number that is predicted is the last column and has its own reach; the label's stands in the parameters."""
    columns = (*(name for name in names if name != design.target), *((design.target,) if design.target else ()))
    louder = design.reach * design.target_weight
    reaches = [louder if name == design.target else design.reach for name in columns]
    label_reach = 0 if design.target else louder
    largest = min(reaches) ** 2 + sum(reach**2 for reach in reaches) + label_reach**2
    radius_squared = max(1, int(Fraction(str(design.norm)) ** 2 * largest))
    return MOMENTS, columns, tuple(reaches), (radius_squared, label_reach)
