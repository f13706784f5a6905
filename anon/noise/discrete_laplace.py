"""The discrete Laplace distribution, sampled exactly: Canonne, Kamath, Steinke 2020, algorithm 2."""

from __future__ import annotations

from fractions import Fraction

from attrs import field, frozen

from anon.noise.bernoulli import Coins, RandomBytes


@frozen
class DiscreteLaplace:
    """Integers x with probability proportional to exp(-|x| / scale), for a rational scale above 0 (else ValueError).

    Added to an integer sum of L1 sensitivity d it gives pure epsilon d / scale.
    """

    scale: Fraction = field()

    def __attrs_post_init__(self) -> None:
        if self.scale <= 0:
            raise ValueError(f"the scale of a discrete Laplace distribution lies above 0, got {self.scale}")

    def draw(self, coins: Coins) -> int:
        """Return one value."""
        return laplace(coins, self.scale.numerator, self.scale.denominator)

    def vector(self, length: int, random_bytes: RandomBytes) -> list[int]:
        """Return so many independent values."""
        coins = Coins(random_bytes)
        return [self.draw(coins) for _ in range(length)]


def laplace(coins: Coins, numerator: int, denominator: int) -> int:
    """Return a discrete Laplace value of scale numerator / denominator, both at least 1.

    An integer with chance proportional to exp(-x / numerator) is made of its remainder and its quotient by the
    numerator. Its quotient by the denominator gets a sign; a negative zero is drawn again.
    """
    while True:
        remainder = coins.below(numerator)
        if not coins.bernoulli_exp(remainder, numerator):
            continue
        quotient = 0
        while coins.bernoulli_exp(1, 1):
            quotient += 1
        size = (remainder + numerator * quotient) // denominator
        negative = coins.bernoulli(1, 2)
        # Zero would come as +0 and as -0, twice as often as it should.
        if size or not negative:
            return -size if negative else size
