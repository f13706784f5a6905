"""Total and number of insurance claims, for one branch.

Each row is a claim: its size in units (0 to 5) and its kind. Two figures are published, the total size and
the number of
claims, each with two-sided geometric noise. The total is the harder figure and takes the larger part of the budget.
"""
import random

CLAIM = {"epsilon": 1, "domain": "8 * (0..5; a|b)", "neighbours": "lacks"}
PLANTED = {"kind": "budget split adds up to more than the budget", "epsilon": 1.3333}

EPSILON = 1.0
SHARES = {"total": 2 / 3, "number": 2 / 3}


def noise(rate):
    return int(random.expovariate(rate)) - int(random.expovariate(rate))


def mechanism(x):
    total = sum(min(max(row[0], 0), 5) for row in x)
    return {
        "total": total + noise(EPSILON * SHARES["total"] / 5),
        "number": len(x) + noise(EPSILON * SHARES["number"]),
    }
