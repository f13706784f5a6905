"""The parties' discrete Gaussian noise for many simulated trials at once, from a seed.

The law is that of `anon.noise.DiscreteGaussian`, by inversion of its cumulative sum in doubles. Only a simulation may
draw so: a seed can be found again, and a double is no exact number. A party that protects people uses `anon.noise`.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from aggregator.protocols.additive.reconstruct import Floats

_FAR = 9
"""In standard deviations: beyond it lie fewer than 1 in 1e18 values, less than a double's step below 1."""

Integers = NDArray[np.int64]


def simulated_noise(
    sigma_squared: Fraction, parties: int, shape: int | tuple[int, ...], generator: np.random.Generator
) -> Integers:
    """Return the sum of independent noise of each party, in this shape."""
    ends = cumulative(sigma_squared)
    reach = len(ends) // 2
    size = (parties, shape) if isinstance(shape, int) else (parties, *shape)
    drawn: Integers = (np.searchsorted(ends, generator.random(size), side="right") - reach).sum(axis=0, dtype=np.int64)
    return drawn


@lru_cache(maxsize=4)
def cumulative(sigma_squared: Fraction) -> Floats:
    """P[Y <= k] for k from -reach to reach, the last one 1; shape (2 reach + 1,)."""
    reach = ceil(_FAR * sqrt(sigma_squared)) + 1
    places = np.arange(-reach, reach + 1, dtype=np.float64)
    ends = np.cumsum(np.exp(-(places**2) / (2 * float(sigma_squared))))
    found: Floats = ends / ends[-1]
    return found
