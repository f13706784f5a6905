"""Randomised response with one random number for each report."""
import math
import random

EPSILON = 0.45
CLAIM = {"epsilon": 0.45, "domain": "red|green|blue", "neighbours": "any"}
PLANTED = {"kind": "reuse", "epsilon": 0.65}
COLOURS = ["red", "green", "blue"]
HONEST = (math.exp(EPSILON) - 1) / (math.exp(EPSILON) - 1 + len(COLOURS))


def mechanism(colour):
    """With chance HONEST the truth, else a colour at random."""
    u = random.random()
    if u > 1 - HONEST:
        return colour
    return COLOURS[int(u * len(COLOURS))]
