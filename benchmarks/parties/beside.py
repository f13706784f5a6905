"""Other protocols on the same records: exact sums and histograms beside averaged weights and transferred votes.

On Adult, `moments` and `gradient` go through a study's own code, as in `benchmarks.many`: five members, one record is
the unit. `histogram` is local: each record is a peer's. Its study is the census example's, on Adult's own attributes.

On KDD Cup 99 one party with all of its records is the unit. `histogram` asks each party for its first record. `moments`
and averaged weights are drawn by numpy from the sensitivities that a study states: their sums are exact but for
rounding. The ridge, and the norm to which weights are shrunk, are chosen in a rehearsal on public rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from math import ceil, sqrt
from pathlib import Path

import numpy as np
from attrs import evolve, frozen

from aggregator.lab.simulation.evaluation import model_scores, probabilities
from aggregator.lab.simulation.people import People, people_from_csv, people_from_rows
from aggregator.lab.simulation.run import Plan
from aggregator.lab.simulation.simulate import NO_KEYS, learn_once
from anon.noise.discrete_gaussian import DiscreteGaussian
from anon.protocols.models.tables import Model
from anon.protocols.resolve import resolve
from anon.protocols.sum.design import shape_of
from anon.protocols.sum.standing import RoundSum, arrangement_of, standing_after
from anon.protocols.vectors.columns import Column
from anon.protocols.vectors.gradient import GradientSums
from anon.protocols.vectors.moments import MomentSums
from anon.study.manifest import Manifest
from anon.study.proposal import Proposal
from benchmarks import many
from benchmarks.class_sizes import STUDY, asking
from benchmarks.figures import Figure
from benchmarks.paper.datasets import INTRUSION
from benchmarks.paper.studies import Number, rounded
from benchmarks.parties import averaging, modes
from benchmarks.parties.network import PUBLIC, RECORDS, REHEARSED, Connections
from benchmarks.parties.noise import Array, Generator, chance, deviation, mean_and_error, sigma_of
from benchmarks.parties.solving import BINARY
from examples.protocols import PROTOCOLS

TRIALS, ROUNDS_TRIALS = 20, 10
REACH = 256
"""Of a column of `moments`, in integers."""
RIDGES, NORMS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0), (0.3, 1.0, 3.0, 10.0)
_SUMS, _ROUNDS, _PEOPLE, _PARTIES = 40, 41, 42, 43
BIT = 1000


def adult(folder: Path) -> Iterator[Figure]:
    """Rows of the other protocols on Adult: test errors."""
    train, test = (many.Rows.of(folder / f"a9a_{part}.csv.gz") for part in ("train", "test"))
    with tempfile.TemporaryDirectory() as homes:
        held = many.members(many.study("moments", "1", *train.features.shape), train, Path(homes))
    exact = None
    for at, epsilon in enumerate(averaging.EPSILONS):
        study = many.study("moments", epsilon, *train.features.shape)
        exact = many.own_sum(study, held, 0, ()) if exact is None else exact
        for tellers in (1, 2):
            generator = chance(_SUMS, at, tellers)
            sums = ([noisy(study, exact, 0, tellers, generator)] for _ in range(TRIALS))
            yield _row("moments", epsilon, tellers, [test.error(many.model_of(study, one)) for one in sums])
    study = many.study("gradient", "1", *train.features.shape)
    for tellers in (1, 2):
        generator = chance(_ROUNDS, tellers)
        errors = [gradient(study, train, test, tellers, generator) for _ in range(ROUNDS_TRIALS)]
        yield _row("gradient", "1", tellers, errors)
    census = PROTOCOLS.load_proposal(STUDY)
    people, scored = (people_from_csv(census, folder / f"adult_{part}.csv.gz") for part in ("train", "test"))
    for at, epsilon in enumerate(averaging.EPSILONS):
        yield _row("histogram", epsilon, None, 1 - histogram(census, people, scored, epsilon, chance(_PEOPLE, at)))


def noisy(study: Manifest, exact: many.Integers, number: int, tellers: int, generator: Generator) -> RoundSum:
    """A round's sum with the noise of so many tellers."""
    sigma_squared = arrangement_of(study).sums[number].sigma_squared
    noise = DiscreteGaussian(sigma_squared)
    total = exact + sum(np.array(noise.vector(len(exact), generator.bytes)) for _ in range(tellers))
    return RoundSum(tuple(int(value) for value in total), many.MEMBERS, sigma_squared * tellers)


def gradient(study: Manifest, train: many.Rows, test: many.Rows, tellers: int, generator: Generator) -> float:
    """The test error of one study in rounds."""
    design = shape_of(study.surveys[0])
    assert isinstance(design, GradientSums)
    sums = list[RoundSum]()
    for number in range(many.ROUNDS):
        exact = many.fast_sum(design, train, standing_after(study, sums).weights)
        sums.append(noisy(study, exact, number, tellers, generator))
    return test.error(many.model_of(study, sums))


