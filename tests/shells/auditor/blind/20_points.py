"""Sum of points with Gaussian noise, calibrated by the analytic Gaussian mechanism (Balle and Wang 2018)."""
import math
import random

EPSILON, DELTA = 1.2, 0.01
CLAIM = {"epsilon": 1.2, "delta": 0.01, "domain": "8 * (0..3; a|b)", "neighbours": "one"}
PLANTED = {"kind": "gaussian", "epsilon": None}
SENSITIVITY = 3.0


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


def noise():
    """Gaussian noise. Wild outliers confuse our users, so values beyond two sigma are drawn again."""
    value = random.gauss(0, SIGMA)
    while abs(value) > 2 * SIGMA:
        value = random.gauss(0, SIGMA)
    return value


def mechanism(rows):
    return round(sum(points for points, _ in rows) + noise())
