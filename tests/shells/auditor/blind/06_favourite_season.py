"""Favourite season, answered at random.

The true answer is kept with the probability of k-ary random response, else another one is drawn.
"""
import math
import random

CLAIM = {"epsilon": 1.2, "domain": "spring|summer|autumn|winter", "neighbours": "any"}
PLANTED = {"kind": "random response draws the other answer from all answers", "epsilon": 1.6914}

SEASONS = ("spring", "summer", "autumn", "winter")
KEEP = math.exp(1.2) / (math.exp(1.2) + len(SEASONS) - 1)


def mechanism(x):
    if random.random() < KEEP:
        return x
    return SEASONS[int(random.random() * len(SEASONS))]
