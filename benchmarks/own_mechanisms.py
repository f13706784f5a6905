"""The project's own mechanisms, as targets of the auditor: `anonml audit mechanism benchmarks/own_mechanisms.py:krr`.

Each is the code that a peer or a teller runs, with the operating system's randomness. `TABLE` has the claims of
docs/auditor.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

from anon.accounting.noisy_sums import sigma_squared_for
from anon.ldp import RawCategory, build, nano
from anon.noise import Coins, DiscreteGaussian, DiscreteLaplace, Scaling
from anon.noise.exponential import drawn_by_score

DELTA = 1e-6
Target = Callable[[Any], object]


def local(name: str, m: int, epsilon: float) -> Target:
    """A mechanism of local reports: the bytes of a packet's answer about one category of m."""
    built = build(name, m, nano(Decimal(str(epsilon))))
    return lambda value: bytes(built.perturb(RawCategory(value, m), os.urandom))


def integer_laplace(epsilon: float) -> Target:
    """A count with discrete Laplace noise."""
    noise = DiscreteLaplace(1 / Fraction(str(epsilon)))
    return lambda count: count + noise.draw(Coins(os.urandom))


def exponential(epsilon: float) -> Target:
    """A place drawn by scores, each of which a record moves by at most 1."""
    rate = Fraction(str(epsilon)) / 2
    return lambda scores: drawn_by_score(scores, rate, Coins(os.urandom))


def tellers_sum(epsilon: float, length: int = 2, scale: int = 16) -> Target:
    """An exact sum of scaled vectors with the noise of one honest teller; members are replaced."""
    scaling = Scaling(length, scale, Fraction(1))
    sensitivity = scaling.sensitivity_squared("replace-one")
    sigma = sigma_squared_for(sensitivity, length, nano(Decimal(str(epsilon))), Decimal(str(DELTA)))
    noise = DiscreteGaussian(sigma)

    def summed(members: Sequence[Sequence[float]]) -> list[int]:
        vectors = [scaling.integers(member) for member in members]
        columns, drawn = zip(*vectors, strict=True), noise.vector(length, os.urandom)
        return [sum(column) + more for column, more in zip(columns, drawn, strict=True)]

    return summed


TABLE: dict[str, tuple[Callable[[float], Target], float, str, str]] = {
    "krr": (partial(local, "krr", 4), 0.0, "0..3|1", "any"),
    "subset": (partial(local, "subset", 8), 0.0, "0..7|3", "any"),
    "rappor": (partial(local, "rappor", 8), 0.0, "0..7|3", "any"),
    "pq": (partial(local, "pq", 8), 0.0, "0..7|3", "any"),
    "integer_laplace": (integer_laplace, 0.0, "0..9", "within:1"),
    "exponential": (exponential, 0.0, "4 * 0..1", "any"),
    "tellers_sum": (tellers_sum, DELTA, "3 * (0.0..0.7; 0.0..0.7)", "one"),
}
"""Of each: how it is built for an epsilon, its delta, its inputs and neighbours."""

krr, subset, rappor, pq, count, choice, total = (built(1.0) for built, *_ in TABLE.values())
"""Each at epsilon 1."""
