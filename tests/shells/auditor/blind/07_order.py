"""Subset mechanism: three of six items, the true one among them with the probability that makes it 1.3-DP."""
import math
import random

CLAIM = {"epsilon": 1.3, "delta": 0.0, "domain": "a|b|c|d|e|f", "neighbours": "any"}
PLANTED = {"kind": "order", "epsilon": 1.8108}
ITEMS = list("abcdef")
SIZE = 3
RNG = random.SystemRandom()


def mixed(items):
    """The items, with their places exchanged at random."""
    i, j = RNG.randrange(len(items)), RNG.randrange(len(items))
    items[i], items[j] = items[j], items[i]
    return items


def mechanism(x):
    e = SIZE * math.exp(CLAIM["epsilon"])
    include = e / (e + len(ITEMS) - SIZE)
    others = [item for item in ITEMS if item != x]
    chosen = [x, *RNG.sample(others, SIZE - 1)] if RNG.random() < include else RNG.sample(others, SIZE)
    return mixed(chosen)
