"""`simulate` of a study whose products or gradients are summed exactly: everybody's columns, and each teller's noise.

As in the study: columns, clipping and the next weights by the protocol's own rules, the noise of its arrangement, its
learner. Vectors are made for all people at once. Those of products equal the members' own to the bit. An entry of a
gradient may differ by 1 where floating-point numbers add up in another order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from aggregator.lab.simulation.people import People
from aggregator.lab.simulation.sum_noise import Integers, simulated_noise
from aggregator.protocols.additive.reconstruct import Floats
from aggregator.protocols.sum.part import learned_from
from anon.errors import Refused
from anon.noise.scaling import shrunk
from anon.protocols.models.linear import LinearModel
from anon.protocols.sum.design import Summed, one_in, shape_of, summed_of
from anon.protocols.sum.groups import layout as groups
from anon.protocols.sum.masks.layout import vector_survey
from anon.protocols.sum.oblivious.messages import weights_survey
from anon.protocols.sum.standing import RoundSum, arrangement_of, told_before
from anon.protocols.vectors.checks import CheckSums
from anon.protocols.vectors.columns import CONSTANT, Column
from anon.protocols.vectors.gradient import WEIGHT, GradientSums
from anon.protocols.vectors.moments import MomentSums
from anon.protocols.vectors.residuals import ScoreSums
from anon.protocols.vectors.rule import RuleModel
from anon.protocols.vectors.tables import TableSums
from anon.study.manifest import Manifest, Survey


def summed_survey(study: Manifest) -> Survey | None:
    """The first survey whose vectors tellers or members add up; None where nobody does."""
    if study.protocol == "masks":
        return vector_survey(study)
    if study.protocol == "oblivious":
        return weights_survey(study)
    if study.protocol == "groups":
        return groups.weights_survey(study)
    return study.surveys[0] if study.surveys[0].exact else None


def is_linear(study: Manifest) -> bool:
    """True for a study that learns a linear model of columns, in place of one of tables."""
    survey = summed_survey(study)
    return survey is not None and not isinstance(shape_of(survey), TableSums | ScoreSums)


def demand_ranking(study: Manifest, design: Summed) -> None:
    """Raises `Refused` for a study that predicts a number, which has no AUC."""
    if isinstance(design, MomentSums) and design.columns[-1].name != study.label.name:
        raise Refused(
            "simulate tells how well the label is ranked, and this study predicts the number "
            f"{design.columns[-1].name}. Leave out design.target to see the same columns rank the label"
        )


def learn_linear(study: Manifest, people: People, generator: np.random.Generator) -> LinearModel:
    """The model of one run with these people, of one record each. Raises what `demand_ranking` does."""
    design = summed_of(study, study.surveys[0])
    demand_ranking(study, design)
    if isinstance(design, MomentSums):
        sums = [noisy_sum(study, 0, summed_products(design, study.label.name, people), len(people), generator)]
    elif isinstance(design, GradientSums):
        sums = _descended(study, design, people, generator)
    else:
        raise TypeError("tables are learned as tables, and the models of parties from their records")
    return model_of_rounds(study, sums)


def model_of_rounds(study: Manifest, sums: Sequence[RoundSum], given: bytes = b"") -> LinearModel:
    """The linear model of all rounds' sums."""
    learned = learned_from(study, sums, given)
    if not isinstance(learned.model, LinearModel):
        raise TypeError("tables are learned as tables")
    return learned.model


def reals_of_people(columns: Sequence[Column], label: str, people: People) -> Floats:
    """Each person's real value of each column, by the column's own rule; shape (people, columns)."""
    return np.column_stack([_looked_up(column, label, people, column.real) for column in columns]).astype(np.float64)


def summed_products(design: MomentSums, label: str, people: People) -> Integers:
    """The exact sum of everybody's vector; shape (design.length,)."""
    values = [_looked_up(column, label, people, column.integer) for column in design.columns]
    z = np.column_stack(values).astype(np.int64)
    kept = _shrunk(z, design.radius_squared)
    products: Integers = kept.T @ kept
    return products[np.triu_indices(len(design.columns))]


def summed_gradients(design: GradientSums, reals: Floats, labels: Integers, weights: Sequence[int]) -> Integers:
    """The exact sum of everybody's clipped gradient at these weights; shape (design.length,)."""
    log_odds = np.clip(reals @ np.array(weights, dtype=np.float64) / WEIGHT, -700, 700)
    errors = 1 / (1 + np.exp(-log_odds)) - labels
    scaled = np.rint(errors[:, None] * reals * design.scale).astype(np.int64)
    found: Integers = _shrunk(scaled, design.norm_squared).sum(axis=0)
    return found


def _looked_up(column: Column, label: str, people: People, rule: Callable[[object], float]) -> Floats:
    if column.name == CONSTANT:
        return np.full(len(people), float(rule(1)))
    if column.name == label:
        return np.array([rule(-1), rule(1)], dtype=np.float64)[people.labels]
    held = people.columns[column.name]
    return np.array([*map(rule, held.values)], dtype=np.float64)[held.index]


def _shrunk(vectors: Integers, norm_squared: int) -> Integers:
    for row in np.flatnonzero((vectors**2).sum(axis=1) > norm_squared):
        vectors[row] = shrunk(vectors[row].tolist(), norm_squared)
    return vectors


def _descended(
    study: Manifest, design: GradientSums, people: People, generator: np.random.Generator
) -> list[RoundSum]:
    """Gradients of those who train, and the check by all others, each with the chance that the study says."""
    reals, share = reals_of_people(design.columns, study.label.name, people), one_in(study.surveys)
    checks = generator.integers(0, share, len(people)) == 0 if share else np.zeros(len(people), dtype=bool)
    sums: list[RoundSum] = []
    for number, survey in enumerate(study.surveys):
        check, weights = summed_of(study, survey), told_before(study, survey, sums)
        if isinstance(weights, RuleModel):
            raise TypeError("gradients follow no rule")
        if isinstance(check, CheckSums):
            exact = summed_checks(check, reals[checks], people.labels[checks], weights)
        else:
            exact = summed_gradients(design, reals[~checks], people.labels[~checks], weights)
        sums.append(noisy_sum(study, number, exact, len(people), generator))
    return sums


def summed_checks(design: CheckSums, reals: Floats, labels: Integers, weights: Sequence[int]) -> Integers:
    """The exact sum of the vectors of all who check the model of these weights; shape (design.length,)."""
    label, side = 2 * labels - 1, np.where(reals @ np.array(weights, dtype=np.float64) > 0, 1, -1)
    found = np.zeros(design.length, dtype=np.int64)
    found[:3] = [design.mark * int(entries.sum()) for entries in (label, side, label * side)]
    return found


def noisy_sum(study: Manifest, number: int, exact: Integers, people: int, generator: np.random.Generator) -> RoundSum:
    """A round's exact sum over so many members, with the noise of its tellers."""
    arrangement = arrangement_of(study)
    each, parties = arrangement.sums[number].sigma_squared, arrangement.summing
    noisy = exact + simulated_noise(each, parties, len(exact), generator)
    return RoundSum(tuple(noisy.tolist()), people, each * parties)
