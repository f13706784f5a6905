"""Subset selection that is sound as a set, and lists the true value first."""

import math
import random

CLAIM = {"epsilon": 1, "domain": "0..9"}
PLANTED = {"kind": "order", "epsilon": None}


def mechanism(x):
    others = [value for value in range(10) if value != x]
    hit = 3 * math.e / (3 * math.e + 7)
    return [x, *random.sample(others, 2)] if random.random() < hit else random.sample(others, 3)
