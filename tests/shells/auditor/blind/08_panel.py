"""Noisy number of positives in a random half of the rows."""
import random

EPSILON = 1.0
CLAIM = {"epsilon": 1.0, "domain": "20 * (0..1; a|b)", "neighbours": "one"}
PLANTED = {"kind": "subsampling", "epsilon": 1.434}
RATE = 0.5
# A row is seen with chance RATE only: privacy is amplified by sampling.
EPSILON_OF_SAMPLE = EPSILON / RATE


def geometric(scale):
    return int(random.expovariate(1 / scale)) - int(random.expovariate(1 / scale))


def mechanism(rows):
    sample = random.sample(list(rows), int(len(rows) * RATE))
    return sum(value for value, _ in sample) + geometric(1 / EPSILON_OF_SAMPLE)
