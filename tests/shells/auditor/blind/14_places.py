"""Place of a person by randomised response. Devices at home are so many that fewer of them need to report."""
import math
import random

EPSILON = 1.0
CLAIM = {"epsilon": 1.0, "domain": "home|work|shop", "neighbours": "any"}
PLANTED = {"kind": "decision", "epsilon": 1.336}
PLACES = ("home", "work", "shop")
REPORTS = {"home": 0.5, "work": 0.7, "shop": 0.7}
TRUTH = math.exp(EPSILON) / (math.exp(EPSILON) + len(PLACES) - 1)


def mechanism(place):
    """An empty list if this device does not report today."""
    if random.random() >= REPORTS[place]:
        return []
    if random.random() < TRUTH:
        return [place]
    return [random.choice([other for other in PLACES if other != place])]
