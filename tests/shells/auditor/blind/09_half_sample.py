"""Smokers in a sample of half of the households.

A sample of half of the rows is drawn, and its count gets noise at epsilon 2. By amplification the whole has
log(1 + (e^2 - 1) / 2) = 1.434.
"""
import random

CLAIM = {"epsilon": 1.434, "domain": "4 * (0..1; a|b)", "neighbours": "one"}
PLANTED = {"kind": "amplification by a sample that is drawn with replacement", "epsilon": 1.9089}


def noise(rate):
    return int(random.expovariate(rate)) - int(random.expovariate(rate))


def mechanism(x):
    sample = random.choices(x, k=len(x) // 2)
    return sum(row[0] for row in sample) + noise(2.0)
