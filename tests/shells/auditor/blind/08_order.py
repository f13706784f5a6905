"""Optimised unary encoding over five words."""
import math
import random

CLAIM = {"epsilon": 2.0, "delta": 0.0, "domain": "red|blue|green|black|white", "neighbours": "any"}
PLANTED = {"kind": "order", "epsilon": None}
WORDS = ["red", "blue", "green", "black", "white"]
RNG = random.SystemRandom()


def mechanism(x):
    p, q = 0.5, 1.0 / (math.exp(CLAIM["epsilon"]) + 1.0)
    reported = {}                       # a dict for a set, so that the answer can be written as JSON
    if RNG.random() < p:
        reported[x] = True
    for word in WORDS:
        if word != x and RNG.random() < q:
            reported[word] = True
    return list(reported)
