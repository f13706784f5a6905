"""A whole count (the value in 0..9 rounded down) with two-sided geometric noise."""
import math
import random

CLAIM = {"epsilon": 2.0, "delta": 0.0, "domain": "0..9", "neighbours": "within:1"}
PLANTED = {"kind": "grid", "epsilon": 2.6931}
RNG = random.SystemRandom()


def geometric(epsilon):
    """k = 0, 1, 2 ... with probability proportional to exp(-epsilon * k)."""
    return math.floor(-math.log(1.0 - RNG.random()) / epsilon)


def mechanism(x):
    size = geometric(CLAIM["epsilon"])
    sign = 1 if RNG.getrandbits(1) else -1
    return math.floor(x) + sign * size
