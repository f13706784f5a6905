"""Noise of a seeded generator, in floating point: for figures alone. Members' own noise is `anon.noise`.

Pure: density proportional to exp(-|x| / b) in the L2 norm, which keeps epsilon where the sensitivity is b epsilon.
Gaussian: of the sigma by which a study draws discrete Gaussians, at delta 1e-6.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import ceil, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anon.accounting.noisy_sums import sigma_squared_for
from anon.ldp import nano
from anon.protocols.sum.arranged import DELTA
from anon.protocols.vectors.averaging import scale_for
from anon.protocols.vectors.sensitivity import rounded

Array = NDArray[Any]
"""Numbers; docstrings tell the shape."""
Generator = np.random.Generator

SEED = 2016


def chance(*numbers: int) -> Generator:
    """The generator of one use: figures depend on its numbers alone, not on what was drawn before."""
    return np.random.default_rng([SEED, *numbers])


def radial(generator: Generator, draws: int, length: int) -> Array:
    """Vectors of density exp(-|x|): a Gamma(length, 1) radius times a uniform direction."""
    directions = generator.standard_normal((draws, length))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return directions * generator.gamma(length, 1.0, size=(draws, 1))


def sigma_of(sensitivity_squared: int, changed: int, epsilon: str) -> float:
    """The standard deviation of an entry's noise, for a sum of integers."""
    return sqrt(sigma_squared_for(sensitivity_squared, changed, nano(epsilon), DELTA))


@cache
def deviation(length: int, epsilon: str, moved_squared: int = 1) -> float:
    """The same for real vectors whose sum moves by the root of `moved_squared`, rounding to integers included."""
    moved = Fraction(ceil(sqrt(moved_squared) * 2**20), 2**20)
    scale = scale_for(length, moved)
    squared = rounded(ceil(moved_squared * scale**2), length, 2)
    return sigma_of(squared, min(length, squared), epsilon) / scale


def mean_and_error(values: Array) -> tuple[float, float]:
    """The mean over draws and its standard error."""
    spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return float(values.mean()), spread / sqrt(len(values))
