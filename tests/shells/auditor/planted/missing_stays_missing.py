"""A number with enough noise, and no number where none was given, now and then."""

import math
import random

CLAIM = {"epsilon": 1, "domain": "0.0..1.0|nan"}
PLANTED = {"kind": "nan", "epsilon": None}


def mechanism(x):
    if math.isnan(x):
        if random.random() < 0.1:
            return math.nan
        x = 0.5
    return round(x + random.expovariate(0.9) - random.expovariate(0.9), 2)
