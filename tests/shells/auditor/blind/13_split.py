"""Age band (0..9), score (0..1) and answer (yes or no) of one person, with three shares of a budget."""
import math
import random

import numpy as np

CLAIM = {"epsilon": 3.0, "delta": 0.0, "domain": "0..9; 0..1; yes|no", "neighbours": "any"}
PLANTED = {"kind": "split", "epsilon": 3.9}
SHARES = {"age": 0.3, "score": 0.3}             # the answer takes what is left
RNG = random.SystemRandom()


class Budget:
    def __init__(self, total):
        self.total, self.spent = total, 0.0

    def take(self, share):
        self.spent = share * self.total
        return self.spent

    def rest(self):
        return self.total - self.spent


def mechanism(x):
    rng = np.random.default_rng()
    budget = Budget(CLAIM["epsilon"])
    age = x[0] + rng.laplace(0.0, 9.0 / budget.take(SHARES["age"]))
    score = x[1] + rng.laplace(0.0, 1.0 / budget.take(SHARES["score"]))
    e = math.exp(budget.rest())
    answer = x[2] if RNG.random() < e / (1.0 + e) else {"yes": "no", "no": "yes"}[x[2]]
    return {"age": round(float(age), 5), "score": round(float(score), 6), "answer": answer}
