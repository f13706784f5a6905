"""Optimised unary encoding of a ward, as a string of bits."""
import math
import random

EPSILON = 1.0
CLAIM = {"epsilon": 1.0, "domain": "north|east|south|west", "neighbours": "any"}
PLANTED = {"kind": "local vector", "epsilon": 1.405}
WARDS = ("north", "east", "south", "west")
# A set bit is kept a bit more often than not: that has less variance.
KEEP = 0.6
RAISE = 1 / (math.exp(EPSILON) + 1)


def mechanism(ward):
    return "".join("1" if random.random() < (KEEP if name == ward else RAISE) else "0" for name in WARDS)
