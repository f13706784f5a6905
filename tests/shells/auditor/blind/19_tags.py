"""Popular tags. A row has two tags, which may be equal, and is counted once for each."""
import math
from collections import Counter

import numpy

EPSILON, DELTA = 0.8, 0.01
CLAIM = {
    "epsilon": 0.8,
    "delta": 0.01,
    "domain": "10 * (art|code|food|yoga; art|code|food|yoga)",
    "neighbours": "lacks",
}
PLANTED = {"kind": "threshold", "epsilon": 1.539}
# A row can bring two new tags, so each of them has half of delta.
THRESHOLD = 1 + math.log(1 / (2 * (DELTA / 2))) / EPSILON


def mechanism(rows):
    """A row changes a count by at most 1."""
    counts = Counter(tag for row in rows for tag in set(row))
    released = {}
    for tag in sorted(counts):
        noisy = counts[tag] + numpy.random.laplace(0, 1 / EPSILON)
        if noisy > THRESHOLD:
            released[tag] = round(noisy)
    return released
