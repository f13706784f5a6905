"""Sum of payments (0 or 10) with some answers missing.

Those who answered stand for those who did not: the sum is scaled up for missing answers, by a factor of at most 1.4.
Figures are whole, and get two-sided geometric noise.
"""
import random

CLAIM = {"epsilon": 1, "domain": "6 * (0|10|null; a|b)", "neighbours": "one"}
PLANTED = {"kind": "missing values are imputed from the others", "epsilon": 1.4}

CAP = 1.4


def mechanism(x):
    known = [row[0] for row in x if row[0] in (0, 10)]
    total = round(sum(known) * min(CAP, len(x) / len(known))) if known else 0
    rate = 1.0 / 10
    return total + int(random.expovariate(rate)) - int(random.expovariate(rate))
