"""Weighted number of people for a proposal.

A row has the person's weight in the poll (1, 2 or 3; designed to be 2 on average) and the answer. The
weighted count gets
two-sided geometric noise.
"""
import random

CLAIM = {"epsilon": 1, "domain": "7 * (1..3; 0..1)", "neighbours": "lacks"}
PLANTED = {"kind": "sensitivity of the average weight", "epsilon": 1.5}

WEIGHTS = (1, 2, 3)
SENSITIVITY = sum(WEIGHTS) / len(WEIGHTS)


def mechanism(x):
    count = sum(weight * answer for weight, answer in x)
    rate = 1.0 / SENSITIVITY
    return count + int(random.expovariate(rate)) - int(random.expovariate(rate))
