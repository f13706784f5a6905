"""Two parts in 0..1 with Gaussian noise, each draw the normalised sum of three."""
import math

import numpy as np

CLAIM = {"epsilon": 1.0, "delta": 0.005, "domain": "0..1; 0..1", "neighbours": "any"}
PLANTED = {"kind": "reuse", "epsilon": 1.2951}
DRAWS = 3


def _phi(t):
    return 0.5 * math.erfc(-t / math.sqrt(2.0))


def _sigma(eps, delta, l2):
    low, high = 1e-3, 1e3
    for _ in range(80):
        s = math.sqrt(low * high)
        m = 1.0 / s
        d = _phi(m / 2 - eps / m) - math.exp(eps) * _phi(-m / 2 - eps / m)
        low, high = (s, high) if d > delta else (low, s)
    return high * l2


SIGMA = _sigma(CLAIM["epsilon"], CLAIM["delta"], math.sqrt(2.0))


def mechanism(x):
    rng = np.random.default_rng()
    n = len(x)
    pool = rng.standard_normal(DRAWS * n)
    out = []
    for i, value in enumerate(x):
        z = pool[i * n:i * n + DRAWS].sum() / math.sqrt(DRAWS)
        out.append(round(float(value + SIGMA * z), 7))
    return out
