"""Laplace noise in doubles, whose lowest bits tell the input (Mironov 2012)."""

import math
import random

CLAIM = {"epsilon": 1, "domain": "0.0..1.0"}
PLANTED = {"kind": "precision", "epsilon": None}


def mechanism(x):
    u = random.random() - 0.5
    return x - math.copysign(1, u) * math.log(1 - 2 * abs(u))
