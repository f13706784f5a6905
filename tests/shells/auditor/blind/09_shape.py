"""Counts of the fruits named by eight people, one of whom may answer otherwise, with Laplace noise on each count."""
from collections import Counter

import numpy as np

CLAIM = {
    "epsilon": 1.0,
    "pairs": [
        [
            ["apple", "apple", "apple", "pear", "pear", "plum", "plum", "plum"],
            ["pear", "apple", "apple", "pear", "pear", "plum", "plum", "plum"],
        ],
        [
            ["apple", "apple", "apple", "pear", "pear", "plum", "plum", "plum"],
            ["apple", "apple", "apple", "pear", "pear", "plum", "plum", "apple"],
        ],
        [
            ["apple", "apple", "apple", "apple", "pear", "pear", "pear", "plum"],
            ["apple", "apple", "apple", "apple", "pear", "pear", "pear", "pear"],
        ],
        [
            ["apple", "apple", "apple", "apple", "pear", "pear", "pear", "plum"],
            ["plum", "apple", "apple", "apple", "pear", "pear", "pear", "plum"],
        ],
    ],
}
PLANTED = {"kind": "shape", "epsilon": None}


def mechanism(x):
    rng = np.random.default_rng()
    counts = Counter(x)
    # one changed answer moves two counts by one each
    return {word: round(float(counts[word] + rng.laplace(0.0, 2.0 / CLAIM["epsilon"])), 5) for word in sorted(counts)}
