"""Pages that were visited, with noisy counts; pages are not known beforehand.

Only pages with a visitor are looked at. A page is published if its noisy count reaches a threshold, which a page with a
single visitor reaches with probability delta.
"""
import math
import random

CLAIM = {"epsilon": 1, "delta": 0.02, "domain": "5 * (home|news|shop|help; a|b)", "neighbours": "lacks"}
PLANTED = {"kind": "threshold for delta with a decimal logarithm", "epsilon": None}

EPSILON, DELTA = 1.0, 0.02
THRESHOLD = 1 + math.log10(1 / (2 * DELTA)) / EPSILON


def mechanism(x):
    counts = {}
    for page, _ in x:
        counts[page] = counts.get(page, 0) + 1
    published = {}
    for page in sorted(counts):
        noisy = counts[page] + int(random.expovariate(EPSILON)) - int(random.expovariate(EPSILON))
        if noisy >= THRESHOLD:
            published[page] = noisy
    return published
