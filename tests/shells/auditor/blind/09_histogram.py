"""Counts of the categories that occur, without a list of them known in advance."""
import math
from collections import Counter

import numpy

EPSILON, DELTA = 1.0, 0.02
CLAIM = {"epsilon": 1.0, "delta": 0.02, "domain": "8 * (a|b|c|d; 0..1)", "neighbours": "lacks"}
PLANTED = {"kind": "threshold", "epsilon": None}
# Laplace noise of scale 1 / EPSILON is above this with chance DELTA.
THRESHOLD = math.log(1 / (2 * DELTA)) / EPSILON


def mechanism(rows):
    """A row is in one category, so the sensitivity is 1. Rare categories are dropped for delta."""
    released = {}
    for name, count in sorted(Counter(name for name, _ in rows).items()):
        noisy = count + numpy.random.laplace(0, 1 / EPSILON)
        if noisy >= THRESHOLD:
            released[name] = round(noisy)
    return released