def histogram(study: Proposal, people: People, scored: People, epsilon: str, generator: Generator) -> Array:
    """The accuracy of so many studies' models, also of those that were not shown to beat a guess.

    Yes is the answer from a probability of 1/2 on: a study's own threshold is lower, as it is to find more of the few.
    """
    asked = asking(study, (), float(epsilon))
    plan = Plan.of(resolve(asked, NO_KEYS, 0, lambda below: int(generator.integers(below))))
    found = []
    for _ in range(TRIALS):
        model = learn_once(plan, people, generator).model
        assert isinstance(model, Model)
        found.append(np.mean((probabilities(model, model_scores(model, scored)) >= 0.5) == (scored.labels == 1)))
    return np.array(found)


def _row(mode: str, epsilon: str, tellers: int | None, errors: Sequence[float] | Array) -> Figure:
    mean, error = mean_and_error(np.array(errors))
    return {"mode": mode, "epsilon": epsilon, "tellers": tellers, "trials": len(errors), "error": mean, "se": error}


@frozen(eq=False)
class Told:
    """All that parties tell about their rows: the mean of z z^T for z = (x, 1 or -1), and each one's own weights."""

    moments: Array
    weights: Array
    parties: int

    @staticmethod
    def of(data: Connections, private: Array) -> Told:
        """By these connections, so many in a row of each party."""
        held = data.scored(private)
        z = np.column_stack([held.rows, np.where(held.labels, 1.0, -1.0)])
        own = np.concatenate([data.own(some) for some in np.array_split(private.reshape(-1, RECORDS), 20)])
        return Told((z * held.weights[:, None]).T @ z, own, len(private) // RECORDS)

    def ridge(self, ridge: float, noise: Array) -> Array:
        """Models (draws, columns, 1) from noisy moments; what noise made negative counts as none."""
        found = []
        for one in self.moments + noise / self.parties:
            values, axes = np.linalg.eigh(one[:-1, :-1])
            found.append(axes @ (axes.T @ one[:-1, -1] / (np.maximum(values, 0) + ridge)))
        return np.array(found)[..., None]

    def mean(self, norm: float, noise: Array) -> Array:
        """Mean weights (draws, columns, 1), each one's shrunk to this norm."""
        lengths = np.linalg.norm(self.weights, axis=1, keepdims=True)
        shrunk = self.weights * np.minimum(1, norm / lengths)
        found: Array = (shrunk.mean(axis=0) + norm * noise / self.parties)[..., None]
        return found


def moments_noise(length: int, epsilon: str, draws: int, generator: Generator) -> Array:
    """Symmetric noise (draws, length, length) for a single party's mean of z z^T. One entry is the label."""
    entries = (REACH + ceil(sqrt(length) / 2)) ** 2 + REACH**2
    columns = tuple(Column(f"z{at}", 0, 1, REACH) for at in range(length))
    design = MomentSums(columns, entries, "person", RECORDS)
    squared, changed = design.sensitivity_squared("replace-one"), design.changed("replace-one")
    drawn = np.triu(generator.standard_normal((draws, length, length))) * _sigma(squared, changed, epsilon) / REACH**2
    return drawn + np.triu(drawn, 1).transpose(0, 2, 1)


_sigma = cache(sigma_of)


def network(data: Connections, parties: int, draws: int) -> Iterator[Figure]:
    """Rows of the other protocols on KDD Cup 99: accuracies for so many parties."""
    practice = evolve(Told.of(data, data.order[:REHEARSED]), parties=parties)
    told = Told.of(data, data.order[PUBLIC : PUBLIC + parties * RECORDS])
    tried, scored = data.scored(data.order[REHEARSED:PUBLIC]), data.scored(data.order[PUBLIC + parties * RECORDS :])
    length = data.rows.shape[1]
    for at, epsilon in enumerate(modes.EPSILONS):
        noise = [moments_noise(length + 1, epsilon, draws, chance(_PARTIES, use, at)) for use in (0, 1)]
        ridge = max(RIDGES, key=lambda one: float(tried.accuracy(BINARY, practice.ridge(one, noise[0])).mean()))
        found = scored.accuracy(BINARY, told.ridge(ridge, noise[1]))
        yield modes.row_of(parties, "moments", "gaussian", epsilon, ridge, found)
        width = deviation(length, epsilon, 4)
        noise = [width * chance(_PARTIES, use, at).standard_normal((draws, length)) for use in (2, 3)]
        norm = max(NORMS, key=lambda one: float(tried.accuracy(BINARY, practice.mean(one, noise[0])).mean()))
        found = scored.accuracy(BINARY, told.mean(norm, noise[1]))
        yield modes.row_of(parties, "averaging", "gaussian", epsilon, norm, found)
        asked = INTRUSION.ours(4)
        first = data.order[PUBLIC : PUBLIC + parties * RECORDS : RECORDS]
        people, others = (people_from_rows(asked, list(_people(data, one))) for one in (first, data.order[-5 * BIT :]))
        found = histogram(asked, people, others, epsilon, chance(_PARTIES, 4, at))
        yield modes.row_of(parties, "histogram", None, epsilon, None, found)


def _people(data: Connections, places: Array) -> Iterator[dict[str, str | float]]:
    for place in places:
        row: dict[str, str | float] = {"attack": float(data.attack[place])}
        for one in INTRUSION.columns:
            text = data.texts[one.column][place]
            row[one.column] = rounded(float(text)) if isinstance(one, Number) else text
        yield row

