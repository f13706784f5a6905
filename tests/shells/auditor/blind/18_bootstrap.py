"""Noisy number of positives in a bootstrap sample of the rows."""
import math
import random

EPSILON = 1.0
CLAIM = {"epsilon": 1.0, "domain": "6 * (0..1; a|b)", "neighbours": "one"}
PLANTED = {"kind": "subsampling", "epsilon": 2.148}


def geometric(epsilon):
    return int(random.expovariate(epsilon)) - int(random.expovariate(epsilon))


def mechanism(rows):
    """A row is in the sample with chance `rate`: amplification by sampling (Li, Qardaji and Su 2012)."""
    size = len(rows)
    rate = 1 - (1 - 1 / size) ** size
    epsilon = math.log(1 + (math.exp(EPSILON) - 1) / rate)
    sample = random.choices(rows, k=size)
    return sum(value for value, _ in sample) + geometric(epsilon)
