"""The ways to a model from parties' votes on public rows: `statistic`, `soft` and `vote`, each by two kinds of noise.

`statistic`: noise in s, as a study adds it. `soft`: in the weights that s gives (Hamm, Cao and Belkin 2016, algorithm
2). `vote`: in those that the majority's votes give (algorithm 1). A minimum moves by 1 / lambda of a move of s. So with
s moved by at most m / M by one of M parties, m being 1 or for classes the root of 2, `soft` moves by m / (M lambda).
`vote` moves by m / lambda, as one party may turn the majority on every row. The paper prints 2 for 1: for the logistic
loss l(-z) - l(z) = z is linear, which halves both. One party with all of its records is the unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt

import numpy as np
from attrs import evolve, frozen

from benchmarks.figures import Figure
from benchmarks.parties.noise import Array, Generator, chance, deviation, mean_and_error, radial
from benchmarks.parties.solving import Loss, published

EPSILONS = ("0.1", "0.3", "1")
STRENGTHS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
SMALLER = (0.0001, 0.0003)
"""Further lambdas for the transfer without noise."""
MODES = ("statistic", "soft", "vote")
NOISES = ("gaussian", "two gaussians", "pure")
"""One full Gaussian noise at delta 1e-6, that of two tellers, and density exp(-|x| / b) without a delta."""
CELLS = tuple((mode, noise) for mode in MODES for noise in NOISES)
_CHOOSING, _SCORING = 0, 1


@frozen(eq=False)
class Scored:
    """Rows with labels on which models are scored. `weights`: how often each occurs, as shares."""

    rows: Array
    labels: Array
    weights: Array

    def accuracy(self, loss: Loss, models: Array) -> Array:
        """The share of rows on which each of the models (draws, columns, outputs) is right."""
        draws, length, outputs = models.shape
        wide = models.transpose(1, 0, 2).reshape(length, -1).astype(self.rows.dtype)
        scores = (self.rows @ wide).reshape(len(self.rows), draws, outputs)
        found: Array = self.weights @ loss.right(scores, self.labels)
        return found


@frozen(eq=False)
class Crowd:
    """Public rows (N, columns) of these weights, and the mean over parties of their votes on each (N, outputs).

    `parties`: M, by which noise is divided. `scored`: other rows, or in a rehearsal the public rows with labels.
    """

    loss: Loss
    rows: Array
    weights: Array
    votes: Array
    parties: int
    scored: Scored

    @property
    def majority(self) -> Array:
        """The votes that most parties cast."""
        if self.votes.shape[1] == 1:
            return np.where(self.votes > 0, 0.5, -0.5)
        most: Array = np.eye(self.votes.shape[1])[self.votes.argmax(axis=1)]
        return most

    def sums(self, votes: Array) -> Array:
        """s, of shape (1, columns, outputs)."""
        found: Array = (self.rows.T.astype(float) @ (self.weights[:, None] * votes))[None]
        return found

    def clean(self, mode: str, strength: float) -> Array:
        """The model without noise, of shape (1, columns, outputs)."""
        votes = self.majority if mode == "vote" else self.votes
        return published(self.loss, self.rows, self.weights, self.sums(votes), strength)

    def models(self, mode: str, strength: float, unit: Array) -> Array:
        """A model for each draw of noise, which is given for one party alone: at M = 1 and lambda = 1."""
        if mode == "statistic":
            sums = self.sums(self.votes) + unit / self.parties
            return published(self.loss, self.rows, self.weights, sums, strength)
        return self.clean(mode, strength) + unit / strength / (1 if mode == "vote" else self.parties)


def unit_noise(crowd: Crowd, noise: str, epsilon: str, draws: int, generator: Generator) -> Array:
    """Noise (draws, columns, outputs) that hides one party where there is no other."""
    length, outputs = crowd.rows.shape[1], crowd.votes.shape[1]
    if noise == "pure":
        flat = radial(generator, draws, length * outputs) * sqrt(crowd.loss.moved) / float(epsilon)
    else:
        sigma = deviation(length * outputs, epsilon, crowd.loss.moved) * sqrt(2 if noise == "two gaussians" else 1)
        flat = generator.standard_normal((draws, length * outputs)) * sigma
    return flat.reshape(draws, length, outputs)


def strength_for(rehearsal: Crowd, mode: str, unit: Array, strengths: Sequence[float]) -> float:
    """The lambda that does best on average in a rehearsal on public rows, with as much noise as in earnest."""

    def found(strength: float) -> float:
        return float(rehearsal.scored.accuracy(rehearsal.loss, rehearsal.models(mode, strength, unit)).mean())

    return max(strengths, key=found)


def measured(
    crowd: Crowd,
    rehearsal: Crowd,
    draws: int,
    cells: Sequence[tuple[str, str]] = CELLS,
    shorter: float = 1,
    rehearsed: int = 0,
) -> Iterator[Figure]:
    """A row without noise and one for each mode, noise and epsilon: the accuracy of models on the scored rows.

    `shorter`: all lambdas are multiplied by it, where rows are short. `rehearsed`: draws by which a lambda is chosen;
    left out, half of `draws`.
    """
    rehearsal = evolve(rehearsal, parties=crowd.parties)
    strengths = [shorter * one for one in STRENGTHS]
    nothing = np.zeros_like(crowd.sums(crowd.votes))
    strength = strength_for(rehearsal, "statistic", nothing, (*(shorter * one for one in SMALLER), *strengths))
    free = crowd.scored.accuracy(crowd.loss, crowd.clean("statistic", strength))
    yield row_of(crowd.parties, "noise-free", None, None, strength, free)
    for mode, noise in cells:
        for at, epsilon in enumerate(EPSILONS):
            unit = unit_noise(crowd, noise, epsilon, rehearsed or (draws + 1) // 2, chance(_CHOOSING, at))
            strength = strength_for(rehearsal, mode, unit, strengths)
            unit = unit_noise(crowd, noise, epsilon, draws, chance(_SCORING, at))
            found = crowd.scored.accuracy(crowd.loss, crowd.models(mode, strength, unit))
            yield row_of(crowd.parties, mode, noise, epsilon, strength, found)


def row_of(
    parties: int, mode: str, noise: str | None, epsilon: str | None, strength: float | None, found: Array
) -> Figure:
    """A row of the table: the mean accuracy over draws and its standard error."""
    mean, error = mean_and_error(found)
    return {
        "parties": parties, "mode": mode, "noise": noise, "epsilon": epsilon, "lambda": strength,
        "trials": len(found), "accuracy": round(mean, 4), "se": round(error, 5),
    }  # fmt: skip
