"""Adult by averaged weights, as Pathak, Rane and Raj (2010) measured it: five parties, one record is the unit.

a9a: 123 columns of 0 and 1, at most 14 of them 1, so rows over the root of 14 have norm at most 1. A constant as well
would need the root of 15. Each party minimises (1/n) sum log(1 + exp(-y w.x)) plus
(lambda/2) |w|^2 over its own records, and the mean of the parties' weights is published with noise:

`printed`: the paper's, for the smallest party's own weights, 2 / (n lambda epsilon). `tight`: 2 / (K n lambda epsilon),
as far as the mean moves. Both have density exp(-|x| / b). `gaussian`: what a study adds, at delta 1e-6, by one or two.

Lambda is chosen on a fifth of the training rows that is held out: models are fitted to the other rows, and the noise is
that of all. Figures are those of models that are then fitted to all training rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from math import sqrt
from pathlib import Path

import numpy as np
from attrs import field, frozen

from anon.protocols.vectors.averaging import AveragedWeights, scale_for
from anon.protocols.vectors.columns import Column
from anon.protocols.vectors.logistic import fit, longest_weights, moved_by_one
from benchmarks.figures import Figure
from benchmarks.many import Rows
from benchmarks.parties.noise import Array, chance, mean_and_error, radial, sigma_of
from benchmarks.parties.solving import newton

ONES = 14
SPLITS = {"20/20/20/20/20": (20, 20, 20, 20, 20), "15/20/20/20/25": (15, 20, 20, 20, 25),
          "10/20/20/20/30": (10, 20, 20, 20, 30)}  # fmt: skip
EPSILONS = ("0.05", "0.1", "0.2", "0.5", "1")
_THOUSANDTHS = (1000, 300, 100, 30, 10, 7, 5, 3, 2, 1)
STRENGTHS = tuple(Fraction(one, 1000) for one in _THOUSANDTHS)
EVEN, THIN = "20/20/20/20/20", "columns"
"""Equal shares; and the same with rows over the root of the number of columns, as `averaging` scales them."""
NOISES = ("printed", "tight", "gaussian", "two gaussians")
FIGURE_EPSILONS = ("0.05", "0.1", "0.15", "0.2", "0.25", "0.3", "0.35", "0.4")
"""Of the paper's figure 2, at lambda 1."""
HELD_OUT = 5
"""One row of so many."""
_ORDER, _CHOOSING, _SCORING = 30, 31, 32


@frozen(eq=False)
class Table:
    """Rows of norm at most 1, and labels of -1 and 1."""

    rows: Array
    labels: Array

    @staticmethod
    def of(path: Path) -> Table:
        """Read columns of 0 and 1, at most `ONES` of them 1 in a row."""
        rows = Rows.of(path)
        return Table(rows.features / sqrt(ONES), rows.labels)

    def take(self, places: slice | Array) -> Table:
        """Some of the rows."""
        return Table(self.rows[places], self.labels[places])

    def with_constant(self) -> Table:
        """One more column, of ones, and rows that are shorter for it."""
        ones = np.full((len(self.rows), 1), 1 / sqrt(ONES))
        return Table(np.hstack([self.rows, ones]) * sqrt(ONES / (ONES + 1)), self.labels)

    def scaled(self, factor: float) -> Table:
        """Shorter rows."""
        return Table(self.rows * factor, self.labels)

    def errors(self, models: Array) -> Array:
        """The share of rows on which each of the models (draws, columns) is wrong."""
        signs = self.rows.astype(np.float32) @ models.T.astype(np.float32) > 0
        found: Array = np.mean(signs != (self.labels > 0)[:, None], axis=0)
        return found


@frozen(eq=False)
class Parties:
    """Training rows, divided by shares in percent, in order. `noise`: draws of unit noise for each kind."""

    train: Table
    shares: Sequence[int]
    parts: Sequence[Table] = field(init=False)

    def __attrs_post_init__(self) -> None:
        ends = np.cumsum((0, *self.shares)) * len(self.train.labels) // 100
        parts = [self.train.take(slice(first, last)) for first, last in pairwise(ends)]
        object.__setattr__(self, "parts", parts)

    @property
    def fewest(self) -> int:
        """The rows of the smallest party."""
        return min(len(part.labels) for part in self.parts)

    def weights(self, strength: Fraction) -> Array:
        """Each party's own model (parties, columns)."""
        return np.array([newton(part.rows, part.labels, float(strength)) for part in self.parts])

    def width(self, noise: str, strength: Fraction, epsilon: str) -> float:
        """The factor of unit noise: of the radius, or an entry's standard deviation, in the mean of the weights."""
        moved = moved_by_one(strength, self.fewest)
        if noise == "printed":
            return float(2 / (self.fewest * strength * Fraction(epsilon)))
        if noise == "tight":
            return float(moved / (len(self.parts) * Fraction(epsilon)))
        length, most = self.train.rows.shape[1], max(len(part.labels) for part in self.parts)
        columns = tuple(Column(f"f{at}", 0, 1) for at in range(length))
        scale = scale_for(length, moved)
        design = AveragedWeights(columns, scale, strength, longest_weights(strength), self.fewest, "record", most)
        squared, changed = design.sensitivity_squared("replace-one"), design.changed("replace-one")
        tellers = 2 if noise == "two gaussians" else 1
        return sigma_of(squared, changed, epsilon) * sqrt(tellers) / scale / len(self.parts)


