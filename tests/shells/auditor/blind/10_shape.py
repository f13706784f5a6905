"""Sum of up to 12 values in 0..1, or None where a noisy test finds the sum too small."""
import numpy as np

CLAIM = {"epsilon": 1.0, "delta": 0.0, "domain": "12 * 0..1", "neighbours": "lacks"}
PLANTED = {"kind": "shape", "epsilon": 1.3}
TEST_SHARE = 0.3
FLOOR = 8.0


def mechanism(x):
    rng = np.random.default_rng()
    epsilon = CLAIM["epsilon"]
    total = float(sum(min(max(v, 0.0), 1.0) for v in x))
    if total + rng.laplace(0.0, 1.0 / (TEST_SHARE * epsilon)) < FLOOR:
        return None
    return round(float(total + rng.laplace(0.0, 1.0 / epsilon)), 6)
