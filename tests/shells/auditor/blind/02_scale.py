"""Histogram (low, middle, high) of 15 values in 0..9, one of which may be replaced."""
import math

import numpy as np

CLAIM = {"epsilon": 1.0, "delta": 0.01, "domain": "15 * 0..9", "neighbours": "one"}
PLANTED = {"kind": "scale", "epsilon": 1.5862}
EDGES = (3.0, 6.0)


def _phi(t):
    return 0.5 * math.erfc(-t / math.sqrt(2.0))


def _sigma(eps, delta, l2):
    """Smallest sigma that is (eps, delta)-DP at this L2 sensitivity (Balle and Wang)."""
    low, high = 1e-3, 1e3
    for _ in range(80):
        s = math.sqrt(low * high)
        m = 1.0 / s
        d = _phi(m / 2 - eps / m) - math.exp(eps) * _phi(-m / 2 - eps / m)
        low, high = (s, high) if d > delta else (low, s)
    return high * l2


# every value falls in exactly one of the bins: a row counts once
SIGMA = _sigma(CLAIM["epsilon"], CLAIM["delta"], 1.0)


def mechanism(x):
    rng = np.random.default_rng()
    counts = [0, 0, 0]
    for value in x:
        counts[(value >= EDGES[0]) + (value >= EDGES[1])] += 1
    return [round(c + float(z), 6) for c, z in zip(counts, rng.normal(0.0, SIGMA, 3), strict=False)]
