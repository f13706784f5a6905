"""Subset selection (Ye and Barg 2018): two of five films, the favourite more often among them than others."""
import math
import random

EPSILON = 3.0
CLAIM = {"epsilon": 3.0, "domain": "alien|brazil|casablanca|dune|eraserhead", "neighbours": "any"}
PLANTED = {"kind": "local vector", "epsilon": None}
FILMS = ("alien", "brazil", "casablanca", "dune", "eraserhead")
SIZE = 2
INSIDE = SIZE * math.exp(EPSILON) / (SIZE * math.exp(EPSILON) + len(FILMS) - SIZE)


def mechanism(favourite):
    others = [film for film in FILMS if film != favourite]
    if random.random() < INSIDE:
        return [favourite, *random.sample(others, SIZE - 1)]
    return random.sample(others, SIZE)
