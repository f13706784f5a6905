"""A sum of three places whose noise knows the sensitivity of two."""

import random

CLAIM = {"epsilon": 1, "domain": "3 * 0..1"}
PLANTED = {"kind": "sensitivity", "epsilon": 1.5}


def mechanism(rows):
    return round(sum(rows) + random.expovariate(1 / 2) - random.expovariate(1 / 2), 2)
