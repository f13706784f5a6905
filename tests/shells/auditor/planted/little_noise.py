"""Laplace noise of a scale that is a fifth too small, rounded so that no bits tell more."""

import math
import random

CLAIM = {"epsilon": 1, "domain": "0.0..1.0"}
PLANTED = {"kind": "scale", "epsilon": 1.25}


def mechanism(x):
    u = random.random() - 0.5
    return round(x - math.copysign(0.8, u) * math.log(1 - 2 * abs(u)), 2)
