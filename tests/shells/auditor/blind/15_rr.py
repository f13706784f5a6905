"""Four-way randomised response: the true direction with probability e^eps / (e^eps + 3), otherwise a random one."""
import math
import random

CLAIM = {"epsilon": 1.5, "delta": 0.0, "domain": "north|east|south|west", "neighbours": "any"}
PLANTED = {"kind": "rr", "epsilon": 1.9424}
DIRECTIONS = ("north", "east", "south", "west")
RNG = random.SystemRandom()


def mechanism(x):
    e = math.exp(CLAIM["epsilon"])
    if RNG.random() < e / (e + len(DIRECTIONS) - 1):
        return x
    return RNG.choice(DIRECTIONS)
