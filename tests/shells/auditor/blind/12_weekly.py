"""The same question in nine weeks, each answered by randomised response."""
import math
import random

EPSILON, DELTA = 1.0, 0.01
CLAIM = {"epsilon": 1.0, "delta": 0.01, "domain": "yes|no", "neighbours": "any"}
PLANTED = {"kind": "composition", "epsilon": 2.21}
WEEKS = 9
# Advanced composition: the loss of k answers grows with the square root of k.
PER_WEEK = EPSILON / math.sqrt(WEEKS)
TRUTH = math.exp(PER_WEEK) / (1 + math.exp(PER_WEEK))


def mechanism(answer):
    bit = 1 if answer == "yes" else 0
    return [bit if random.random() < TRUTH else 1 - bit for _ in range(WEEKS)]
