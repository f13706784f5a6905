"""Hours worked in a team, summed.

A shift has from 4 to 14 hours by contract. Hours are brought into that range, and the sum gets two-sided
geometric noise
for the width of the range.
"""
import random

CLAIM = {"epsilon": 1, "domain": "5 * (0..14; a|b)", "neighbours": "one"}
PLANTED = {"kind": "clipping on one side only", "epsilon": 1.4}

LOW, HIGH = 4, 14


def noise(rate):
    return int(random.expovariate(rate)) - int(random.expovariate(rate))


def mechanism(x):
    hours = [HIGH if row[0] > HIGH else row[0] for row in x]
    return sum(hours) + noise(1.0 / (HIGH - LOW))
