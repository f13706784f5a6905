"""The discrete Gaussian distribution, sampled exactly: Canonne, Kamath, Steinke 2020, algorithm 3."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

from attrs import field, frozen

from anon.noise.bernoulli import Coins, RandomBytes
from anon.noise.discrete_laplace import laplace


@frozen
class DiscreteGaussian:
    """Integers x with probability proportional to exp(-x^2 / (2 sigma_squared)), for a rational above 0 (else
    ValueError).

    The mean is 0 and the variance at most `sigma_squared`. `anon.accounting.noisy_sums` states the privacy
    that it gives.

    Several parties that add independent noise. If each adds all of it, then each one's noise alone gives the whole
    guarantee against all the others together: their noise is added to a value that is private already. The sum of
    discrete Gaussians is no discrete Gaussian, so nothing more is claimed for somebody who knows none of the parts.

    >>> from os import urandom
    >>> noise = DiscreteGaussian(Fraction(100)).vector(4, urandom)
    >>> [type(value).__name__ for value in noise]  # no float, whose last bits would tell the sum
    ['int', 'int', 'int', 'int']
    """

    sigma_squared: Fraction = field()

    def __attrs_post_init__(self) -> None:
        if self.sigma_squared <= 0:
            raise ValueError(f"sigma squared of a discrete Gaussian lies above 0, got {self.sigma_squared}")

    def draw(self, coins: Coins) -> int:
        """Return one value: a discrete Laplace of scale floor(sigma) + 1, kept with the chance that corrects it."""
        numerator, denominator = self.sigma_squared.numerator, self.sigma_squared.denominator
        # The scale of algorithm 3. Every scale would be exact; this one rejects seldom.
        scale = isqrt(numerator // denominator) + 1
        step, across = denominator * scale, 2 * numerator * denominator * scale * scale
        while True:
            drawn = laplace(coins, scale, 1)
            # (|drawn| - sigma^2 / scale)^2 / (2 sigma^2), over one denominator
            if coins.bernoulli_exp((abs(drawn) * step - numerator) ** 2, across):
                return drawn

    def vector(self, length: int, random_bytes: RandomBytes) -> list[int]:
        """Return so many independent values."""
        coins = Coins(random_bytes)
        return [self.draw(coins) for _ in range(length)]
