"""Votes of members' own classifiers on public rows, as a sum of d numbers a member: from its mean a model is learned.

For votes v of 0 or 1 the logistic loss is l(v) = log(2 cosh(w.x / 2)) - (v - 1/2) w.x. So the mean loss over rows and
members depends on the votes by the mean of s = (1 / N) sum (v_i - 1/2) x_i alone, and the noise goes there. Hamm, Cao
and Belkin (2016) add it to the minimum, or to each vote (Papernot and others 2017).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from fractions import Fraction
from io import StringIO
from math import fsum, isfinite
from operator import mul

from attrs import field

from anon.errors import InvalidValue, Malformed
from anon.noise.scaling import Neighbours, Scaling
from anon.protocols.vectors.columns import CONSTANT, Column, row_of
from anon.text.sentences import say
from anon.values import frozen

_HALF = Fraction(1, 2)


@frozen
class TransferredVotes:
    """The sum over members of s, times `scale`, rounded. A member is the unit, with all of its records.

    `columns`: of the public rows, which are scaled to a norm of at most 1. So |s| is at most 1/2, and another member in
    its place moves the sum by at most 1, whatever classifier it has. `public`: how many rows there are. `rows`: the
    most records of a member. `norm`: as of `AveragedWeights`. Raises `InvalidValue` for numbers below 1.
    """

    columns: tuple[Column, ...]
    scale: int
    public: int
    rows: int = 1
    norm: Fraction = Fraction(1)
    scaling: Scaling = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if not self.columns or self.scale < 1 or self.public < 1 or self.rows < 1 or not 0 < self.norm <= 1:
            raise InvalidValue(
                "transfer: expected a column, a scale, public rows and records of at least 1, and a norm above 0"
            )
        object.__setattr__(self, "scaling", Scaling(len(self.columns), self.scale, _HALF))

    @property
    def length(self) -> int:
        """One entry for each column."""
        return len(self.columns)

    @property
    def norm_squared(self) -> int:
        """Of one member, its rounding included."""
        return self.scaling.norm_squared

    @property
    def contribution_norm_squared(self) -> int:
        """The same: what its proof of validity states."""
        return self.norm_squared

    def sensitivity_squared(self, neighbours: Neighbours) -> int:
        """Of one member, its rounding included: attained by opposite votes where all rows are alike."""
        return self.scaling.sensitivity_squared(neighbours)

    def changed(self, neighbours: Neighbours) -> int:
        """How many entries one member changes at most."""
        return min(self.length, self.sensitivity_squared(neighbours))

    def row(self, values: Mapping[str, object]) -> list[float]:
        """The columns of a record, public or a member's own, of norm at most 1. Never raises for a value."""
        return row_of(self.columns, values, self.norm)

    def vector(self, votes: Sequence[int], public: Sequence[Sequence[float]]) -> list[int]:
        """Return a member's contribution from its votes, 0 or 1, on the public rows. Raises `Malformed` for another
        number of rows than the study says, and of votes than rows."""
        if len(public) != self.public or len(votes) != len(public):
            raise Malformed(f"public rows: expected {self.public}, and a vote on each")
        signed = [vote - 0.5 for vote in votes]
        sums = [fsum(map(mul, signed, column)) / self.public for column in zip(*public, strict=True)]
        return self.scaling.integers(sums)

    def mean(self, values: Sequence[int], members: int) -> list[float]:
        """Return the mean s of a noisy sum over so many members. Raises `Malformed` for another length."""
        if len(values) != self.length or members < 1:
            raise Malformed(f"sums: expected {self.length}, of at least one member")
        return [value / (members * self.scale) for value in values]


def public_rows(design: TransferredVotes, body_untrusted: bytes) -> list[list[float]]:
    """The public rows of a comma-separated file whose first line names every column but the constant, in any order.

    Every value is a finite number. Raises `Malformed` for any other file, and for another number of rows.
    """
    names = sorted(column.name for column in design.columns if column.name != CONSTANT)
    try:
        first, *lines = csv.reader(StringIO(body_untrusted.decode("utf-8")), strict=True)
        found = [[float(text) for text in line] for line in lines]
    except (ValueError, csv.Error):
        raise _unfit() from None
    if sorted(first) != names or not all(len(line) == len(first) and all(map(isfinite, line)) for line in found):
        raise _unfit()
    if len(found) != design.public:
        raise Malformed(say("given: expected {public} rows, got {found}", public=design.public, found=len(found)))
    return [design.row({**dict(zip(first, line, strict=True)), CONSTANT: 1}) for line in found]


def _unfit() -> Malformed:
    return Malformed(say("given: expected a table of finite numbers, one column for each feature"))
