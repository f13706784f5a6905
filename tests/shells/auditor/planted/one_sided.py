"""A count whose noise is never negative."""

import random

CLAIM = {"epsilon": 1, "domain": "0..9", "neighbours": "within:1"}
PLANTED = {"kind": "impossible", "epsilon": None}


def mechanism(x):
    return x + int(random.expovariate(1.0))
