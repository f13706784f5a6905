"""How many of 25 values in 0..1 lie under each of ten marks 0.1 .. 1.0."""
import numpy as np

CLAIM = {"epsilon": 0.2, "delta": 0.0, "domain": "25 * 0..1", "neighbours": "one"}
PLANTED = {"kind": "split", "epsilon": 0.9}
MARKS = np.arange(1, 11) / 10.0


def mechanism(x):
    rng = np.random.default_rng()
    rows = np.asarray(x, dtype=float)
    # a replaced value leaves one bin and enters another: parallel composition, sensitivity 2
    under = (rows[None, :] <= MARKS[:, None]).sum(axis=1)
    noisy = under + rng.laplace(0.0, 2.0 / CLAIM["epsilon"], len(MARKS))
    return [round(float(v), 4) for v in noisy]
