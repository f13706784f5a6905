"""Two readings in 0..9 of one person, each with Laplace noise at half of the budget."""
import numpy as np

CLAIM = {"epsilon": 0.8, "delta": 0.0, "domain": "0..9; 0..9", "neighbours": "any"}
PLANTED = {"kind": "reuse", "epsilon": None}
WIDTH = 9.0


def mechanism(x):
    rng = np.random.default_rng()
    values = np.asarray(x, dtype=float)
    scale = np.full(values.shape, WIDTH / (CLAIM["epsilon"] / len(values)))
    noisy = values + scale * rng.laplace()
    return [round(float(v), 3) for v in noisy]
