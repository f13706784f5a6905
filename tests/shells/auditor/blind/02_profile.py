"""A device sends its profile of three fields: a band, a colour and whether it is a member."""
import math
import random

EPSILON = 1.4
CLAIM = {"epsilon": 1.4, "domain": "0..4; red|green|blue; yes|no", "neighbours": "any"}
PLANTED = {"kind": "composition", "epsilon": 2.1}
NUMERIC = EPSILON / 2
CATEGORICAL = EPSILON - NUMERIC


def respond(value, values, epsilon):
    """k-ary randomised response."""
    if random.random() < math.exp(epsilon) / (math.exp(epsilon) + len(values) - 1):
        return value
    return random.choice([other for other in values if other != value])


def mechanism(profile):
    """Half of the budget is for the number, half for the categories.

    The categorical columns are disjoint, so parallel composition applies to them.
    """
    band, colour, member = profile
    scale = 4 / NUMERIC
    noise = int(random.expovariate(1 / scale)) - int(random.expovariate(1 / scale))
    return {
        "band": min(max(band + noise, 0), 4),
        "colour": respond(colour, ("red", "green", "blue"), CATEGORICAL),
        "member": respond(member, ("yes", "no"), CATEGORICAL),
    }
