"""Model of a device, by optimised unary encoding.

The bit of the device's own model is sent as 1 with probability one half, each other bit with 1 / (e^epsilon + 1). The
firmware has a random generator of whole numbers below 10.
"""
import math
import random

CLAIM = {"epsilon": 2, "domain": "red|green|blue|black|white", "neighbours": "any"}
PLANTED = {"kind": "probability rounded to the nearest tenth", "epsilon": 2.1972}

MODELS = ("red", "green", "blue", "black", "white")
OWN = 5
OTHER = round(10 / (math.exp(2) + 1))


def mechanism(x):
    return [int(random.randrange(10) < (OWN if model == x else OTHER)) for model in MODELS]
