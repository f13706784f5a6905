"""Could noise alone have had these members agree with the model? A test of "no feature goes with the label".

With N accepted members, of which each checks with chance q, n = N q check. From their sums A of y, B of b and C of y b,
D = C - A B / n has a mean of 0 where nothing goes with the label, since nobody who checks took part in the model. Its
variance is, with a = A / n, b = B / n, and V of the noise on each sum: n (1 - a^2) (1 - b^2) of who has which label,
V (1 + a^2 + b^2) and (V / n + 1)^2 of the noise, and n (1 - q) a^2 b^2 since how many check is not published.
"""

from __future__ import annotations

from math import erfc, sqrt

from anon.protocols.sum.standing import RoundSum
from anon.protocols.vectors.checks import CheckSums

LEAST = 4.0
"""So few standard deviations of the noise are more than all that check could agree: nothing is shown of them."""

RARE = 16.0
"""The least n (1 - a^2): noise may hide the few members of a label, and never leaves none."""


def chance_of_agreement(design: CheckSums, found: RoundSum, one_in: int) -> float:
    """How often noise alone has as many members agree, one of `one_in` accepted ones checking. Raises `Malformed` for
    a sum of another length."""
    label, side, agreed = design.heard(found.values)
    n, noise = found.accepted / one_in, float(found.noise) / design.mark**2
    if n < LEAST * sqrt(noise):
        return 1.0
    # The square of a noisy mean is too large by its variance.
    a, b = (min(max((mean / n) ** 2 - noise / n**2, 0.0), 1.0) for mean in (label, side))
    members = n * max(1 - a, RARE / n) * max(1 - b, RARE / n) + n * (1 - 1 / one_in) * a * b
    deviation = sqrt(members + noise * (1 + a + b) + (noise / n + 1) ** 2)
    return erfc((agreed - label * side / n) / deviation / sqrt(2)) / 2
