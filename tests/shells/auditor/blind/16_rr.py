"""Optimised unary encoding over five categories (p = 1/2, q = 1 / (e^eps + 1)) from four random bits."""
import math
import random

CLAIM = {"epsilon": 2.2, "delta": 0.0, "domain": "a|b|c|d|e", "neighbours": "any"}
PLANTED = {"kind": "rr", "epsilon": 2.7081}
CATEGORIES = "abcde"
BITS = 4
RNG = random.SystemRandom()


def bernoulli(p):
    return RNG.getrandbits(BITS) < int(p * (1 << BITS))


def mechanism(x):
    q = 1.0 / (math.exp(CLAIM["epsilon"]) + 1.0)
    return [int(bernoulli(0.5 if c == x else q)) for c in CATEGORIES]
