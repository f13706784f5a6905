"""Sparse vector: tells of six ratings in 0..1 whether they pass a noisy threshold 0.5."""
import numpy as np

CLAIM = {"epsilon": 2.0, "delta": 0.0, "domain": "0..1; 0..1; 0..1; 0..1; 0..1; 0..1", "neighbours": "any"}
PLANTED = {"kind": "select", "epsilon": 2.4463}
THRESHOLD, SENSITIVITY, CUTOFF = 0.5, 1.0, 1


def mechanism(x):
    rng = np.random.default_rng()
    half = CLAIM["epsilon"] / 2
    threshold = THRESHOLD + rng.laplace(0.0, SENSITIVITY / half)
    noise = rng.laplace(0.0, 2 * CUTOFF * SENSITIVITY / half, len(x))
    answers, found = [], 0
    for passed in np.asarray(x, dtype=float) + noise >= threshold:
        answers.append(bool(passed))
        if passed is True:
            found += 1
        if found == CUTOFF:
            break
    return answers
