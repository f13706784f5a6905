"""`simulate` of a study whose members' vectors are made one by one: of many records, or added up without tellers.

As in the study: records by its queries and draw, vectors by the protocol's own rules, the noise of its tellers, its
members, its smallest party or each group's receivers, and its learner. No share is cut, no mask is made, and nothing is
encrypted. Groups are drawn by the generator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from fractions import Fraction
from functools import cached_property
from math import sqrt
from pathlib import Path

import numpy as np
from attrs import evolve, frozen

from aggregator.lab.simulation.linear_sums import demand_ranking, model_of_rounds, noisy_sum, summed_survey
from aggregator.lab.simulation.people import (
    People,
    Rows,
    bench_of,
    cells_of,
    evaluate_people,
    grouped,
    people_from_values,
    queries_of,
    rows_of_csv,
)
from aggregator.lab.simulation.sum_noise import Integers, simulated_noise
from aggregator.protocols.sum.groups import ensemble_of, sum_of_group
from aggregator.protocols.sum.part import learned_of
from aggregator.protocols.sum.published import NoisySum
from anon.errors import Malformed
from anon.protocols.contract import Record
from anon.protocols.models.ensemble import EnsembleModel
from anon.protocols.models.linear import LinearModel
from anon.protocols.sum.design import GRADIENT, summed_of
from anon.protocols.sum.groups.drawing import Group, cut
from anon.protocols.sum.groups.layout import Grouping, grouping_of
from anon.protocols.sum.masks.layout import masking_of
from anon.protocols.sum.masks.sections import MaskedMoments
from anon.protocols.sum.oblivious.l2_laplace import L2Laplace
from anon.protocols.sum.oblivious.messages import epsilon_of, spread, weights_of
from anon.protocols.sum.sections import Averaging, Transfer
from anon.protocols.sum.standing import RoundSum, arrangement_of, standing_after
from anon.protocols.sum.vector import vector_of
from anon.protocols.tellers import tellers_of
from anon.protocols.vectors.averaging import AveragedWeights
from anon.queries.answers import LABEL, value_of
from anon.queries.records import Draw, drawn
from anon.queries.sandbox import MissingValue, Outcome, Reason
from anon.study.features import Label
from anon.study.manifest import Manifest, Survey
from anon.study.proposal import Proposal
from anon.tables.streams import Cell

_NOTHING = MissingValue(Reason.SHAPE)


def has_parties(study: Proposal) -> bool:
    """True for a study that is simulated from `Parties`, in place of `People`."""
    return study.many is not None or isinstance(study.design, Averaging | Transfer | MaskedMoments)


@frozen(eq=False)
class Parties:
    """Members with the records of each, raw. `vectors`: what each adds to the sum, shape (parties, length); None where
    it follows from published rounds, or was not made yet."""

    label: Label
    held: tuple[tuple[Record, ...], ...]
    vectors: Integers | None = None

    def __len__(self) -> int:
        return len(self.held)

    @cached_property
    def people(self) -> People:
        """Each record of all parties as one person."""
        return people_from_values(self.label, ((row.values, row.label) for rows in self.held for row in rows))

    @property
    def alone(self) -> list[People]:
        """The records of each party that has any."""
        return [Parties(self.label, (rows,)).people for rows in self.held if rows]

    def take(self, chosen: Integers) -> Parties:
        """The chosen parties, by position."""
        vectors = None if self.vectors is None else self.vectors[chosen]
        return Parties(self.label, tuple(self.held[place] for place in chosen), vectors)

    def shuffled(self, generator: np.random.Generator) -> Parties:
        """The same with all labels dealt out anew."""
        labels = iter(generator.permutation(np.array([row.label for rows in self.held for row in rows], dtype=object)))
        held = tuple(tuple(evolve(row, label=next(labels)) for row in rows) for rows in self.held)
        return Parties(self.label, held)

    def summing(self, study: Manifest, given: bytes) -> Parties:
        """The same with their vectors, where these follow from no published round."""
        survey = asked_of(study)
        if survey.kind == GRADIENT:
            return self
        return evolve(self, vectors=vectors_of(study, survey, self.held, given=given))


def parties_from_csv(study: Proposal, path: Path, person: str | None, as_of: int = 0) -> Parties:
    """The parties of a CSV file: each different value of column `person` is one. Raises `Malformed`."""
    return parties_from_rows(study, rows_of_csv(path), person, as_of)


def parties_from_rows(
    study: Proposal, rows: Iterable[Mapping[str, Cell]], person: str | None, as_of: int = 0
) -> Parties:
    """The same of rows. Without many records each row, or each value, is one. Raises `Malformed` where nothing tells
    parties apart."""
    if study.many is not None and person is None:
        raise Malformed("data: this study's members have many records each; name the column of parties by --person")
    return parties_of(study, grouped(rows, person), as_of)


def parties_of(study: Proposal, groups: Iterable[Rows], as_of: int = 0) -> Parties:
    """Run the study's queries on the rows of each party, as on its own machine; the draw has a seed for each."""
    if study.many is None:
        return Parties(study.label, tuple((Record(*found),) for found in evaluate_people(study, groups, as_of)))
    table, queries = study.tables[0], [*queries_of(study).values()]
    held = list[tuple[Record, ...]]()
    with closing(bench_of(study)) as bench:
        for number, rows in enumerate(groups):
            bench.put(table.name, [cells_of(row, table.columns) for row in rows])
            draw = Draw(study.many.most, str(number).encode())
            found = drawn(bench, queries, as_of, draw)
            held.append(tuple(_record(study, outcomes) for outcomes in found))
    return Parties(study.label, tuple(held))


