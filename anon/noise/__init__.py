"""Exact integer noise for sums: discrete Gaussian and discrete Laplace from bytes, and the scaling to integers."""

from __future__ import annotations

from anon.noise.bernoulli import Coins, RandomBytes
from anon.noise.discrete_gaussian import DiscreteGaussian
from anon.noise.discrete_laplace import DiscreteLaplace
from anon.noise.scaling import Scaling

__all__ = ["Coins", "DiscreteGaussian", "DiscreteLaplace", "RandomBytes", "Scaling"]
