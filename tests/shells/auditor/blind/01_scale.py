"""Mean deviation from the reference level 0.25 of 20 scores in 0..1, one of which may be replaced."""
import numpy as np

CLAIM = {"epsilon": 1.0, "delta": 0.0, "domain": "20 * 0..1", "neighbours": "one"}
PLANTED = {"kind": "scale", "epsilon": 1.3333}
LOW, HIGH, LEVEL = 0.0, 1.0, 0.25


def sensitivity(n):
    """The most that one row can weigh in the mean of n centred rows."""
    return max(abs(LOW - LEVEL), abs(HIGH - LEVEL)) / n


def mechanism(x):
    rng = np.random.default_rng()
    rows = np.clip(np.asarray(x, dtype=float), LOW, HIGH) - LEVEL
    scale = sensitivity(len(rows)) / CLAIM["epsilon"]
    return round(float(rows.mean() + rng.laplace(0.0, scale)), 7)
