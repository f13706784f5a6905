"""Three coordinates with Gaussian noise, calibrated by the analytic Gaussian mechanism (Balle and Wang 2018)."""
import math
import random

EPSILON, DELTA = 1.0, 0.02
CLAIM = {"epsilon": 1.0, "delta": 0.02, "domain": "0.0..1.0; 0.0..1.0; 0.0..1.0", "neighbours": "any"}
PLANTED = {"kind": "gaussian", "epsilon": 2.166}
SENSITIVITY = 1.0


def phi(t):
    return 0.5 * math.erfc(-t / math.sqrt(2))


def calibrate(epsilon, delta, sensitivity):
    """The least sigma for (epsilon, delta), by bisection."""
    low, high = 1e-3 * sensitivity, 1e3 * sensitivity
    for _ in range(200):
        sigma = math.sqrt(low * high)
        a, b = sensitivity / (2 * sigma), epsilon * sigma / sensitivity
        if phi(a - b) - math.exp(epsilon) * phi(-a - b) > delta:
            low = sigma
        else:
            high = sigma
    return high


SIGMA = calibrate(EPSILON, DELTA, SENSITIVITY)


def mechanism(point):
    """Each coordinate changes by at most SENSITIVITY."""
    return [round(value + random.gauss(0, SIGMA), 2) for value in point]
