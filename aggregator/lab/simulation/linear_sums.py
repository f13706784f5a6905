"""`simulate` of a study whose products or gradients are summed exactly: everybody's columns, and each teller's noise.

As in the study: columns, clipping and the next weights by the protocol's own rules, the noise of its arrangement, its
learner. Vectors are made for all people at once. Those of products equal the members' own to the bit. An entry of a
gradient may differ by 1 where floating-point numbers add up in another order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from aggregator.lab.simulation.people import People
from aggregator.lab.simulation.sum_noise import Integers, simulated_noise
from aggregator.protocols.additive.reconstruct import Floats
from aggregator.protocols.sum.part import learned_from
from anon.errors import Refused
from anon.noise.scaling import shrunk
from anon.protocols.models.linear import LinearModel
from anon.protocols.sum.design import descent_of, summed_of
from anon.protocols.sum.standing import RoundSum, arrangement_of
from anon.protocols.vectors.averaging import AveragedWeights
from anon.protocols.vectors.columns import CONSTANT, Column
from anon.protocols.vectors.gradient import WEIGHT, GradientSums
from anon.protocols.vectors.moments import MomentSums
from anon.protocols.vectors.tables import TableSums
from anon.protocols.vectors.transfer import TransferredVotes
from anon.study.manifest import Manifest


def learn_linear(study: Manifest, people: People, generator: np.random.Generator) -> LinearModel:
    """The model of one run with these people. Raises `Refused` for one that predicts a number, which has no
    AUC, and for members with many records."""
    design = summed_of(study, study.surveys[0])
    if isinstance(design, TableSums):
        raise TypeError("tables are learned as tables")
    if isinstance(design, AveragedWeights | TransferredVotes):
        raise Refused(
            "simulate knows members with one record each, and here each fits a model to many of its own. "
            "benchmarks/parties.py measures it on public data"
        )
    if design.rows > 1 or design.unit != "person":
        raise Refused(
            "simulate knows members with one record each, and this study takes many of each. Leave out records = "
            '"many" to see how well the columns rank the label; benchmarks/many.py measures many records'
        )
    if isinstance(design, MomentSums):
        if design.columns[-1].name != study.label.name:
            raise Refused(
                "simulate tells how well the label is ranked, and this study predicts the number "
                f"{design.columns[-1].name}. Leave out design.target to see the same columns rank the label"
            )
        sums = [_noisy(study, 0, summed_products(design, study.label.name, people), len(people), generator)]
    else:
        sums = _descended(study, design, people, generator)
    learned = learned_from(study, sums)
    if not isinstance(learned.model, LinearModel):
        raise TypeError("products and gradients are learned as a linear model")
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
    reals, rounds = reals_of_people(design.columns, study.label.name, people), len(study.surveys)
    standing = descent_of(study.surveys[0], rounds, 1, Fraction(0)).start(design.length)
    sums: list[RoundSum] = []
    for number, survey in enumerate(study.surveys):
        exact = summed_gradients(design, reals, people.labels, standing.weights)
        sums.append(_noisy(study, number, exact, len(people), generator))
        way = descent_of(survey, rounds, len(people), sums[-1].noise)
        standing = way.after(standing, sums[-1].values, design.scale)
    return sums


def _noisy(study: Manifest, number: int, exact: Integers, people: int, generator: np.random.Generator) -> RoundSum:
    arrangement = arrangement_of(study)
    each, parties = arrangement.sums[number].sigma_squared, arrangement.summing
    noisy = exact + simulated_noise(each, parties, len(exact), generator)
    return RoundSum(tuple(noisy.tolist()), people, each * parties)
