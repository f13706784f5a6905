"""Running totals of admissions after each quarter, by a binary tree.

Each row is an admission, and its first value the quarter. Counts of quarters, halves and the year get noise,
and the running
totals are put together from as few counts as possible. A row is counted once on each level of the tree.
"""
import math
import random

CLAIM = {"epsilon": 1, "domain": "6 * (0..3; a|b)", "neighbours": "lacks"}
PLANTED = {"kind": "tree with one level more than its budget knows", "epsilon": 1.5}

EPSILON, QUARTERS = 1.0, 4
LEVELS = int(math.log2(QUARTERS))


def noisy(count):
    rate = EPSILON / LEVELS
    return count + int(random.expovariate(rate)) - int(random.expovariate(rate))


def mechanism(x):
    q = [sum(1 for row in x if row[0] == i) for i in range(QUARTERS)]
    first, third = noisy(q[0]), noisy(q[2])
    half, year = noisy(q[0] + q[1]), noisy(sum(q))
    return [first, half, half + third, year]
