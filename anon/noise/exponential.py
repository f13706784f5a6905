"""The exponential mechanism, sampled exactly: McSherry and Talwar 2007, "Mechanism Design via Differential Privacy"."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from anon.noise.bernoulli import Coins


def drawn_by_score(scores: Sequence[int], rate: Fraction, coins: Coins) -> int:
    """Return a place with chance proportional to exp(rate x score), for a rate of at least 0 (else ValueError).

    Let a record in or out move each score by at most 1. Then the place costs 2 x rate of epsilon. It costs half of that
    where no record lowers a score. A uniform place is kept with the chance that its distance from the best score has.
    The draws grow with the number of scores at most, but their count depends on the scores.
    """
    if rate < 0 or not scores:
        raise ValueError("an exponential mechanism needs a score and a rate of at least 0")
    best = max(scores)
    while True:
        place = coins.below(len(scores))
        if coins.bernoulli_exp((best - scores[place]) * rate.numerator, rate.denominator):
            return place
