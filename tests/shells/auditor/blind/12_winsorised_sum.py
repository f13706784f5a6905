"""Sum of donations, robust to one large gift.

The largest gift is brought down to the second largest. The noise is for the largest gift that is left.
"""
import random

CLAIM = {"epsilon": 1, "domain": "5 * (0..20; a|b)", "neighbours": "lacks"}
PLANTED = {"kind": "bounds and scale taken from the data", "epsilon": None}


def noise(rate):
    return int(random.expovariate(rate)) - int(random.expovariate(rate))


def mechanism(x):
    gifts = sorted((row[0] for row in x), reverse=True)
    bound = max(gifts[1], 1) if len(gifts) > 1 else 1
    return sum(min(gift, bound) for gift in gifts) + noise(1.0 / bound)
