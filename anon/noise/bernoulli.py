"""Exact Bernoulli draws from uniform bytes: of a rational chance, and of exp(-x) for a rational x.

Source: Canonne, Kamath, Steinke 2020, "The Discrete Gaussian for Differential Privacy" (arXiv 2004.00010), algorithm 1.
Integers only. A draw takes as many bytes as it happens to need, so its time depends on its outcome: a caller that sends
must not let this time show.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import unpack

RandomBytes = Callable[[int], bytes]
"""Returns exactly so many uniform, independent bytes. Production passes the operating system's; there is no default."""

# Integers alone: the last bits of noise in doubles tell the value beneath it (Mironov 2012, CCS).
_WORD = 64
_WORDS = 512  # asked for at once: one call of the operating system for some 30 values


class Coins:
    """Uniform bytes, spent as words of 64 bits, each once.

    Every draw is exact and independent of all others, given that `random_bytes` is uniform. Words that are left at the
    end are dropped with the object.
    """

    def __init__(self, random_bytes: RandomBytes) -> None:
        self._random_bytes = random_bytes
        self._words: list[int] = []

    def word(self) -> int:
        """Return a uniform integer below 2**64."""
        if not self._words:
            self._words = list(unpack(f"<{_WORDS}Q", self._random_bytes(_WORDS * _WORD // 8)))
        return self._words.pop()

    def below(self, bound: int) -> int:
        """Return a uniform integer in 0..bound-1, by rejection; `bound` is at least 1."""
        count = (bound.bit_length() + _WORD - 1) // _WORD
        # The largest multiple of the bound: numbers from there on would favour small remainders.
        last = (1 << count * _WORD) // bound * bound
        while True:
            drawn = 0
            for _ in range(count):
                drawn = drawn << _WORD | self.word()
            if drawn < last:
                return drawn % bound

    def bernoulli(self, numerator: int, denominator: int) -> bool:
        """Return True with chance numerator / denominator, which lies in [0, 1].

        A uniform number in [0, 1) is compared with the chance, word by word, until they differ or the chance ends.
        """
        while numerator:
            digit, numerator = divmod(numerator << _WORD, denominator)
            word = self.word()
            # Equal words are as rare as 2^-64, so nearly every draw takes one.
            if word != digit:
                return word < digit
        return False

    def bernoulli_exp(self, numerator: int, denominator: int) -> bool:
        """Return True with chance exp(-numerator / denominator), whose exponent is at most 0 (algorithm 1)."""
        # Above 1, as in algorithm 1: exp(-(a + b)) = exp(-a) exp(-b), a coin for each whole unit.
        whole, rest = divmod(numerator, denominator)
        return all(self._bernoulli_exp_of_unit(1, 1) for _ in range(whole)) and self._bernoulli_exp_of_unit(
            rest, denominator
        )

    def _bernoulli_exp_of_unit(self, numerator: int, denominator: int) -> bool:
        """For x in [0, 1]: the first k whose coin of chance x / k fails is odd with chance exp(-x)."""
        k = 1
        while self.bernoulli(numerator, denominator * k):
            k += 1
        return k % 2 == 1
