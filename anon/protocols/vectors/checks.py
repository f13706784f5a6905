"""The vector of a member that checks a model of gradients: its label, the side on which the model puts it, and if both
agree. It took no part in the gradients, so where nothing goes with the label the two do not go together.

The vector has the length, the bound and the proof of a gradient, so that no packet tells by its size which it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from math import fsum, isqrt
from typing import Final

from anon.errors import InvalidValue, Malformed
from anon.noise.scaling import Neighbours
from anon.protocols.vectors.columns import reals_of
from anon.protocols.vectors.gradient import WEIGHT, GradientSums, Record
from anon.values import frozen

ENTRIES: Final = 3
_LEAST_RATE: Final = Fraction(1, 20)
_LOGARITHMS: Final = Context(prec=40)
"""They are rounded correctly, so they have the same digits on every machine."""


@frozen
class CheckSums:
    """The sums of y, b and y b over those who check, each times `mark`; all other entries are 0. y is 1 or -1 by the
    label, b by the side of the model's middle. The unit is a person, who has one record.

    Raises `InvalidValue` for gradients of many records, of fewer entries, or of a clip too short for a mark.
    """

    gradients: GradientSums

    def __attrs_post_init__(self) -> None:
        if self.gradients.unit != "person" or self.gradients.rows > 1:
            raise InvalidValue("check: expected gradients of one record of each member")
        if len(self.gradients.columns) < ENTRIES or not self.mark:
            raise InvalidValue("check: expected two columns beside the constant, and a clip that leaves room for marks")

    @property
    def mark(self) -> int:
        """The integer that stands for 1: three of them are as long as a gradient may be, at most."""
        return isqrt(self.gradients.norm_squared // ENTRIES)

    @property
    def length(self) -> int:
        """That of the gradients."""
        return self.gradients.length

    @property
    def contribution_norm_squared(self) -> int:
        """That of the gradients, whose proof it is."""
        return self.gradients.contribution_norm_squared

    def sensitivity_squared(self, neighbours: Neighbours) -> int:
        """Another label or side turns two of the three entries round. Reached; there is no rounding."""
        return self.mark**2 * (8 if neighbours == "replace-one" else ENTRIES)

    def changed(self, neighbours: Neighbours) -> int:
        """Two entries, or all three."""
        return 2 if neighbours == "replace-one" else ENTRIES

    def vector(self, record: Record, label: int, weights: Sequence[int]) -> list[int]:
        """Return a person's contribution: `label` 0 or 1, and weights whose constant is less the middle. Raises
        `Malformed` for another number of weights."""
        columns = self.gradients.columns
        if len(weights) != len(columns):
            raise Malformed(f"weights: expected {len(columns)}, got {len(weights)}")
        score = fsum(weight * real for weight, real in zip(weights, reals_of(columns, record), strict=True))
        y, side = 2 * label - 1, 1 if score > 0 else -1
        return [self.mark * entry for entry in (y, side, y * side)] + [0] * (self.length - ENTRIES)

    def heard(self, values: Sequence[int]) -> tuple[float, float, float]:
        """Return the sums of y, b and y b. Raises `Malformed` for a noisy sum of another length."""
        if len(values) != self.length:
            raise Malformed(f"sums: expected {self.length}, got {len(values)}")
        label, side, agreed = (value / self.mark for value in values[:ENTRIES])
        return label, side, agreed


def middle(constant: int, scale: int, units: int, noise: Fraction) -> int:
    """Return the log-odds of the label, in units of 2^-16, as the first round's sum tells them: its entry of the
    constant is over 1/2 less the label. It is shrunk by the noise; where nothing but noise was heard they are 0."""
    kept = max(1 - noise / constant**2, Fraction(0)) if constant else Fraction(0)
    rate = min(max(Fraction(1, 2) - kept * constant / (scale * units), _LEAST_RATE), 1 - _LEAST_RATE)
    up, down = ((Decimal(number)).ln(_LOGARITHMS) for number in (rate / (1 - rate)).as_integer_ratio())
    return round(_LOGARITHMS.subtract(up, down) * WEIGHT)
