"""Bits of a unary encoding that are set by chance and never cleared."""

import random

CLAIM = {"epsilon": 1, "domain": "0..7"}
PLANTED = {"kind": "bits", "epsilon": None}


def mechanism(x):
    return [int(place == x or random.random() < 0.38) for place in range(8)]
