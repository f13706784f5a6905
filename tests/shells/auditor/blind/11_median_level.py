"""Median pain level (0 low, 1 middle, 2 high) of five patients.

The exponential mechanism chooses a level. Its utility is how evenly the patients split around the level.
"""
import math
import random

CLAIM = {"epsilon": 1.5, "domain": "5 * (0..2; a|b)", "neighbours": "one"}
PLANTED = {"kind": "exponential mechanism: one row moves the utility by 2", "epsilon": 2.0119}

EPSILON, SENSITIVITY = 1.5, 1


def mechanism(x):
    levels = [row[0] for row in x]
    weights = []
    for level in range(3):
        below = sum(1 for v in levels if v < level)
        above = sum(1 for v in levels if v > level)
        weights.append(math.exp(-EPSILON * abs(below - above) / (2 * SENSITIVITY)))
    return random.choices(range(3), weights)[0]
