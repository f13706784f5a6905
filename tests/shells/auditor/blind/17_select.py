"""The best of three ratings in 0..1 by report-noisy-max, with its noisy rating."""
import numpy as np

CLAIM = {"epsilon": 1.0, "delta": 0.0, "domain": "0..1; 0..1; 0..1", "neighbours": "any"}
PLANTED = {"kind": "select", "epsilon": 1.5}
NAMES = ("first", "second", "third")


def mechanism(x):
    rng = np.random.default_rng()
    noisy = np.asarray(x, dtype=float) + rng.laplace(0.0, 2.0 / CLAIM["epsilon"], len(NAMES))
    best = int(noisy.argmax())
    return {"best": NAMES[best], "rating": round(float(noisy[best]), 6)}
