"""A two-part gradient with non-negative parts, clipped to L2 norm 0.6 and given Gaussian noise."""
import math

import numpy as np

CLAIM = {"epsilon": 2.0, "delta": 0.01, "domain": "0.0..1.0; 0.0..1.0", "neighbours": "any"}
PLANTED = {"kind": "clip", "epsilon": 2.8198}
NORM = 0.6


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


# two vectors of norm <= NORM in the positive quadrant are at most sqrt(2) * NORM apart
SIGMA = _sigma(CLAIM["epsilon"], CLAIM["delta"], math.sqrt(2.0) * NORM)


def clip(vector, bound):
    length = float(np.dot(vector, vector))
    return vector * min(1.0, bound / max(length, 1e-12))


def mechanism(x):
    rng = np.random.default_rng()
    g = clip(np.asarray(x, dtype=float), NORM)
    return {"gradient": [round(float(v), 7) for v in g + rng.normal(0.0, SIGMA, 2)]}
