"""A share in 0..1 with discrete Laplace noise on a grid of 1/4."""
import math
import random

CLAIM = {"epsilon": 1.0, "delta": 0.0, "domain": "0.0..1.0", "neighbours": "any"}
PLANTED = {"kind": "grid", "epsilon": None}
STEP = 0.25
RNG = random.SystemRandom()


def geometric(rate):
    return math.floor(-math.log(1.0 - RNG.random()) / rate)


def mechanism(x):
    rate = CLAIM["epsilon"] * STEP
    noise = STEP * (geometric(rate) - geometric(rate))
    return round(min(max(float(x), 0.0), 1.0) + noise, 6)
