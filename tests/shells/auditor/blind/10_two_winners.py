"""The two winners of an approval vote on three projects.

Each voter may approve of any number of projects. The projects with the largest noisy votes are announced in
order. Gumbel
noise makes this the exponential mechanism.
"""
import math
import random

CLAIM = {"epsilon": 1, "domain": "3 * (0|1; 0|1; 0|1)", "neighbours": "one"}
PLANTED = {"kind": "top-k in one shot with the noise for one choice", "epsilon": 1.3019}

EPSILON, WINNERS = 1.0, 2


def gumbel():
    return -math.log(random.expovariate(1.0))


def mechanism(x):
    votes = [sum(row[i] for row in x) for i in range(3)]
    noisy = [v + 2 / EPSILON * gumbel() for v in votes]
    return sorted(range(3), key=lambda i: -noisy[i])[:WINNERS]
