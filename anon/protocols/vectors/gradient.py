"""Gradients as sums: logistic regression in rounds, each from the sum of clipped gradients at the last weights.

Weights are integers in units of 2^-16. The next ones are exact arithmetic on the published noisy sums, so that every
peer and every audit find the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import exp, fsum, isfinite

from attrs import field

from anon.errors import InvalidValue, Malformed
from anon.noise.scaling import Neighbours, Scaling
from anon.protocols.vectors.columns import Column, reals_of
from anon.protocols.vectors.sensitivity import Unit
from anon.values import frozen

WEIGHT = 2**16
"""The integer that stands for a weight of 1."""

LARGEST_WEIGHT = 2**16 * WEIGHT
"""Weights stay within: beyond it a log-odds says no more."""

Record = Mapping[str, object]
"""A row's values by the names of its queries."""


@frozen
class GradientSums:
    """The sum of gradients of the logistic loss over all rows, each clipped to L2 norm `clip`, times `scale`, rounded.

    If the unit is a person, a peer's gradients are averaged and the average is clipped, so that everybody counts once.
    If it is a record, each row's gradient is clipped and rounded, and a peer adds up at most `rows` of them. How many
    there are is a last entry then, times `scale`: nobody else knows by how many gradients to divide. Raises
    `InvalidValue` for numbers below 1, a clip of 0, or without a column.
    """

    columns: tuple[Column, ...]
    scale: int
    clip: Fraction
    unit: Unit = "person"
    rows: int = 1
    scaling: Scaling = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if not self.columns or self.scale < 1 or self.clip <= 0 or self.rows < 1:
            raise InvalidValue("gradient: expected a column, scale and rows of at least 1, and a clip above 0")
        object.__setattr__(self, "scaling", Scaling(len(self.columns), self.scale, self.clip))
        if self.scaling.norm_squared < 1:
            raise InvalidValue("gradient: expected a clip at which some gradient is not rounded to nothing; raise it")

    @property
    def length(self) -> int:
        """One entry for each column, and one for the number of records where the unit is one."""
        return len(self.columns) + self._counts

    @property
    def _counts(self) -> bool:
        return self.unit == "record"

    @property
    def norm_squared(self) -> int:
        """Of one unit, its rounding included."""
        return self.scaling.norm_squared + self._counts * self.scale**2

    @property
    def contribution_norm_squared(self) -> int:
        """Of a whole peer's contribution: what its proof of validity states."""
        return self.norm_squared * (self.rows**2 if self.unit == "record" else 1)

    def sensitivity_squared(self, neighbours: Neighbours) -> int:
        """Of one unit in one round, its rounding included: attained by opposite gradients. A record in place of another
        may also be none, since a query decides what is one: then the number of records changes too."""
        if neighbours == "add-remove":
            return self.norm_squared
        opposite = self.scaling.sensitivity_squared(neighbours)
        return max(opposite, self.norm_squared) if self._counts else opposite

    def changed(self, neighbours: Neighbours) -> int:
        """How many entries one unit changes at most, in one round."""
        return min(self.length, self.sensitivity_squared(neighbours))

    def vector(self, records: Sequence[tuple[Record, int]], weights: Sequence[int]) -> list[int]:
        """Return a peer's contribution from its rows with their labels, 0 or 1, at these weights; zeros without rows.

        Raises `InvalidValue` for too many rows, `Malformed` for another number of weights.
        """
        if len(records) > self.rows:
            raise InvalidValue(f"rows: expected at most {self.rows}, got {len(records)}; draw so many first")
        if len(weights) != len(self.columns):
            raise Malformed(f"weights: expected {len(self.columns)}, got {len(weights)}")
        gradients = [self._gradient(*record, weights) for record in records]
        if not gradients:
            return [0] * self.length
        if self.unit == "person":
            return self.scaling.integers([fsum(entries) / len(gradients) for entries in zip(*gradients, strict=True)])
        sums = [sum(entries) for entries in zip(*map(self.scaling.integers, gradients), strict=True)]
        return [*sums, len(gradients) * self.scale]

    def heard(self, values: Sequence[int], members: int) -> tuple[Sequence[int], int]:
        """Return the summed gradients of a noisy sum over so many members, and by how many gradients to divide them.

        Where records are counted, the noisy count says it: rounded, and at least one for each member, at most `rows`.
        Raises `Malformed` for another length.
        """
        if len(values) != self.length:
            raise Malformed(f"sums: expected {self.length}, got {len(values)}")
        if not self._counts:
            return values, members
        *sums, count = values
        return sums, min(max(round(Fraction(count, self.scale)), members), members * self.rows)

    def _gradient(self, record: Record, label: int, weights: Sequence[int]) -> list[float]:
        reals = reals_of(self.columns, record)
        log_odds = fsum(weight * real for weight, real in zip(weights, reals, strict=True)) / WEIGHT
        error = _logistic(log_odds) - label
        return [error * real for real in reals]


