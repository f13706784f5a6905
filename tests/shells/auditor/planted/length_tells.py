"""A list of random bits that has one more where the input is b."""

import random

CLAIM = {"epsilon": 1, "domain": "a|b"}
PLANTED = {"kind": "length", "epsilon": 1.386}


def mechanism(x):
    longer = random.random() < (0.8 if x == "b" else 0.2)
    return [random.randrange(2) for _ in range(4 + longer)]
