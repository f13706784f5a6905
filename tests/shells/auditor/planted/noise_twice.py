"""Two places that share one noise: their difference has none."""

import random

CLAIM = {"epsilon": 2, "domain": "0.0..1.0; 0.0..1.0"}
PLANTED = {"kind": "shared noise", "epsilon": None}


def mechanism(pair):
    noise = random.expovariate(1.0) - random.expovariate(1.0)
    return [round(value + noise, 2) for value in pair]