@frozen
class Descent:
    """The way from sums to the next weights, all of it declared before the first round.

    `step`: the step's length per round; `momentum`: the part of the last step that goes on, in [0, 1). `units`: by how
    many units' gradients a sum is divided. `noise`: the variance of the noise on each entry of a sum, of all parties
    together. `last`: the final weights are the mean over so many last rounds. Raises `InvalidValue` for other numbers.
    """

    rounds: int
    step: Fraction
    momentum: Fraction
    units: int
    noise: Fraction
    last: int = 1

    def __attrs_post_init__(self) -> None:
        if not 1 <= self.last <= self.rounds or self.units < 1 or self.step <= 0 or self.noise < 0:
            raise InvalidValue("descent: expected rounds >= last >= 1, units >= 1, a step above 0, noise of at least 0")
        if not 0 <= self.momentum < 1:
            raise InvalidValue("momentum: expected a number from 0 to below 1")

    def start(self, length: int) -> DescentState:
        """The standing before the first round: weights of 0."""
        return DescentState(0, (0,) * length, (0,) * length, (0,) * length)

    def after(self, standing: DescentState, sums: Sequence[int], scale: int) -> DescentState:
        """Return the standing after a round's noisy sums. Raises `Malformed` for another length or a round too many.

        The gradient is shrunk by the known noise, as James and Stein: by 1 - length x noise / sum of squares, at least
        0. So a round in which nothing but noise was heard takes no step.
        """
        if len(sums) != len(standing.weights) or standing.round >= self.rounds:
            raise Malformed(f"sums: expected {len(standing.weights)}, in at most {self.rounds} rounds")
        squares = sum(entry * entry for entry in sums)
        kept = max(1 - len(sums) * self.noise / squares, Fraction(0)) if squares else Fraction(0)
        factor = kept * self.step * WEIGHT / (self.units * scale)
        pairs = zip(standing.speeds, sums, strict=True)
        steps = [round(self.momentum * speed - factor * entry) for speed, entry in pairs]
        weights = tuple(_kept(old + step) for old, step in zip(standing.weights, steps, strict=True))
        counted = standing.round + 1 > self.rounds - self.last
        totals = (
            tuple(old + new for old, new in zip(standing.totals, weights, strict=True)) if counted else standing.totals
        )
        return DescentState(standing.round + 1, weights, tuple(steps), totals)

    def final(self, standing: DescentState) -> tuple[float, ...]:
        """Return the weights of the model after the last round. Raises `Malformed` before it."""
        if standing.round != self.rounds:
            raise Malformed(f"descent: expected {self.rounds} rounds, got {standing.round}")
        return tuple(total / (self.last * WEIGHT) for total in standing.totals)


@frozen
class DescentState:
    """A round's document: the number of rounds done, the weights, the last step, and the sum of the last weights.

    All but `round` have an entry for each column, in units of 2^-16.
    """

    round: int
    weights: tuple[int, ...]
    speeds: tuple[int, ...]
    totals: tuple[int, ...]


def _kept(weight: int) -> int:
    return min(max(weight, -LARGEST_WEIGHT), LARGEST_WEIGHT)


def _logistic(log_odds: float) -> float:
    if not isfinite(log_odds):
        return 0.5
    return 1 / (1 + exp(-log_odds)) if log_odds >= 0 else exp(log_odds) / (1 + exp(log_odds))
