"""Report the station near a position along a line of 9 km, by the exponential mechanism."""
import math
import random

EPSILON = 1.0
CLAIM = {"epsilon": 1.0, "domain": "0.0..9.0", "neighbours": "any"}
PLANTED = {"kind": "selection", "epsilon": 1.314}
STATIONS = {"Harbour": 0.0, "Market": 1.0, "Townhall": 2.0, "Airport": 9.0}
SENSITIVITY = 9.0


def mechanism(position):
    """The utility of a station is its distance, taken negative. Its sensitivity is the length of the line."""
    weights = [math.exp(-EPSILON * abs(position - place) / SENSITIVITY) for place in STATIONS.values()]
    return random.choices(list(STATIONS), weights)[0]
