"""One reading in 0..9, clamped to 1..8 and released with Laplace noise."""
import numpy as np

CLAIM = {"epsilon": 0.7, "delta": 0.0, "domain": "0..9", "neighbours": "any"}
PLANTED = {"kind": "clip", "epsilon": 0.9}


class BoundedLaplace:
    def __init__(self, epsilon, lower, upper):
        self.epsilon, self.lower, self.upper = epsilon, lower, upper
        self.scale = (upper - lower) / epsilon

    def _clamp(self, value):
        return min(max(value, self.lower), self.upper)

    def randomise(self, value):
        self._clamp(value)
        return value + np.random.default_rng().laplace(0.0, self.scale)


def mechanism(x):
    return round(float(BoundedLaplace(CLAIM["epsilon"], 1.0, 8.0).randomise(float(x))), 6)