def unit_noise(noise: str, draws: int, length: int, use: int) -> Array:
    """Noise of width 1; the same draws for every lambda and epsilon."""
    kind = int(noise in ("printed", "tight"))
    return radial(chance(use, kind), draws, length) if kind else chance(use, kind).standard_normal((draws, length))


def agrees(table: Table) -> float:
    """The distance between numpy's minimum and that of the peers' own solver, on a few rows."""
    few, strength = table.take(slice(0, 60)), Fraction(1, 10)
    exact = fit(few.rows.tolist(), [int(label > 0) for label in few.labels], strength)
    return float(np.linalg.norm(newton(few.rows, few.labels, float(strength)) - np.array(exact)))


def figures(train: Table, test: Table, draws: int) -> Iterator[Figure]:
    """All rows. Raises `ArithmeticError` where numpy's solver and the peers' differ by 1e-6."""
    if agrees(train) > 1e-6:
        raise ArithmeticError("the solvers differ")
    order = chance(_ORDER).permutation(len(train.labels))
    held, kept = train.take(order[::HELD_OUT]), train.take(np.delete(order, slice(None, None, HELD_OUT)))
    everything = train.take(order)
    yield from _baselines(everything, test, draws)
    for name, shares in [*SPLITS.items(), (THIN, SPLITS[EVEN])]:
        shorter = sqrt(ONES / train.rows.shape[1]) if name == THIN else 1
        parties, practice = Parties(everything.scaled(shorter), shares), Parties(kept.scaled(shorter), shares)
        for strength in STRENGTHS if name != THIN else [one / 10 for one in STRENGTHS]:
            found, tried = parties.weights(strength), practice.weights(strength)
            about: Figure = {"shares": name, "fewest": parties.fewest, "lambda": float(strength)}
            free = held.errors(tried.mean(0)[None])
            yield row_of(about, "noise-free", None, test.errors(found.mean(0)[None]), free)
            yield row_of(about, "indiv", None, test.errors(found))
            cells = [(noise, epsilon) for noise in NOISES for epsilon in EPSILONS]
            further = [one for one in FIGURE_EPSILONS if one not in EPSILONS] if strength == 1 else []
            for noise, epsilon in cells + [(noise, one) for noise in ("printed", "tight") for one in further]:
                width = parties.width(noise, strength, epsilon)
                errors = test.errors(found.mean(0) + width * unit_noise(noise, draws, found.shape[1], _SCORING))
                tries = held.errors(tried.mean(0) + width * unit_noise(noise, draws, found.shape[1], _CHOOSING))
                yield row_of(about, noise, epsilon, errors, tries)


def row_of(about: Figure, noise: str, epsilon: str | None, errors: Array, tries: Array | None = None) -> Figure:
    """A row: the mean test error over draws, its standard error, and the mean over held-out rows."""
    mean, error = mean_and_error(errors)
    held = None if tries is None else round(float(tries.mean()), 5)
    return {**about, "noise": noise, "epsilon": epsilon, "trials": len(errors), "error": round(mean, 5),
            "se": round(error, 5), "held": held}  # fmt: skip


def _baselines(train: Table, test: Table, draws: int) -> Iterator[Figure]:
    """The majority's label, and one model of all rows, with and without the noise that all rows need."""
    share = float(np.mean(test.labels > 0))
    about: Figure = {"shares": "all", "fewest": len(train.labels), "lambda": None}
    yield row_of(about, "majority", None, np.array([min(share, 1 - share)]))
    for strength in STRENGTHS:
        model = newton(train.rows, train.labels, float(strength))
        about["lambda"] = float(strength)
        yield row_of(about, "batch", None, test.errors(model[None]))
        with_one = newton(train.with_constant().rows, train.labels, float(strength))
        yield row_of(about, "batch with a constant", None, test.with_constant().errors(with_one[None]))
        for epsilon in FIGURE_EPSILONS if strength == 1 else ():
            width = 2 / (len(train.labels) * float(strength) * float(epsilon))
            errors = test.errors(model + width * unit_noise("tight", draws, len(model), _SCORING))
            yield row_of(about, "batch with noise", epsilon, errors)
