"""Randomised response over four categories: the truth with probability e^eps / (e^eps + 3), else another category."""
import math
import random

CLAIM = {"epsilon": 4.0, "delta": 0.0, "domain": "car|bus|bike|walk", "neighbours": "any"}
PLANTED = {"kind": "leak", "epsilon": None}
CATEGORIES = ["car", "bus", "bike", "walk"]
RNG = random.SystemRandom()


def mechanism(x):
    k = len(CATEGORIES)
    keep = math.exp(CLAIM["epsilon"]) / (math.exp(CLAIM["epsilon"]) + k - 1)
    if RNG.random() < keep:
        return x
    while True:
        other = CATEGORIES[RNG.randrange(k - 1)]
        if other != x:
            return other
