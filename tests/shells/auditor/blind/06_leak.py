"""A value in 0..9, clamped to 0..8, with Laplace noise, and a quality flag beside it for the consumer."""
import numpy as np

CLAIM = {"epsilon": 0.5, "delta": 0.0, "domain": "0..9", "neighbours": "any"}
PLANTED = {"kind": "leak", "epsilon": None}
LOW, HIGH = 0.0, 8.0


def mechanism(x):
    rng = np.random.default_rng()
    value = min(max(float(x), LOW), HIGH)
    flags = [] if value == x else ["saturated"]
    noisy = value + rng.laplace(0.0, (HIGH - LOW) / CLAIM["epsilon"])
    return {"value": round(float(noisy), 4), "unit": "mV", "flags": flags}
