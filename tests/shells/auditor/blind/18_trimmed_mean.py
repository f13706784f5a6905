"""Trimmed mean of eight judges' marks (0 to 10).

The lowest and the highest mark are left out. The mean gets noise on the grid of means, for the range divided by the
number of judges.
"""
import random

CLAIM = {"epsilon": 1, "domain": "8 * (0..10; a|b)", "neighbours": "one"}
PLANTED = {"kind": "mean of fewer values than its sensitivity counts", "epsilon": 1.3333}

EPSILON = 1.0


def mechanism(x):
    marks = sorted(row[0] for row in x)
    kept = marks[1:-1]
    sensitivity = 10 / len(marks)
    rate = EPSILON / (sensitivity * len(kept))
    steps = sum(kept) + int(random.expovariate(rate)) - int(random.expovariate(rate))
    return round(steps / len(kept), 3)