def _record(study: Proposal, outcomes: Sequence[Outcome | None]) -> Record:
    kinds = [*(feature.kind for feature in study.features), LABEL]
    *values, label = (
        value_of(kind, _NOTHING if outcome is None else outcome) for kind, outcome in zip(kinds, outcomes, strict=True)
    )
    return Record({feature.name: value for feature, value in zip(study.features, values, strict=True)}, label)


def vectors_of(
    study: Manifest, survey: Survey, held: Sequence[tuple[Record, ...]], weights: Sequence[int] = (), given: bytes = b""
) -> Integers:
    """The vector of each party, as its own machine makes it; shape (parties, length)."""
    records = (Record({}, None, rows) if study.records else rows[0] for rows in held)
    return np.array([vector_of(study, survey, record, weights, given) for record in records], dtype=np.int64)


def noise_of(study: Manifest, parties: int, fewest: int = 1) -> tuple[Fraction, int]:
    """The variance of each one's noise on an entry of the sum, and of how many it is: tellers, members, receivers of a
    group, or the one party with the `fewest` records."""
    if tellers_of(study) is not None:
        arrangement = arrangement_of(study)
        return arrangement.sums[0].sigma_squared, arrangement.summing
    if study.protocol == "masks":
        return masking_of(study.part).noise, parties
    if (grouping := grouped_in(study)) is not None:
        return grouping.noise, grouping.receivers
    return _widest(study, fewest) ** 2 * (weights_of(asked_of(study)).length + 1), 1


def weight_noise(study: Manifest, parties: int) -> float | None:
    """The standard deviation of the noise in each published mean weight, if no party has fewer records than declared;
    None where no weights are published."""
    survey = summed_survey(study)
    if survey is None or not isinstance(design := summed_of(study, survey), AveragedWeights):
        return None
    (each, many), grouping = noise_of(study, parties), grouped_in(study)
    return design.mean([1] * design.length, grouping.group if grouping else parties)[0] * sqrt(each * many)


def grouped_in(study: Manifest) -> Grouping | None:
    """The groups of a study that has such."""
    return grouping_of(study.part) if study.protocol == "groups" else None


def learn_parties(
    study: Manifest, parties: Parties, generator: np.random.Generator, given: bytes = b""
) -> LinearModel | EnsembleModel:
    """The model of one run with these parties. Raises `Malformed` for more or fewer than the study takes."""
    many, survey, bounds = len(parties), asked_of(study), study.cohort
    if not bounds.minimum <= many <= bounds.maximum:
        raise Malformed(
            f"simulate: the study takes {bounds.minimum} to {bounds.maximum} members, and {many} would take part; "
            "write --peers, or other bounds under [cohort]"
        )
    demand_ranking(study, summed_of(study, survey))
    if survey.kind == GRADIENT:
        sums = list[RoundSum]()
        for number, asked in enumerate(study.surveys):
            weights = standing_after(study, sums).weights
            exact = vectors_of(study, asked, parties.held, weights).sum(axis=0)
            sums.append(noisy_sum(study, number, exact, many, generator))
        return model_of_rounds(study, sums)
    vectors = vectors_of(study, survey, parties.held, given=given) if parties.vectors is None else parties.vectors
    if (grouping := grouped_in(study)) is not None:
        return _of_groups(study, grouping, vectors, generator)
    exact = vectors.sum(axis=0)
    if tellers_of(study) is not None:
        return model_of_rounds(study, [noisy_sum(study, 0, exact, many, generator)], given)
    each, noises = noise_of(study, many)
    if study.protocol == "masks":
        noise = simulated_noise(each, noises, len(exact), generator)
    else:
        scale = _widest(study, min(map(len, parties.held)))
        noise = np.array(L2Laplace(scale).vector(len(exact), generator.bytes), dtype=np.int64)
    return learned_of(study, survey, NoisySum(tuple((exact + noise).tolist()), many, each, noises), given).model


def _of_groups(study: Manifest, grouping: Grouping, vectors: Integers, generator: np.random.Generator) -> EnsembleModel:
    """The ensemble of all groups' models, where everybody comes."""
    found = []
    for aggregation in range(grouping.aggregations):
        order = generator.permutation(len(vectors))
        for number, members in enumerate(cut(order.tolist(), grouping.group), 1):
            noise = simulated_noise(grouping.noise, grouping.receivers, vectors.shape[1], generator)
            values = vectors[list(members)].sum(axis=0) + noise
            group = Group(aggregation, number, tuple(bytes([0]) for _ in members), grouping.receivers)
            found.append(sum_of_group(study, group, len(members), values.tolist()))
    return ensemble_of(found)


def asked_of(study: Manifest) -> Survey:
    """The first survey whose vectors are added up."""
    survey = summed_survey(study)
    if survey is None:
        raise TypeError("expected a study of sums")
    return survey


def _widest(study: Manifest, fewest: int) -> Fraction:
    """The scale of the noise of a party with so many records, or with the fewest that are averaged over."""
    shape = weights_of(asked_of(study))
    return spread(shape, max(fewest, shape.fewest), epsilon_of(study.surveys))
