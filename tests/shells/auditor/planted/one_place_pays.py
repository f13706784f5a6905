"""Random response for each of three places, each with the whole budget of the tuple."""

import math
import random

CLAIM = {"epsilon": 1, "domain": "3 * a|b"}
PLANTED = {"kind": "composition", "epsilon": 1.5}


def mechanism(places):
    stays = 1 / (1 + math.exp(-0.5))
    return [place if random.random() < stays else {"a": "b", "b": "a"}[place] for place in places]
