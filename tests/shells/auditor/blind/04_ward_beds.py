"""Occupied beds on a ward, for a public board.

The figure gets two-sided geometric noise. Wild figures confuse readers, so noise is bounded: the bound is passed with
probability delta only.
"""
import math
import random

CLAIM = {"epsilon": 1, "delta": 0.02, "domain": "10 * (0..1; a|b)", "neighbours": "one"}
PLANTED = {"kind": "noise cut off at a bound that is too small for delta", "epsilon": None}

EPSILON, DELTA = 1.0, 0.02
BOUND = math.ceil(math.log(1 / DELTA) / (2 * EPSILON))


def mechanism(x):
    occupied = sum(row[0] for row in x)
    n = int(random.expovariate(EPSILON)) - int(random.expovariate(EPSILON))
    return occupied + max(-BOUND, min(BOUND, n))
